package mockbroker.tour;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;

/** Kafka's values as JSON: a partition is "topic-0", bytes are UTF-8 text, a node its id. */
final class Json {
    private Json() {
    }

    static ObjectNode object() {
        return Pipe.JSON.objectNode();
    }

    static ObjectNode object(Map<?, ?> map) {
        Map<String, Object> sorted = new TreeMap<>();
        map.forEach((key, value) -> sorted.put(String.valueOf(key), value));
        ObjectNode node = object();
        sorted.forEach((key, value) -> node.set(key, value(value)));
        return node;
    }

    /** {"result": value}: what most ops answer. */
    static ObjectNode result(Object value) {
        ObjectNode node = object();
        node.set("result", value(value));
        return node;
    }

    static JsonNode value(Object value) {
        if (value instanceof JsonNode node) {
            return node;
        } else if (value == null) {
            return Pipe.JSON.nullNode();
        } else if (value instanceof Boolean bool) {
            return Pipe.JSON.booleanNode(bool);
        } else if (value instanceof Double number) {
            return Pipe.JSON.numberNode(number);
        } else if (value instanceof Number number) {
            return Pipe.JSON.numberNode(number.longValue());
        } else if (value instanceof byte[] bytes) {
            return Pipe.JSON.textNode(new String(bytes, StandardCharsets.UTF_8));
        } else if (value instanceof Map<?, ?> map) {
            return object(map);
        } else if (value instanceof Collection<?> collection) {
            ArrayNode array = Pipe.JSON.arrayNode();
            collection.forEach(element -> array.add(value(element)));
            return array;
        } else if (value instanceof KafkaFuture<?> future) {
            return outcome(future);
        }
        return kafka(value);
    }

    private static JsonNode kafka(Object value) {
        if (value instanceof Optional<?> optional) {
            return value(optional.orElse(null));
        } else if (value instanceof OptionalInt optional) {
            return value(optional.isPresent() ? optional.getAsInt() : null);
        } else if (value instanceof OptionalLong optional) {
            return value(optional.isPresent() ? optional.getAsLong() : null);
        } else if (value instanceof Node node) {
            return value(node.id());
        } else if (value instanceof OffsetAndMetadata offset) {
            ObjectNode node = object().put("offset", offset.offset());
            node.put("metadata", offset.metadata());
            node.set("leaderEpoch", value(offset.leaderEpoch()));
            return node;
        }
        return Pipe.JSON.textNode(value.toString());
    }

    /** A future's value, or {"error": …} for what it failed with. */
    static JsonNode outcome(KafkaFuture<?> future) {
        try {
            return value(future.get());
        } catch (ExecutionException e) {
            return Pipe.error(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static Map<String, Object> configs(ObjectNode item) {
        Map<String, Object> configs = new HashMap<>();
        item.path("config").properties().forEach(e -> configs.put(e.getKey(), e.getValue().asText()));
        return configs;
    }

    static Map<String, String> strings(JsonNode node) {
        Map<String, String> strings = new HashMap<>();
        node.properties().forEach(e -> strings.put(e.getKey(), e.getValue().asText()));
        return strings;
    }

    static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(node -> texts.add(node.asText()));
        return texts;
    }

    static byte[] bytes(JsonNode text) {
        boolean absent = text == null || text.isMissingNode() || text.isNull();
        return absent ? null : text.asText().getBytes(StandardCharsets.UTF_8);
    }

    /** "topic-0", as TopicPartition prints itself; the topic may hold dashes of its own. */
    static TopicPartition partition(String text) {
        int dash = text.lastIndexOf('-');
        return new TopicPartition(text.substring(0, dash), Integer.parseInt(text.substring(dash + 1)));
    }

    static List<TopicPartition> partitions(JsonNode array) {
        return texts(array).stream().map(Json::partition).toList();
    }

    static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode map) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        map.properties().forEach(e -> {
            JsonNode value = e.getValue();
            offsets.put(partition(e.getKey()), value.isNumber()
                ? new OffsetAndMetadata(value.asLong())
                : new OffsetAndMetadata(value.get("offset").asLong(),
                    value.path("metadata").asText("")));
        });
        return offsets;
    }
}
