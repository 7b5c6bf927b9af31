package mockbroker.basic;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Future;

/** What clients of every age can do: create a topic, produce, consume in a group. */
public final class Basic {
    private Basic() {
    }

    public static void main(String[] args) throws Exception {
        Map<String, Pipe.Op> ops = new TreeMap<>();
        ops.put("create", Basic::create);
        ops.put("topics", Basic::topics);
        ops.put("produce", Basic::produce);
        ops.put("consume", Basic::consume);
        Pipe.serve(ops);
    }

    /** {bootstrap, topic, partitions}: creates the topic. */
    private static ObjectNode create(ObjectNode item) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", item.get("bootstrap").asText());
        try (AdminClient admin = AdminClient.create(config)) {
            NewTopic topic = new NewTopic(
                item.get("topic").asText(), item.get("partitions").asInt(), (short) 1);
            admin.createTopics(List.of(topic)).all().get();
            return Pipe.JSON.objectNode();
        }
    }

    /** {bootstrap} to the names of all topics. */
    private static ObjectNode topics(ObjectNode item) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", item.get("bootstrap").asText());
        try (AdminClient admin = AdminClient.create(config)) {
            ObjectNode result = Pipe.JSON.objectNode();
            ArrayNode topics = result.putArray("topics");
            admin.listTopics().names().get().forEach(topics::add);
            return result;
        }
    }

    /** {bootstrap, topic, values, compression, idempotent} to the offsets. */
    private static ObjectNode produce(ObjectNode item) throws Exception {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", item.get("bootstrap").asText(),
            "compression.type", item.get("compression").asText(),
            "enable.idempotence", item.get("idempotent").asText(),
            "acks", "all");
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            item.get("values").forEach(value -> futures.add(producer.send(
                new ProducerRecord<>(item.get("topic").asText(), null, value.asText()))));
            producer.flush();
        }
        ObjectNode result = Pipe.JSON.objectNode();
        ArrayNode offsets = result.putArray("offsets");
        for (Future<RecordMetadata> future : futures) {
            offsets.add(future.get().offset());
        }
        return result;
    }

    /** {bootstrap, group, topic, count} to the values; then a commit. */
    private static ObjectNode consume(ObjectNode item) {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", item.get("bootstrap").asText(),
            "group.id", item.get("group").asText(),
            "enable.auto.commit", "false",
            "auto.offset.reset", "earliest");
        ObjectNode result = Pipe.JSON.objectNode();
        ArrayNode values = result.putArray("values");
        long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(item.get("topic").asText()));
            while (values.size() < item.get("count").asInt() && System.nanoTime() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) {
                    values.add(record.value());
                }
            }
            consumer.commitSync();
        }
        return result;
    }
}
