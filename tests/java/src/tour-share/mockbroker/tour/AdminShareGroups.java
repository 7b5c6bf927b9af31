package mockbroker.tour;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.common.TopicPartition;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Admin's share groups and their start offsets. */
final class AdminShareGroups {
    private AdminShareGroups() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("admin.describeShareGroups", AdminShareGroups::describe);
        ops.put("admin.shareGroupOffsets", AdminShareGroups::offsets);
    }

    private static ObjectNode describe(ObjectNode item) {
        Map<String, Object> groups = new HashMap<>();
        Admins.of(item).describeShareGroups(Json.texts(item.get("groups"))).describedGroups()
            .forEach((id, future) -> groups.put(id, future.thenApply(AdminShareGroups::description)));
        return Json.result(groups);
    }

    private static ObjectNode description(ShareGroupDescription group) {
        ObjectNode node = Json.object().put("state", group.groupState().toString())
            .put("coordinator", group.coordinator().id());
        ArrayNode members = node.putArray("members");
        group.members().forEach(member -> {
            List<String> partitions = member.assignment().topicPartitions().stream()
                .map(TopicPartition::toString).sorted().toList();
            members.addObject().put("client", member.clientId())
                .set("assignment", Json.value(partitions));
        });
        return node;
    }

    /** {group}: each partition's start offset, as it was written last, and its lag. */
    private static ObjectNode offsets(ObjectNode item) throws Exception {
        String group = item.get("group").asText();
        Map<String, Object> offsets = new HashMap<>();
        Admins.of(item).listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(group).get().forEach((partition, info) -> offsets.put(
                partition.toString(), info == null ? null : Json.object()
                    .put("start", info.startOffset()).put("lag", info.lag().orElse(null))));
        return Json.result(offsets);
    }
}
