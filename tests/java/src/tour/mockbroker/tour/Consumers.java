package mockbroker.tour;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Pattern;

/** Consumers by name. One thread drives them all, as KafkaConsumer wants it. */
final class Consumers {
    private static final Duration SHORT = Duration.ofMillis(20);

    private final Map<String, KafkaConsumer<byte[], byte[]>> consumers = new HashMap<>();
    private final Map<String, Listener> listeners = new HashMap<>();

    void register(Map<String, Pipe.Op> ops) {
        ops.put("consumer.open", this::open);
        ops.put("consumer.subscribe", this::subscribe);
        ops.put("consumer.assign", this::assign);
        ops.put("consumer.poll", this::poll);
        ops.put("consumer.settle", this::settle);
        ops.put("consumer.events", item -> Json.result(listener(item).drain()));
        ops.put("consumer.times", item -> Json.result(listener(item).times()));
        ops.put("consumer.assignment", item -> Json.result(sorted(consumer(item).assignment())));
        ops.put("consumer.seek", this::seek);
        ops.put("consumer.position", this::position);
        ops.put("consumer.committed", this::committed);
        ops.put("consumer.commit", this::commit);
        ops.put("consumer.commitAsync", this::commitAsync);
        ops.put("consumer.offsetsForTimes", this::offsetsForTimes);
        ops.put("consumer.beginningOffsets", item -> Json.result(
            consumer(item).beginningOffsets(Json.partitions(item.get("partitions")))));
        ops.put("consumer.endOffsets", item -> Json.result(
            consumer(item).endOffsets(Json.partitions(item.get("partitions")))));
        ops.put("consumer.partitionsFor", this::partitionsFor);
        ops.put("consumer.listTopics", item -> Json.result(
            new TreeSet<>(consumer(item).listTopics().keySet())));
        ops.put("consumer.pause", item -> pausing(item, true));
        ops.put("consumer.resume", item -> pausing(item, false));
        ops.put("consumer.groupMetadata", this::groupMetadata);
        ops.put("consumer.enforceRebalance", this::enforceRebalance);
        ops.put("consumer.metric", this::metric);
        ops.put("consumer.unsubscribe", item -> {
            consumer(item).unsubscribe();
            return Json.object();
        });
        ops.put("consumer.close", this::close);
    }

    private KafkaConsumer<byte[], byte[]> consumer(ObjectNode item) {
        return consumers.get(item.get("name").asText());
    }

    private Listener listener(ObjectNode item) {
        return listeners.get(item.get("name").asText());
    }

    private ObjectNode open(ObjectNode item) {
        String name = item.get("name").asText();
        consumers.put(name, new KafkaConsumer<>(
            Json.configs(item), new ByteArrayDeserializer(), new ByteArrayDeserializer()));
        listeners.put(name, new Listener());
        return Json.object();
    }

    /**
     * {name, topics | pattern: by the client | re2: by the coordinator, restore?: [partition…]}:
     * the ends of those are looked up in the callback of each assignment.
     */
    private ObjectNode subscribe(ObjectNode item) throws ReflectiveOperationException {
        if (item.has("restore")) {
            listener(item).restore(consumer(item), Json.partitions(item.get("restore")));
        }
        if (item.has("re2")) {
            // Not there yet in 3.9.
            Class<?> type = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
            Object pattern = type.getConstructor(String.class).newInstance(item.get("re2").asText());
            KafkaConsumer.class.getMethod("subscribe", type, ConsumerRebalanceListener.class)
                .invoke(consumer(item), pattern, listener(item));
        } else if (item.has("pattern")) {
            Pattern pattern = Pattern.compile(item.get("pattern").asText());
            consumer(item).subscribe(pattern, listener(item));
        } else {
            consumer(item).subscribe(Json.texts(item.get("topics")), listener(item));
        }
        return Json.object();
    }

    private ObjectNode assign(ObjectNode item) {
        consumer(item).assign(Json.partitions(item.get("partitions")));
        return Json.object();
    }

    /** {name, count, timeoutMs}: poll until `count` records have come, or the time is up. */
    private ObjectNode poll(ObjectNode item) {
        int wanted = item.path("count").asInt(1);
        long deadline = deadline(item);
        ArrayNode records = Pipe.JSON.arrayNode();
        do {
            consumer(item).poll(SHORT).forEach(record -> records.add(record(record)));
        } while (records.size() < wanted && System.nanoTime() < deadline);
        return Json.result(records);
    }

    static ObjectNode record(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = Json.object().put("topic", record.topic()).put("partition", record.partition())
            .put("offset", record.offset()).put("timestamp", record.timestamp())
            .put("timestampType", record.timestampType().name);
        node.set("leaderEpoch", Json.value(record.leaderEpoch()));
        node.set("key", Json.value(record.key()));
        node.set("value", Json.value(record.value()));
        ArrayNode headers = node.putArray("headers");
        record.headers().forEach(
            header -> headers.addArray().add(header.key()).add(Json.value(header.value())));
        return node;
    }

    /**
     * {names, partitions, timeoutMs}: poll each in turn until together they own exactly that many
     * partitions, none of them twice, and nobody's generation moves any more.
     */
    private ObjectNode settle(ObjectNode item) {
        List<String> names = Json.texts(item.get("names"));
        int wanted = item.get("partitions").asInt();
        long deadline = deadline(item);
        Map<String, Set<String>> before = Map.of();
        while (System.nanoTime() < deadline) {
            names.forEach(name -> consumers.get(name).poll(SHORT));
            Map<String, Set<String>> now = new HashMap<>();
            Set<Integer> generations = new HashSet<>();
            for (String name : names) {
                now.put(name, sorted(consumers.get(name).assignment()));
                generations.add(consumers.get(name).groupMetadata().generationId());
            }
            Set<String> all = new HashSet<>();
            now.values().forEach(all::addAll);
            int sum = now.values().stream().mapToInt(Set::size).sum();
            boolean whole = sum == wanted && all.size() == wanted && generations.size() == 1;
            if (whole && now.equals(before)) {
                return Json.result(now);
            }
            before = whole ? now : Map.of();
        }
        throw new IllegalStateException("not settled: " + before + assignments(names));
    }

