package mockbroker.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** What Kafka's assignor of share groups gives to whom. */
public final class Assignors {
    private Assignors() {
    }

    public static void register(Map<String, Pipe.Op> ops) {
        ops.put("assign.simple", Assignors::assign);
    }

    /**
     * {members: [{id, topics: [UUID], target: {UUID: [partition]}}], uniform, partitions: {UUID: n},
     * assignable: {UUID: [partition]}} to {targets: {id: {UUID: [partition]}}}. UUIDs are in hex.
     */
    private static ObjectNode assign(ObjectNode item) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        for (JsonNode member : item.get("members")) {
            Set<Uuid> topics = new HashSet<>();
            member.get("topics").forEach(topic -> topics.add(uuid(topic.asText())));
            Assignment target = new Assignment(partitions(member.get("target")));
            members.put(member.get("id").asText(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.empty(), topics, target));
        }
        GroupAssignment assignment = new SimpleAssignor().assign(
            new GroupSpecImpl(
                members,
                item.get("uniform").asBoolean()
                    ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS,
                Map.of(),
                Optional.of(partitions(item.get("assignable")))),
            topics(item.get("partitions")));
        ObjectNode result = Pipe.JSON.objectNode();
        ObjectNode targets = result.putObject("targets");
        assignment.members().forEach((id, member) -> {
            ObjectNode target = targets.putObject(id);
            member.partitions().forEach((topic, those) -> {
                ArrayNode line = target.putArray(hex(topic));
                those.forEach(line::add);
            });
        });
        return result;
    }

    private static SubscribedTopicDescriber topics(JsonNode counts) {
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topicId) {
                return counts.path(hex(topicId)).asInt(-1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
        };
    }

    private static Map<Uuid, Set<Integer>> partitions(JsonNode lines) {
        Map<Uuid, Set<Integer>> partitions = new HashMap<>();
        lines.fields().forEachRemaining(line -> {
            Set<Integer> those = new HashSet<>();
            line.getValue().forEach(partition -> those.add(partition.asInt()));
            partitions.put(uuid(line.getKey()), those);
        });
        return partitions;
    }

    private static Uuid uuid(String text) {
        ByteBuffer bytes = ByteBuffer.wrap(Oracle.unhex(text));
        return new Uuid(bytes.getLong(), bytes.getLong());
    }

    private static String hex(Uuid uuid) {
        return Oracle.hex(ByteBuffer.allocate(16)
            .putLong(uuid.getMostSignificantBits())
            .putLong(uuid.getLeastSignificantBits())
            .array());
    }
}
