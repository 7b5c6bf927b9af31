package mockbroker.pipe;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ExecutionException;

/**
 * A Java program behind a pipe: a line of JSON in, a line of JSON out.
 *
 * <p>A question is {@code {"op": NAME, "items": [...]}}; the answer {@code {"results": [...]}} holds
 * one result per item, in order. An item that fails gives {@code {"error": CLASS, "message": ...}}
 * and disturbs no other. Many items per line keep the pipe from being what a test waits for.
 */
public final class Pipe {
    public static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** One kind of question: an item in, its result out. */
    @FunctionalInterface
    public interface Op {
        ObjectNode answer(ObjectNode item) throws Exception;
    }

    private Pipe() {
    }

    /** Answer until standard input ends. Standard output is the pipe's alone: grab it at once. */
    public static void serve(Map<String, Op> ops) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out =
            new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.write(MAPPER.writeValueAsString(answer(ops, (ObjectNode) MAPPER.readTree(line))));
            out.write('\n');
            out.flush();
        }
    }

    private static ObjectNode answer(Map<String, Op> ops, ObjectNode question) {
        ObjectNode reply = JSON.objectNode();
        Op op = ops.get(question.path("op").asText());
        if (op == null) {
            return reply.put("error", "no such op; there are " + ops.keySet());
        }
        ArrayNode results = reply.putArray("results");
        question.withArray("/items").forEach(item -> results.add(guarded(op, (ObjectNode) item)));
        return reply;
    }

    private static ObjectNode guarded(Op op, ObjectNode item) {
        try {
            return op.answer(item);
        } catch (Exception | LinkageError e) {
            return error(e);
        }
    }

    /** The error that a client reports, out of the wrapping of its future. */
    public static ObjectNode error(Throwable thrown) {
        boolean wrapped = thrown instanceof ExecutionException && thrown.getCause() != null;
        Throwable cause = wrapped ? thrown.getCause() : thrown;
        return JSON.objectNode().put("error", cause.getClass().getSimpleName())
            .put("message", cause.getMessage());
    }
}
