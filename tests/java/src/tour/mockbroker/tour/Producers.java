package mockbroker.tour;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;

/** Producers by name. */
final class Producers {
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    void register(Map<String, Pipe.Op> ops) {
        ops.put("producer.open", this::open);
        ops.put("producer.send", this::send);
        ops.put("producer.sendMany", this::sendMany);
        ops.put("producer.partitionsFor", this::partitionsFor);
        ops.put("producer.metric", this::metric);
        ops.put("producer.initTransactions", item -> {
            producer(item).initTransactions();
            return Json.object();
        });
        ops.put("producer.begin", item -> {
            producer(item).beginTransaction();
            return Json.object();
        });
        ops.put("producer.commit", item -> {
            producer(item).commitTransaction();
            return Json.object();
        });
        ops.put("producer.abort", item -> {
            producer(item).abortTransaction();
            return Json.object();
        });
        ops.put("producer.sendOffsets", this::sendOffsets);
        ops.put("producer.close", this::close);
    }

    private KafkaProducer<byte[], byte[]> producer(ObjectNode item) {
        return producers.get(item.get("name").asText());
    }

    private ObjectNode open(ObjectNode item) {
        producers.put(item.get("name").asText(), new KafkaProducer<>(
            Json.configs(item), new ByteArraySerializer(), new ByteArraySerializer()));
        return Json.object();
    }

    /** {name, records: [{topic, partition?, timestamp?, key?, value?, headers?}]}, then a flush. */
    private ObjectNode send(ObjectNode item) throws Exception {
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        for (JsonNode record : item.get("records")) {
            futures.add(sent(producer(item), record(record)));
        }
        producer(item).flush();
        ArrayNode results = Pipe.JSON.arrayNode();
        for (Future<RecordMetadata> future : futures) {
            results.add(outcome(future));
        }
        return Json.result(results);
    }

    /** A producer that has been refused already throws, with the refusal as the cause. */
    private static Future<RecordMetadata> sent(
        KafkaProducer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> record) {
        try {
            return producer.send(record);
        } catch (KafkaException e) {
            if (e.getCause() instanceof KafkaException refusal) {
                return CompletableFuture.failedFuture(refusal);
            }
            throw e;
        }
    }

    /** {name, topic, count, size, keys?}: values are their number, padded to the size. */
    private ObjectNode sendMany(ObjectNode item) throws Exception {
        int count = item.get("count").asInt();
        int size = item.path("size").asInt(1);
        String topic = item.get("topic").asText();
        List<Future<RecordMetadata>> futures = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            byte[] value = String.format("%-" + size + "d", i).getBytes();
            futures.add(producer(item).send(new ProducerRecord<>(topic, value)));
        }
        Map<String, Long> lastOffsets = new HashMap<>();
        for (Future<RecordMetadata> future : futures) {
            RecordMetadata metadata = future.get();
            lastOffsets.merge(metadata.topic() + "-" + metadata.partition(), metadata.offset(), Math::max);
        }
        return Json.result(lastOffsets);
    }

    /** {name, offsets: {partition: offset}, group, generation?, member?, instance?}. */
    private ObjectNode sendOffsets(ObjectNode item) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        item.get("offsets").properties().forEach(entry -> offsets.put(
            Json.partition(entry.getKey()), new OffsetAndMetadata(entry.getValue().asLong())));
        producer(item).sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(
            item.get("group").asText(), item.path("generation").asInt(-1),
            item.path("member").asText(""),
            Optional.ofNullable(item.path("instance").textValue())));
        return Json.object();
    }

    private static ProducerRecord<byte[], byte[]> record(JsonNode record) {
        List<Header> headers = new ArrayList<>();
        record.path("headers").forEach(
            pair -> headers.add(new RecordHeader(pair.get(0).asText(), Json.bytes(pair.get(1)))));
        return new ProducerRecord<>(record.get("topic").asText(),
            record.has("partition") ? record.get("partition").asInt() : null,
            record.has("timestamp") ? record.get("timestamp").asLong() : null,
            Json.bytes(record.get("key")), Json.bytes(record.get("value")), headers);
    }

    private static ObjectNode outcome(Future<RecordMetadata> future) throws InterruptedException {
        try {
            RecordMetadata metadata = future.get();
            return Json.object().put("topic", metadata.topic()).put("partition", metadata.partition())
                .put("offset", metadata.hasOffset() ? metadata.offset() : null)
                .put("timestamp", metadata.hasTimestamp() ? metadata.timestamp() : null);
        } catch (ExecutionException e) {
            return Pipe.error(e);
        }
    }

    private ObjectNode partitionsFor(ObjectNode item) {
        ArrayNode partitions = Pipe.JSON.arrayNode();
        producer(item).partitionsFor(item.get("topic").asText())
            .forEach(info -> partitions.add(Consumers.partitionInfo(info)));
        return Json.result(partitions);
    }

    /** {name, metric}: the largest value of the metrics of that name; 0 if there are none. */
    private ObjectNode metric(ObjectNode item) {
        String wanted = item.get("metric").asText();
        double largest = producer(item).metrics().entrySet().stream()
            .filter(entry -> entry.getKey().name().equals(wanted))
            .mapToDouble(entry -> (Double) entry.getValue().metricValue()).max().orElse(0);
        return Json.result(largest);
    }

    private ObjectNode close(ObjectNode item) {
        producers.remove(item.get("name").asText()).close(Duration.ofSeconds(10));
        return Json.object();
    }
}
