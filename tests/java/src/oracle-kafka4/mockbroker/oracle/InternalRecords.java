package mockbroker.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

import java.util.Map;

/** Messages with an int16 in front: keys and values of internal topics, consumers' blobs. */
public final class InternalRecords {
    private InternalRecords() {
    }

    public static void register(Map<String, Pipe.Op> ops) {
        ops.put("record.key", InternalRecords::key);
        ops.put("record.value", InternalRecords::value);
    }

    /** {name, json} to {hex}: the type of the record, then version 0 of its key. */
    private static ObjectNode key(ObjectNode item) throws Exception {
        Message key = message(item, (short) 0);
        byte[] bytes = MessageUtil.toCoordinatorTypePrefixedBytes((ApiMessage) key);
        return Pipe.JSON.objectNode().put("hex", Oracle.hex(bytes));
    }

    /** {name, version, json} to {hex}: the version, then the message in it. */
    private static ObjectNode value(ObjectNode item) throws Exception {
        short version = (short) item.get("version").asInt();
        byte[] bytes = MessageUtil.toVersionPrefixedBytes(version, message(item, version));
        return Pipe.JSON.objectNode().put("hex", Oracle.hex(bytes));
    }

    private static Message message(ObjectNode item, short version) throws Exception {
        JsonNode json = item.get("json");
        return Messages.kind(item.get("name").asText()).read(json, version);
    }
}
