package mockbroker.tour;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DeletedRecords;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/** Admin's topics, their configs, their records and offsets. */
final class AdminTopics {
    private AdminTopics() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("admin.createTopics", AdminTopics::createTopics);
        ops.put("admin.deleteTopics", AdminTopics::deleteTopics);
        ops.put("admin.listTopics", AdminTopics::listTopics);
        ops.put("admin.describeTopics", AdminTopics::describeTopics);
        ops.put("admin.createPartitions", AdminTopics::createPartitions);
        ops.put("admin.describeConfigs", AdminTopics::describeConfigs);
        ops.put("admin.incrementalAlterConfigs", AdminTopics::alterConfigs);
        ops.put("admin.listOffsets", AdminTopics::listOffsets);
        ops.put("admin.deleteRecords", AdminTopics::deleteRecords);
        ops.put("admin.close", Admins::close);
    }

    /** {topics: [{name, partitions?, replicas? | assignments?, configs?}], validateOnly?}. */
    private static ObjectNode createTopics(ObjectNode item) {
        List<NewTopic> topics = new ArrayList<>();
        item.get("topics").forEach(topic -> topics.add(newTopic(topic)));
        CreateTopicsOptions options =
            new CreateTopicsOptions().validateOnly(item.path("validateOnly").asBoolean());
        CreateTopicsResult result = Admins.of(item).createTopics(topics, options);
        Map<String, Object> created = new HashMap<>();
        result.values().forEach((name, future) -> created.put(name, created(result, name, future)));
        return Json.result(created);
    }

    private static JsonNode created(CreateTopicsResult result, String name, KafkaFuture<Void> future) {
        JsonNode outcome = Json.outcome(future);
        if (outcome.has("error")) {
            return outcome;
        }
        ObjectNode node = Json.object();
        node.set("id", Json.outcome(result.topicId(name)));
        node.set("partitions", Json.outcome(result.numPartitions(name)));
        node.set("replicas", Json.outcome(result.replicationFactor(name)));
        node.set("configs", Json.outcome(result.config(name).thenApply(AdminTopics::entries)));
        return node;
    }

    private static NewTopic newTopic(JsonNode topic) {
        String name = topic.get("name").asText();
        NewTopic created;
        if (topic.has("assignments")) {
            Map<Integer, List<Integer>> assignments = new HashMap<>();
            topic.get("assignments").properties().forEach(e -> {
                List<Integer> replicas = new ArrayList<>();
                e.getValue().forEach(replica -> replicas.add(replica.asInt()));
                assignments.put(Integer.parseInt(e.getKey()), replicas);
            });
            created = new NewTopic(name, assignments);
        } else {
            created = new NewTopic(name, topic.path("partitions").asInt(-1),
                (short) topic.path("replicas").asInt(-1));
        }
        return created.configs(Json.strings(topic.path("configs")));
    }

    /** {topics: [name…]} or {ids: [uuid…]}. */
    private static ObjectNode deleteTopics(ObjectNode item) {
        if (item.has("ids")) {
            return Json.result(Admins.of(item).deleteTopics(ids(item)).topicIdValues());
        }
        return Json.result(Admins.of(item).deleteTopics(
            TopicCollection.ofTopicNames(Json.texts(item.get("topics")))).topicNameValues());
    }

    private static TopicCollection ids(ObjectNode item) {
        return TopicCollection.ofTopicIds(
            Json.texts(item.get("ids")).stream().map(Uuid::fromString).toList());
    }

    private static ObjectNode listTopics(ObjectNode item) throws Exception {
        ListTopicsOptions options =
            new ListTopicsOptions().listInternal(item.path("internal").asBoolean());
        return Json.result(new TreeSet<>(Admins.of(item).listTopics(options).names().get()));
    }

    /** {topics: [name…]} or {ids: [uuid…]}, {pageSize?}. */
    private static ObjectNode describeTopics(ObjectNode item) {
        DescribeTopicsOptions options = new DescribeTopicsOptions()
            .partitionSizeLimitPerResponse(item.path("pageSize").asInt(2000));
        Map<?, KafkaFuture<TopicDescription>> futures = item.has("ids")
            ? Admins.of(item).describeTopics(ids(item), options).topicIdValues()
            : Admins.of(item).describeTopics(
                TopicCollection.ofTopicNames(Json.texts(item.get("topics"))), options).topicNameValues();
        Map<Object, Object> described = new HashMap<>();
        futures.forEach((key, future) -> described.put(key, future.thenApply(AdminTopics::description)));
        return Json.result(described);
    }

    private static ObjectNode description(TopicDescription topic) {
        ObjectNode node = Json.object().put("name", topic.name()).put("id", topic.topicId().toString())
            .put("internal", topic.isInternal());
        ArrayNode partitions = node.putArray("partitions");
        topic.partitions().forEach(info -> {
            ObjectNode partition = partitions.addObject().put("partition", info.partition());
            partition.set("leader", Json.value(info.leader()));
            partition.set("replicas", Json.value(info.replicas()));
            partition.set("isr", Json.value(info.isr()));
            partition.set("elr", Json.value(info.elr()));
        });
        return node;
    }

    /** {counts: {topic: total}, validateOnly?}. */
    private static ObjectNode createPartitions(ObjectNode item) {
        Map<String, NewPartitions> counts = new HashMap<>();
        item.get("counts").properties().forEach(
            e -> counts.put(e.getKey(), NewPartitions.increaseTo(e.getValue().asInt())));
        return Json.result(Admins.of(item).createPartitions(counts).values());
    }

    private static ConfigResource resource(JsonNode node) {
        return new ConfigResource(ConfigResource.Type.valueOf(node.path("type").asText("TOPIC")),
            node.get("name").asText());
    }

    /** {resources: [{type?, name}]}. */
    private static ObjectNode describeConfigs(ObjectNode item) {
        Collection<ConfigResource> resources = new ArrayList<>();
        item.get("resources").forEach(node -> resources.add(resource(node)));
        DescribeConfigsOptions options = new DescribeConfigsOptions()
            .includeSynonyms(true).includeDocumentation(item.path("documentation").asBoolean());
        Map<Object, Object> described = new HashMap<>();
        Admins.of(item).describeConfigs(resources, options).values().forEach((resource, future) ->
            described.put(resource.name(), future.thenApply(AdminTopics::entries)));
        return Json.result(described);
    }

    private static ObjectNode entries(Config config) {
        Map<String, Object> entries = new TreeMap<>();
        config.entries().forEach(entry -> entries.put(entry.name(), entry(entry)));
        return Json.object(entries);
    }

    private static ObjectNode entry(ConfigEntry entry) {
        ObjectNode node = Json.object().put("value", entry.value())
            .put("source", entry.source().name())
            // CreateTopics tells no types.
            .put("type", entry.type() == null ? null : entry.type().name())
            .put("readOnly", entry.isReadOnly()).put("sensitive", entry.isSensitive());
        ArrayNode synonyms = node.putArray("synonyms");
        entry.synonyms().forEach(synonym -> synonyms.addArray()
            .add(synonym.name()).add(synonym.value()).add(synonym.source().name()));
        return node;
    }

    /** {resource: {type?, name}, ops: [[SET|DELETE|APPEND|SUBTRACT, key, value]]}. */
    private static ObjectNode alterConfigs(ObjectNode item) {
        List<AlterConfigOp> ops = new ArrayList<>();
        item.get("ops").forEach(op -> ops.add(new AlterConfigOp(
            new ConfigEntry(op.get(1).asText(), op.get(2).isNull() ? null : op.get(2).asText()),
            AlterConfigOp.OpType.valueOf(op.get(0).asText()))));
        ConfigResource resource = resource(item.get("resource"));
        return Json.result(
            Admins.of(item).incrementalAlterConfigs(Map.of(resource, ops)).values().get(resource));
    }

    /** {specs: {partition: "earliest"|"latest"|"max"|timestamp}}. */
    private static ObjectNode listOffsets(ObjectNode item) {
        Map<TopicPartition, OffsetSpec> specs = new HashMap<>();
        item.get("specs").properties().forEach(
            e -> specs.put(Json.partition(e.getKey()), spec(e.getValue())));
        var result = Admins.of(item).listOffsets(specs);
        Map<Object, Object> offsets = new HashMap<>();
        specs.keySet().forEach(partition -> offsets.put(
            partition, result.partitionResult(partition).thenApply(AdminTopics::offset)));
        return Json.result(offsets);
    }

    private static OffsetSpec spec(JsonNode spec) {
        return switch (spec.asText()) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            case "max" -> OffsetSpec.maxTimestamp();
            default -> OffsetSpec.forTimestamp(spec.asLong());
        };
    }

    private static ObjectNode offset(ListOffsetsResultInfo info) {
        ObjectNode node = Json.object().put("offset", info.offset()).put("timestamp", info.timestamp());
        node.set("leaderEpoch", Json.value(info.leaderEpoch()));
        return node;
    }

    /** {before: {partition: offset}}, offset −1 for the high watermark. */
    private static ObjectNode deleteRecords(ObjectNode item) {
        Map<TopicPartition, RecordsToDelete> before = new HashMap<>();
        item.get("before").properties().forEach(e -> before.put(
            Json.partition(e.getKey()), RecordsToDelete.beforeOffset(e.getValue().asLong())));
        Map<Object, Object> marks = new HashMap<>();
        Admins.of(item).deleteRecords(before).lowWatermarks().forEach((partition, future) ->
            marks.put(partition, future.thenApply(DeletedRecords::lowWatermark)));
        return Json.result(marks);
    }
}
