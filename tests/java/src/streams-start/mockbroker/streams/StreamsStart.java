package mockbroker.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The time of an application of four stateful tasks from its start to RUNNING, with
 * `group.protocol=streams`, for the bench: BOOTSTRAP NAME prints one JSON object.
 *
 * <p>An application before it, which is not counted, loads the classes.
 */
public final class StreamsStart {
    private static final int TASKS = 4;

    private StreamsStart() {
    }

    public static void main(String[] args) throws Exception {
        start(args[0], args[1] + "-first");
        double seconds = start(args[0], args[1] + "-second");
        System.out.printf("{\"seconds\": %.9f}%n", seconds);
        System.exit(0);
    }

    private static double start(String bootstrap, String name) throws Exception {
        String topic = name + "-input";
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, TASKS, (short) 1))).all().get();
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(topic).groupByKey().count(Materialized.as(Materialized.StoreType.IN_MEMORY));
        Path folder = Files.createTempDirectory("streams");
        Properties settings = new Properties();
        settings.putAll(Map.of(
            "application.id", name,
            "bootstrap.servers", bootstrap,
            "group.protocol", "streams",
            "state.dir", folder.toString(),
            "default.key.serde", "org.apache.kafka.common.serialization.Serdes$StringSerde",
            "default.value.serde", "org.apache.kafka.common.serialization.Serdes$StringSerde"));
        CountDownLatch running = new CountDownLatch(1);
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.RUNNING) {
                    running.countDown();
                }
            });
            long begun = System.nanoTime();
            streams.start();
            if (!running.await(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("not RUNNING after a minute: " + streams.state());
            }
            double seconds = (System.nanoTime() - begun) / 1e9;
            streams.close(Duration.ofSeconds(10));
            streams.cleanUp();
            return seconds;
        } finally {
            Files.deleteIfExists(folder.resolve(name));
            Files.deleteIfExists(folder);
        }
    }
}
