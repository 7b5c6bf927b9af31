package mockbroker.oracle;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Utils;

import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Small things that both sides must agree on: error codes, hashes, the text of a topic id. */
final class Facts {
    private Facts() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("errors", item -> errors());
        ops.put("hash", Facts::hash);
        ops.put("uuid", Facts::uuid);
    }

    private static ObjectNode errors() {
        ObjectNode result = Pipe.JSON.objectNode();
        ArrayNode errors = result.putArray("errors");
        for (Errors error : Errors.values()) {
            errors.addObject().put("code", error.code()).put("name", error.name())
                .put("retriable", error.exception() instanceof RetriableException)
                .put("message", error.message());
        }
        return result;
    }

    /** {text} to Java's String.hashCode, its Kafka absolute value, and murmur2 of the UTF-8 bytes. */
    private static ObjectNode hash(ObjectNode item) {
        String text = item.get("text").asText();
        int code = text.hashCode();
        int murmur = Utils.murmur2(text.getBytes(StandardCharsets.UTF_8));
        return Pipe.JSON.objectNode().put("hash", code).put("abs", Utils.abs(code))
            .put("murmur2", murmur).put("positive", Utils.toPositive(murmur));
    }

    /** {hex} to the URL-safe base64 by which Kafka prints the 16 bytes. */
    private static ObjectNode uuid(ObjectNode item) {
        java.nio.ByteBuffer bytes = java.nio.ByteBuffer.wrap(Oracle.unhex(item.get("hex").asText()));
        Uuid uuid = new Uuid(bytes.getLong(), bytes.getLong());
        return Pipe.JSON.objectNode().put("text", uuid.toString());
    }
}
