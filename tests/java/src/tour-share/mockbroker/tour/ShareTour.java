package mockbroker.tour;

import mockbroker.pipe.Pipe;

import java.util.Map;

/** The clients of {@link Tour}, and share consumers, which Kafka has since 4.0 (KIP-932). */
public final class ShareTour {
    private ShareTour() {
    }

    public static void main(String[] args) throws Exception {
        Map<String, Pipe.Op> ops = Tour.ops();
        new ShareConsumers().register(ops);
        AdminShareGroups.register(ops);
        Pipe.serve(ops);
    }
}
