package mockbroker.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.TreeMap;

/**
 * Kafka's own classes behind a pipe: a line of JSON in, a line of JSON out.
 *
 * <p>A question is {@code {"op": NAME, "items": [...]}}; the answer {@code {"results": [...]}} holds
 * one result per item, in order. An item that fails gives {@code {"error": "..."}} and disturbs no
 * other. Many items per line keep the pipe from being what a test waits for.
 */
public final class Oracle {
    static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** One kind of question: an item in, its result out. */
    interface Op {
        ObjectNode answer(ObjectNode item) throws Exception;
    }

    private Oracle() {
    }

    public static void main(String[] args) throws Exception {
        TreeMap<String, Op> ops = new TreeMap<>();
        Messages.register(ops);
        Schemas.register(ops);
        Facts.register(ops);
        registerIfPresent("mockbroker.oracle.RecordBatches", ops);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out =
            new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.write(MAPPER.writeValueAsString(answer(ops, (ObjectNode) MAPPER.readTree(line))));
            out.write('\n');
            out.flush();
        }
    }

    private static ObjectNode answer(TreeMap<String, Op> ops, ObjectNode question) {
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
            return JSON.objectNode().put("error", e.toString());
        }
    }

    /** Kafka 4 moved the record classes to another package, so they are compiled for it alone. */
    private static void registerIfPresent(String name, TreeMap<String, Op> ops) throws Exception {
        try {
            Class.forName(name).getDeclaredMethod("register", java.util.Map.class).invoke(null, ops);
        } catch (ClassNotFoundException e) {
            return;
        }
    }

    static byte[] unhex(String text) {
        return java.util.HexFormat.of().parseHex(text);
    }

    static String hex(byte[] bytes) {
        return java.util.HexFormat.of().formatHex(bytes);
    }
}
