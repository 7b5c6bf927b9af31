package mockbroker.oracle;

import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

import java.nio.ByteBuffer;
import java.util.Map;

/** What Kafka answers to a request when one error is all there is to say. */
public final class ErrorResponses {
    private ErrorResponses() {
    }

    public static void register(Map<String, Pipe.Op> ops) {
        ops.put("error.response", ErrorResponses::errorResponse);
    }

    /** {key, version, hex of the request's body, error} to {hex of the response's body or null}. */
    private static ObjectNode errorResponse(ObjectNode item) throws Exception {
        ApiKeys key = ApiKeys.forId(item.get("key").asInt());
        short version = (short) item.get("version").asInt();
        ByteBuffer body = ByteBuffer.wrap(Oracle.unhex(item.get("hex").asText()));
        AbstractRequest request =
            AbstractRequest.parseRequest(key, version, new ByteBufferAccessor(body)).request;
        Errors error = Errors.forCode((short) item.get("error").asInt());
        int throttleMs = item.path("throttle").asInt();
        AbstractResponse response = request.getErrorResponse(throttleMs, error.exception());
        ObjectNode result = Pipe.JSON.objectNode();
        if (response == null) {
            return result.putNull("hex");
        }
        return result.put("hex", Oracle.hex(Messages.bytes((Message) response.data(), version)));
    }
}
