package mockbroker.tour;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** What a rebalance told a consumer, in order: ["assigned", [partition…]] and so on. */
final class Listener implements ConsumerRebalanceListener {
    private final List<Object> events = new ArrayList<>();
    private final List<Object> times = new ArrayList<>();
    private Consumer<?, ?> consumer;
    private List<TopicPartition> restored = List.of();

    /** Look up the end of each of these whenever partitions were assigned, one after the other. */
    void restore(Consumer<?, ?> by, List<TopicPartition> partitions) {
        consumer = by;
        restored = partitions;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        add("assigned", partitions);
        for (TopicPartition partition : restored) {
            String ended = "restored";
            try {
                consumer.endOffsets(List.of(partition));
            } catch (TimeoutException e) {
                ended = "timed out";
            }
            events.add(List.of(ended, partition.toString(), System.currentTimeMillis()));
        }
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        add("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        add("lost", partitions);
    }

    private void add(String kind, Collection<TopicPartition> partitions) {
        times.add(List.of(kind, System.currentTimeMillis()));
        events.add(List.of(kind, partitions.stream().map(TopicPartition::toString).sorted().toList()));
    }

    /** When each of the events was, those that were drained included: ["assigned", ms] and so on. */
    List<Object> times() {
        return List.copyOf(times);
    }

    List<Object> drain() {
        List<Object> drained = new ArrayList<>(events);
        events.clear();
        return drained;
    }
}
