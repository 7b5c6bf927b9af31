package mockbroker.tour;

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.common.TopicPartition;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** What a rebalance told a consumer, in order: ["assigned", [partition…]] and so on. */
final class Listener implements ConsumerRebalanceListener {
    private final List<Object> events = new ArrayList<>();

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        add("assigned", partitions);
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
        events.add(List.of(kind, partitions.stream().map(TopicPartition::toString).sorted().toList()));
    }

    List<Object> drain() {
        List<Object> drained = new ArrayList<>(events);
        events.clear();
        return drained;
    }
}
