package mockbroker.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.CompactArrayOf;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;

/** What Kafka's generated classes declare: APIs, the schema of each version, and the defaults. */
final class Schemas {
    private Schemas() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("apis", item -> apis());
        ops.put("schema", Schemas::schema);
    }

    private static ObjectNode apis() {
        ArrayNode apis = Pipe.JSON.arrayNode();
        for (ApiMessageType api : ApiMessageType.values()) {
            short highest = api.highestSupportedVersion(true);
            if (highest < api.lowestSupportedVersion()) {
                continue; // Its number is taken for ever, but no version of it is left.
            }
            ObjectNode node = apis.addObject();
            node.put("key", api.apiKey()).put("name", api.name);
            node.put("request", api.newRequest().getClass().getSimpleName());
            node.put("response", api.newResponse().getClass().getSimpleName());
            node.put("lowest", api.lowestSupportedVersion()).put("highest", highest);
            node.put("highestStable", api.highestSupportedVersion(false));
            ArrayNode listeners = node.putArray("listeners");
            api.listeners().forEach(listener -> listeners.add(listener.name()));
            ObjectNode headers = node.putObject("headers");
            for (short v = api.lowestSupportedVersion(); v <= highest; v++) {
                headers.putArray(Short.toString(v))
                    .add(api.requestHeaderVersion(v)).add(api.responseHeaderVersion(v));
            }
        }
        ObjectNode result = Pipe.JSON.objectNode();
        result.set("apis", apis);
        return result;
    }

    /** {name} to {versions: {"0": [field…]}, defaults: {"": {…}, "NestedName": {…}}}. */
    private static ObjectNode schema(ObjectNode item) throws Exception {
        Class<? extends Message> type = Messages.kind(item.get("name").asText()).type();
        ObjectNode result = Pipe.JSON.objectNode();
        ObjectNode versions = result.putObject("versions");
        Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
        for (int v = 0; v < schemas.length; v++) {
            if (schemas[v] != null) {
                versions.set(Integer.toString(v), fields(schemas[v]));
            }
        }
        ObjectNode defaults = result.putObject("defaults");
        defaults.set("", defaults(type));
        for (Class<?> nested : new TreeMap<>(nestedByName(type)).values()) {
            defaults.set(nested.getSimpleName(), defaults(nested));
        }
        return result;
    }

    private static Map<String, Class<?>> nestedByName(Class<?> type) {
        Map<String, Class<?>> found = new TreeMap<>();
        for (Class<?> nested : type.getDeclaredClasses()) {
            // Collections that are looked up by key come as a class of their own; it has no fields.
            if (Message.class.isAssignableFrom(nested)) {
                found.put(nested.getSimpleName(), nested);
            }
        }
        return found;
    }

    private static ArrayNode fields(Schema schema) throws ReflectiveOperationException {
        ArrayNode fields = Pipe.JSON.arrayNode();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Map.Entry<Integer, Field> entry : tagged(tagged).entrySet()) {
                    fields.add(field(entry.getValue()).put("tag", entry.getKey()));
                }
                fields.addObject().put("type", "TAGGED_FIELDS");
            } else {
                fields.add(field(bound.def));
            }
        }
        return fields;
    }

    /** The accessor came with Kafka 4; the field behind it has been there all along. */
    @SuppressWarnings("unchecked")
    private static Map<Integer, Field> tagged(TaggedFields type) throws ReflectiveOperationException {
        java.lang.reflect.Field fields = TaggedFields.class.getDeclaredField("fields");
        fields.setAccessible(true);
        return new TreeMap<>((Map<Integer, Field>) fields.get(type));
    }

    private static ObjectNode field(Field field) throws ReflectiveOperationException {
        return type(Pipe.JSON.objectNode().put("name", field.name), field.type);
    }

    private static ObjectNode type(ObjectNode node, Type type)
        throws ReflectiveOperationException {
        node.put("nullable", type.isNullable());
        if (type.isArray()) {
            node.put("type", type instanceof CompactArrayOf ? "COMPACT_ARRAY" : "ARRAY");
            node.set("of", type(Pipe.JSON.objectNode(), type.arrayElementType().orElseThrow()));
        } else if (type instanceof Schema schema) {
            node.put("type", "STRUCT");
            node.set("fields", fields(schema));
        } else {
            node.put("type", type.toString());
        }
        return node;
    }

    private static JsonNode defaults(Class<?> type) throws ReflectiveOperationException {
        return values(type.getDeclaredConstructor().newInstance());
    }

    private static ObjectNode values(Object message) throws IllegalAccessException {
        ObjectNode node = Pipe.JSON.objectNode();
        for (java.lang.reflect.Field field : message.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || isBookkeeping(field.getName())) {
                continue;
            }
            field.setAccessible(true);
            node.set(field.getName(), value(field.get(message)));
        }
        return node;
    }

    /** {@code next} and {@code prev} chain the elements of keyed collections. */
    private static boolean isBookkeeping(String name) {
        return Arrays.asList("_unknownTaggedFields", "next", "prev").contains(name);
    }

    private static JsonNode value(Object value) throws IllegalAccessException {
        if (value == null) {
            return Pipe.JSON.nullNode();
        } else if (value instanceof Boolean bool) {
            return Pipe.JSON.booleanNode(bool);
        } else if (value instanceof Double number) {
            return Pipe.JSON.numberNode(number);
        } else if (value instanceof Number number) {
            return Pipe.JSON.numberNode(number.longValue());
        } else if (value instanceof byte[] bytes) {
            return Pipe.JSON.binaryNode(bytes);
        } else if (value instanceof java.nio.ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return Pipe.JSON.binaryNode(bytes);
        } else if (value instanceof Collection<?> collection) {
            ArrayNode array = Pipe.JSON.arrayNode();
            for (Object element : collection) {
                array.add(value(element));
            }
            return array;
        } else if (value instanceof Message) {
            return values(value);
        }
        return Pipe.JSON.textNode(value.toString());
    }
}
