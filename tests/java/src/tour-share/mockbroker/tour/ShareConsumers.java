package mockbroker.tour;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** Share consumers by name. One thread drives them all, as KafkaShareConsumer wants it. */
final class ShareConsumers {
    private static final Duration SHORT = Duration.ofMillis(20);

    private final Map<String, KafkaShareConsumer<byte[], byte[]>> consumers = new HashMap<>();
    /** The records that each polled, by partition and offset: only records are acknowledged. */
    private final Map<String, Map<String, ConsumerRecord<byte[], byte[]>>> records = new HashMap<>();
    /** What the callback of each was told: [partition, offsets, error or null]. */
    private final Map<String, ArrayNode> told = new HashMap<>();

    void register(Map<String, Pipe.Op> ops) {
        ops.put("share.open", this::open);
        ops.put("share.subscribe", item -> {
            consumer(item).subscribe(Json.texts(item.get("topics")));
            return Json.object();
        });
        ops.put("share.poll", this::poll);
        ops.put("share.pollAll", this::pollAll);
        ops.put("share.acknowledge", this::acknowledge);
        ops.put("share.commit", item -> Json.result(committed(consumer(item))));
        ops.put("share.commitAsync", item -> {
            consumer(item).commitAsync();
            return Json.object();
        });
        ops.put("share.told", item -> Json.result(drained(item.get("name").asText())));
        ops.put("share.lockTimeout", item -> Json.result(
            consumer(item).acquisitionLockTimeoutMs().orElse(null)));
        ops.put("share.close", this::close);
    }

    private KafkaShareConsumer<byte[], byte[]> consumer(ObjectNode item) {
        return consumers.get(item.get("name").asText());
    }

    private ObjectNode open(ObjectNode item) {
        String name = item.get("name").asText();
        KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(
            Json.configs(item), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        drained(name);
        records.put(name, new HashMap<>());
        consumer.setAcknowledgementCommitCallback((offsets, error) -> offsets.forEach(
            (partition, each) -> {
                ArrayNode event = told.get(name).addArray();
                event.add(partition.topic() + "-" + partition.partition());
                event.add(Json.value(new TreeSet<>(each)));
                event.add(error == null ? null : error.getClass().getSimpleName());
            }));
        consumers.put(name, consumer);
        return Json.object();
    }

    private ArrayNode drained(String name) {
        ArrayNode before = told.put(name, Pipe.JSON.arrayNode());
        return before == null ? Pipe.JSON.arrayNode() : before;
    }

    /**
     * {name, count, timeoutMs, type?}: poll until `count` records have come, or the time is up, and
     * acknowledge each with the type. Without one, a member with explicit acknowledgement may be
     * given records by one poll only.
     */
    private ObjectNode poll(ObjectNode item) {
        int wanted = item.path("count").asInt(1);
        long deadline = deadline(item);
        ArrayNode records = Pipe.JSON.arrayNode();
        do {
            polled(item.get("name").asText(), item, records);
        } while (records.size() < wanted && System.nanoTime() < deadline);
        return Json.result(records);
    }

    /** {names, count, timeoutMs, type?}: the same in turn, until together they have as many. */
    private ObjectNode pollAll(ObjectNode item) {
        List<String> names = Json.texts(item.get("names"));
        int wanted = item.path("count").asInt(1);
        long deadline = deadline(item);
        Map<String, ArrayNode> records = new HashMap<>();
        names.forEach(name -> records.put(name, Pipe.JSON.arrayNode()));
        int sum;
        do {
            names.forEach(name -> polled(name, item, records.get(name)));
            sum = records.values().stream().mapToInt(ArrayNode::size).sum();
        } while (sum < wanted && System.nanoTime() < deadline);
        return Json.result(records);
    }

    private void polled(String name, ObjectNode item, ArrayNode polled) {
        KafkaShareConsumer<byte[], byte[]> consumer = consumers.get(name);
        consumer.poll(SHORT).forEach(record -> {
            polled.add(record(record));
            records.get(name).put(
                record.topic() + "-" + record.partition() + "@" + record.offset(), record);
            if (item.has("type")) {
                consumer.acknowledge(record, type(item));
            }
        });
    }

    private static ObjectNode record(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = Consumers.record(record);
        node.set("deliveryCount", Json.value(record.deliveryCount().orElse(null)));
        return node;
    }

    private static AcknowledgeType type(ObjectNode item) {
        return AcknowledgeType.valueOf(item.get("type").asText());
    }

    /** {name, type, partition, offsets}: records that were polled. */
    private ObjectNode acknowledge(ObjectNode item) {
        for (JsonNode offset : item.get("offsets")) {
            consumer(item).acknowledge(records.get(item.get("name").asText())
                .get(item.get("partition").asText() + "@" + offset.asLong()), type(item));
        }
        return Json.object();
    }

    /** Each partition's error, or null. */
    private static Map<String, Object> committed(KafkaShareConsumer<byte[], byte[]> consumer) {
        Map<String, Object> results = new HashMap<>();
        consumer.commitSync().forEach((partition, error) -> results.put(
            partition.topic() + "-" + partition.partition(),
            error.map(each -> (Object) each.getClass().getSimpleName()).orElse(null)));
        return results;
    }

    /** Returns what the callback was told last. */
    private ObjectNode close(ObjectNode item) {
        String name = item.get("name").asText();
        records.remove(name);
        consumers.remove(name).close(Duration.ofSeconds(10));
        return Json.result(drained(name));
    }

    private static long deadline(JsonNode item) {
        return System.nanoTime() + Duration.ofMillis(item.path("timeoutMs").asLong(20_000)).toNanos();
    }
}
