package mockbroker.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Generated messages by their class name: {@code FetchRequestData}, {@code OffsetCommitKey}, … */
final class Messages {
    private static final List<String> PACKAGES = List.of(
        "org.apache.kafka.common.message.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.coordinator.transaction.generated.");
    private static final Map<String, Kind> KINDS = new HashMap<>();

    /** A message class and the two halves of its JSON converter. */
    record Kind(Class<? extends Message> type, Method fromJson, Method toJson) {
        Message fresh() throws ReflectiveOperationException {
            return type.getDeclaredConstructor().newInstance();
        }

        Message read(JsonNode json, short version) throws Exception {
            return (Message) invoke(fromJson, json, version);
        }

        JsonNode write(Message message, short version) throws Exception {
            boolean withRecords = toJson.getParameterCount() == 3;
            return (JsonNode) (withRecords
                ? invoke(toJson, message, version, true)
                : invoke(toJson, message, version));
        }
    }

    private Messages() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("encode", Messages::encode);
        ops.put("decode", Messages::decode);
    }

    /** {name, version, json} to {hex}: what Kafka writes for this content. */
    private static ObjectNode encode(ObjectNode item) throws Exception {
        short version = version(item);
        Message message = kind(item.get("name").asText()).read(item.get("json"), version);
        return Pipe.JSON.objectNode().put("hex", Oracle.hex(bytes(message, version)));
    }

    /**
     * {name, version, hex} to {json, left, hex, unknown}: the content Kafka reads, the bytes it left
     * unread, what it writes for what it read, and the tags that it does not know at the top level.
     */
    private static ObjectNode decode(ObjectNode item) throws Exception {
        short version = version(item);
        Kind kind = kind(item.get("name").asText());
        byte[] bytes = Oracle.unhex(item.get("hex").asText());
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        Message message = read(kind, buffer, version);
        ObjectNode result = Pipe.JSON.objectNode();
        result.put("left", buffer.remaining());
        result.put("hex", Oracle.hex(bytes(message, version)));
        ArrayNode unknown = result.putArray("unknown");
        for (RawTaggedField field : message.unknownTaggedFields()) {
            unknown.add(field.tag());
        }
        // Read anew, for writing has consumed the buffers of records.
        result.set("json", kind.write(read(kind, ByteBuffer.wrap(bytes), version), version));
        return result;
    }

    private static Message read(Kind kind, ByteBuffer buffer, short version) throws Exception {
        Message message = kind.fresh();
        message.read(new ByteBufferAccessor(buffer), version);
        return message;
    }

    static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException("size() said " + buffer.capacity());
        }
        return buffer.array();
    }

    static synchronized Kind kind(String name) throws ReflectiveOperationException {
        Kind known = KINDS.get(name);
        if (known == null) {
            known = find(name);
            KINDS.put(name, known);
        }
        return known;
    }

    private static Kind find(String name) throws ReflectiveOperationException {
        for (String prefix : PACKAGES) {
            try {
                Class<? extends Message> type = Class.forName(prefix + name).asSubclass(Message.class);
                Class<?> converter = Class.forName(prefix + name + "JsonConverter");
                return new Kind(type, converter.getMethod("read", JsonNode.class, short.class),
                    writer(converter, type));
            } catch (ClassNotFoundException e) {
                continue;
            }
        }
        throw new ClassNotFoundException(name);
    }

    private static Method writer(Class<?> converter, Class<?> type) throws NoSuchMethodException {
        try {
            return converter.getMethod("write", type, short.class, boolean.class);
        } catch (NoSuchMethodException e) {
            return converter.getMethod("write", type, short.class);
        }
    }

    private static Object invoke(Method method, Object... args) throws Exception {
        try {
            return method.invoke(null, args);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Exception cause) {
                throw cause;
            }
            throw e;
        }
    }

    private static short version(ObjectNode item) {
        return (short) item.get("version").asInt();
    }
}
