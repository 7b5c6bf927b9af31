package mockbroker.oracle;

import mockbroker.pipe.Pipe;

import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;

/** Kafka's own classes, asked over a pipe: what would they write, what do they read, what is declared? */
public final class Oracle {
    private Oracle() {
    }

    public static void main(String[] args) throws Exception {
        Map<String, Pipe.Op> ops = new TreeMap<>();
        Messages.register(ops);
        Schemas.register(ops);
        Facts.register(ops);
        registerIfPresent("mockbroker.oracle.RecordBatches", ops);
        registerIfPresent("mockbroker.oracle.InternalRecords", ops);
        registerIfPresent("mockbroker.oracle.ErrorResponses", ops);
        registerIfPresent("mockbroker.oracle.Quotas", ops);
        registerIfPresent("mockbroker.oracle.Assignors", ops);
        registerIfPresent("mockbroker.oracle.TaskAssignors", ops);
        Pipe.serve(ops);
    }

    /** Kafka 4 moved the record classes to another package, so they are compiled for it alone. */
    private static void registerIfPresent(String name, Map<String, Pipe.Op> ops) throws Exception {
        try {
            Class.forName(name).getDeclaredMethod("register", Map.class).invoke(null, ops);
        } catch (ClassNotFoundException e) {
            return;
        }
    }

    static byte[] unhex(String text) {
        return HexFormat.of().parseHex(text);
    }

    static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
