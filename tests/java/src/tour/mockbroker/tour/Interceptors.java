package mockbroker.tour;

import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Interceptors that a test names in interceptor.classes. */
public final class Interceptors {
    private static final Map<String, int[]> COUNTS = new ConcurrentHashMap<>();

    private Interceptors() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("producer.counted", Interceptors::counted);
    }

    /** {name} to [acknowledged, failed], as the Counter of the producer with that client id saw it. */
    private static ObjectNode counted(ObjectNode item) {
        int[] counts = COUNTS.getOrDefault(item.get("name").asText(), new int[2]);
        return Json.result(List.of(counts[0], counts[1]));
    }

    /** What all of them leave alone. */
    private abstract static class Producing implements ProducerInterceptor<byte[], byte[]> {
        @Override
        public void configure(Map<String, ?> configs) {
            // nothing to be told
        }

        @Override
        public ProducerRecord<byte[], byte[]> onSend(ProducerRecord<byte[], byte[]> record) {
            return record;
        }

        @Override
        public void onAcknowledgement(RecordMetadata metadata, Exception exception) {
            // not of interest
        }

        @Override
        public void close() {
            // nothing to close
        }
    }

    /** Puts the time and a comma before each value. */
    public static final class TimePrefix extends Producing {
        @Override
        public ProducerRecord<byte[], byte[]> onSend(ProducerRecord<byte[], byte[]> record) {
            String value = new String(record.value(), StandardCharsets.UTF_8);
            byte[] prefixed = (System.currentTimeMillis() + "," + value).getBytes(StandardCharsets.UTF_8);
            return new ProducerRecord<>(record.topic(), record.partition(), record.timestamp(),
                record.key(), prefixed, record.headers());
        }
    }

    /** Counts what was acknowledged and what failed. */
    public static final class Counter extends Producing {
        private int[] counts;

        @Override
        public void configure(Map<String, ?> configs) {
            counts = COUNTS.computeIfAbsent((String) configs.get("client.id"), name -> new int[2]);
        }

        @Override
        public void onAcknowledgement(RecordMetadata metadata, Exception exception) {
            counts[exception == null ? 0 : 1]++;
        }
    }

    /** Sends every record to partition 1 of the topic with "-audit" behind its name. */
    public static final class Detour extends Producing {
        @Override
        public ProducerRecord<byte[], byte[]> onSend(ProducerRecord<byte[], byte[]> record) {
            return new ProducerRecord<>(record.topic() + "-audit", 1, record.timestamp(),
                record.key(), record.value(), record.headers());
        }
    }

    /** Hands the application upper case. */
    public static final class Shouting implements ConsumerInterceptor<byte[], byte[]> {
        @Override
        public void configure(Map<String, ?> configs) {
            // nothing to be told
        }

        @Override
        public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
            for (ConsumerRecord<byte[], byte[]> record : records) {
                byte[] value = record.value();
                String text = new String(value, StandardCharsets.UTF_8).toUpperCase(Locale.ROOT);
                System.arraycopy(text.getBytes(StandardCharsets.UTF_8), 0, value, 0, value.length);
            }
            return records;
        }

        @Override
        public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
            // not of interest
        }

        @Override
        public void close() {
            // nothing to close
        }
    }
}
