package mockbroker.tour;

import mockbroker.pipe.Pipe;

import java.util.Map;
import java.util.TreeMap;

/**
 * The Java clients, step by step: each op opens, drives or closes a client that a test names.
 *
 * <p>Producers, consumers and admins live until they are closed, so a test can interleave them.
 */
public final class Tour {
    private Tour() {
    }

    public static void main(String[] args) throws Exception {
        Pipe.serve(ops());
    }

    /** The ops of all clients. */
    static Map<String, Pipe.Op> ops() {
        Map<String, Pipe.Op> ops = new TreeMap<>();
        new Producers().register(ops);
        new Consumers().register(ops);
        Interceptors.register(ops);
        AdminTopics.register(ops);
        AdminGroups.register(ops);
        AdminCluster.register(ops);
        AdminTransactions.register(ops);
        Security.register(ops);
        Tools.register(ops);
        return ops;
    }
}