    private String assignments(List<String> names) {
        StringBuilder text = new StringBuilder();
        names.forEach(name -> text.append(' ').append(name)
            .append(sorted(consumers.get(name).assignment()))
            .append(consumers.get(name).groupMetadata().generationId()));
        return text.toString();
    }

    /** {name, partition, offset | to: "beginning" | "end"}. */
    private ObjectNode seek(ObjectNode item) {
        TopicPartition partition = Json.partition(item.get("partition").asText());
        switch (item.path("to").asText()) {
            case "beginning" -> consumer(item).seekToBeginning(List.of(partition));
            case "end" -> consumer(item).seekToEnd(List.of(partition));
            default -> consumer(item).seek(partition, item.get("offset").asLong());
        }
        return Json.object();
    }

    private ObjectNode position(ObjectNode item) {
        return Json.result(consumer(item).position(Json.partition(item.get("partition").asText())));
    }

    private ObjectNode committed(ObjectNode item) {
        List<TopicPartition> partitions = Json.partitions(item.get("partitions"));
        return Json.result(consumer(item).committed(new HashSet<>(partitions)));
    }

    private ObjectNode commit(ObjectNode item) {
        if (item.has("offsets")) {
            consumer(item).commitSync(Json.offsets(item.get("offsets")));
        } else {
            consumer(item).commitSync();
        }
        return Json.object();
    }

    /** Commit asynchronously and poll until the callback says what became of it. */
    private ObjectNode commitAsync(ObjectNode item) throws Exception {
        CompletableFuture<Map<TopicPartition, OffsetAndMetadata>> done = new CompletableFuture<>();
        long deadline = deadline(item);
        consumer(item).commitAsync(Json.offsets(item.get("offsets")), (offsets, error) -> {
            if (error == null) {
                done.complete(offsets);
            } else {
                done.completeExceptionally(error);
            }
        });
        while (!done.isDone() && System.nanoTime() < deadline) {
            consumer(item).poll(SHORT);
        }
        return Json.result(done.getNow(Map.of()));
    }

    private ObjectNode offsetsForTimes(ObjectNode item) {
        Map<TopicPartition, Long> times = new HashMap<>();
        item.get("times").properties().forEach(
            e -> times.put(Json.partition(e.getKey()), e.getValue().asLong()));
        Map<String, Object> found = new HashMap<>();
        consumer(item).offsetsForTimes(times).forEach((partition, offset) -> found.put(
            partition.toString(), offset == null ? null : Arrays.asList(
                offset.offset(), offset.timestamp(), offset.leaderEpoch())));
        return Json.result(found);
    }

    private ObjectNode partitionsFor(ObjectNode item) {
        ArrayNode partitions = Pipe.JSON.arrayNode();
        consumer(item).partitionsFor(item.get("topic").asText())
            .forEach(info -> partitions.add(partitionInfo(info)));
        return Json.result(partitions);
    }

    static ObjectNode partitionInfo(PartitionInfo info) {
        ObjectNode node = Json.object().put("partition", info.partition());
        node.put("leader", info.leader() == null ? -1 : info.leader().id());
        node.set("replicas", Json.value(Arrays.asList(info.replicas())));
        node.set("isr", Json.value(Arrays.asList(info.inSyncReplicas())));
        return node;
    }

    private ObjectNode pausing(ObjectNode item, boolean pause) {
        List<TopicPartition> partitions = Json.partitions(item.get("partitions"));
        if (pause) {
            consumer(item).pause(partitions);
        } else {
            consumer(item).resume(partitions);
        }
        return Json.result(sorted(consumer(item).paused()));
    }

    private ObjectNode groupMetadata(ObjectNode item) {
        var metadata = consumer(item).groupMetadata();
        ObjectNode node = Json.object().put("generation", metadata.generationId())
            .put("member", metadata.memberId());
        node.set("instance", Json.value(metadata.groupInstanceId()));
        return node;
    }

    private ObjectNode enforceRebalance(ObjectNode item) {
        consumer(item).enforceRebalance(item.path("reason").asText("the test asks for it"));
        return Json.object();
    }

    /** {name, metric}: the largest value of the metrics of that name; 0 if there are none. */
    private ObjectNode metric(ObjectNode item) {
        String wanted = item.get("metric").asText();
        double largest = consumer(item).metrics().entrySet().stream()
            .filter(entry -> entry.getKey().name().equals(wanted))
            .mapToDouble(entry -> (Double) entry.getValue().metricValue()).max().orElse(0);
        return Json.result(largest);
    }

    private ObjectNode close(ObjectNode item) {
        String name = item.get("name").asText();
        listeners.remove(name);
        consumers.remove(name).close(Duration.ofSeconds(10));
        return Json.object();
    }

    private static Set<String> sorted(Set<TopicPartition> partitions) {
        Set<String> names = new TreeSet<>();
        partitions.forEach(partition -> names.add(partition.toString()));
        return names;
    }

    private static long deadline(JsonNode item) {
        return System.nanoTime() + Duration.ofMillis(item.path("timeoutMs").asLong(20_000)).toNanos();
    }
}
