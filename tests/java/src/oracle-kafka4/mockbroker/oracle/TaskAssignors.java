package mockbroker.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** What Kafka's task assignor of streams groups gives to whom. */
public final class TaskAssignors {
    private TaskAssignors() {
    }

    public static void register(Map<String, Pipe.Op> ops) {
        ops.put("assign.sticky", TaskAssignors::assign);
    }

    /**
     * {members: [{id, process, active: {subtopology: [partition]}, standby: the same}],
     * subtopologies: [{id, tasks, stateful}], replicas} to {targets: {id: {active, standby}}}.
     */
    private static ObjectNode assign(ObjectNode item) {
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        for (JsonNode member : item.get("members")) {
            members.put(member.get("id").asText(), new AssignmentMemberSpec(
                Optional.empty(), Optional.empty(),
                tasks(member.get("active")), tasks(member.get("standby")), Map.of(),
                member.get("process").asText(), Map.of(), Map.of(), Map.of()));
        }
        Map<String, String> configs = Map.of("num.standby.replicas", item.get("replicas").asText());
        GroupAssignment assignment = new StickyTaskAssignor().assign(
            new GroupSpecImpl(members, configs), topology(item.get("subtopologies")));
        ObjectNode result = Pipe.JSON.objectNode();
        ObjectNode targets = result.putObject("targets");
        assignment.members().forEach((id, member) -> {
            ObjectNode target = targets.putObject(id);
            put(target.putObject("active"), member.activeTasks());
            put(target.putObject("standby"), member.standbyTasks());
        });
        return result;
    }

    private static TopologyDescriber topology(JsonNode subtopologies) {
        Map<String, JsonNode> byId = new HashMap<>();
        List<String> ids = new ArrayList<>();
        for (JsonNode each : subtopologies) {
            ids.add(each.get("id").asText());
            byId.put(each.get("id").asText(), each);
        }
        return new TopologyDescriber() {
            @Override
            public List<String> subtopologies() {
                return ids;
            }

            @Override
            public int maxNumInputPartitions(String id) {
                return byId.get(id).get("tasks").asInt();
            }

            @Override
            public boolean isStateful(String id) {
                return byId.get(id).get("stateful").asBoolean();
            }
        };
    }

    private static Map<String, Set<Integer>> tasks(JsonNode lines) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        lines.fields().forEachRemaining(line -> {
            Set<Integer> those = new HashSet<>();
            line.getValue().forEach(partition -> those.add(partition.asInt()));
            tasks.put(line.getKey(), those);
        });
        return tasks;
    }

    private static void put(ObjectNode node, Map<String, Set<Integer>> tasks) {
        tasks.forEach((subtopology, those) -> {
            if (!those.isEmpty()) {
                ArrayNode line = node.putArray(subtopology);
                those.forEach(line::add);
            }
        });
    }
}
