package mockbroker.tour;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.common.TopicPartition;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Admin's consumer groups and their offsets. */
final class AdminGroups {
    private AdminGroups() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("admin.listGroups", AdminGroups::listGroups);
        ops.put("admin.describeGroups", AdminGroups::describeGroups);
        ops.put("admin.deleteGroups", item -> Json.result(
            Admins.of(item).deleteConsumerGroups(Json.texts(item.get("groups"))).deletedGroups()));
        ops.put("admin.groupOffsets", item -> Json.result(Admins.of(item)
            .listConsumerGroupOffsets(item.get("group").asText()).partitionsToOffsetAndMetadata()));
        ops.put("admin.alterGroupOffsets", AdminGroups::alterOffsets);
        ops.put("admin.deleteGroupOffsets", AdminGroups::deleteOffsets);
        ops.put("admin.removeMembers", AdminGroups::removeMembers);
    }

    @SuppressWarnings("deprecation") // listGroups is not there yet in 3.9
    private static ObjectNode listGroups(ObjectNode item) throws Exception {
        Map<String, Object> groups = new HashMap<>();
        for (ConsumerGroupListing group : Admins.of(item).listConsumerGroups().all().get()) {
            ObjectNode node = Json.object().put("simple", group.isSimpleConsumerGroup());
            node.set("state", Json.value(Admins.call(group, "groupState", "state")));
            node.set("type", Json.value(group.type()));
            groups.put(group.groupId(), node);
        }
        return Json.result(groups);
    }

    private static ObjectNode describeGroups(ObjectNode item) {
        Map<String, Object> groups = new HashMap<>();
        Admins.of(item).describeConsumerGroups(Json.texts(item.get("groups"))).describedGroups()
            .forEach((id, future) -> groups.put(id, future.thenApply(AdminGroups::description)));
        return Json.result(groups);
    }

    private static ObjectNode description(ConsumerGroupDescription group) {
        ObjectNode node = Json.object().put("simple", group.isSimpleConsumerGroup())
            .put("assignor", group.partitionAssignor()).put("coordinator", group.coordinator().id())
            .put("type", group.type().toString());
        try {
            node.set("state", Json.value(Admins.call(group, "groupState", "state")));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        ArrayNode members = node.putArray("members");
        group.members().forEach(member -> members.add(member(member)));
        return node;
    }

    private static ObjectNode member(MemberDescription member) {
        ObjectNode node = Json.object().put("member", member.consumerId())
            .put("client", member.clientId()).put("host", member.host());
        node.set("instance", Json.value(member.groupInstanceId()));
        List<String> partitions = member.assignment().topicPartitions().stream()
            .map(TopicPartition::toString).sorted().toList();
        node.set("assignment", Json.value(partitions));
        return node;
    }

    /** {group, offsets: {partition: offset}}: the outcome for each partition. */
    private static ObjectNode alterOffsets(ObjectNode item) {
        var offsets = Json.offsets(item.get("offsets"));
        var result = Admins.of(item).alterConsumerGroupOffsets(item.get("group").asText(), offsets);
        return Json.result(offsets.keySet().stream().collect(
            Collectors.toMap(partition -> partition, partition -> Json.outcome(
                result.partitionResult(partition)))));
    }

    private static ObjectNode deleteOffsets(ObjectNode item) {
        var partitions = new HashSet<>(Json.partitions(item.get("partitions")));
        var result =
            Admins.of(item).deleteConsumerGroupOffsets(item.get("group").asText(), partitions);
        return Json.result(partitions.stream().collect(
            Collectors.toMap(partition -> partition, partition -> Json.outcome(
                result.partitionResult(partition)))));
    }

    /** {group, instances: [group.instance.id…]}; all members when none is named. */
    private static ObjectNode removeMembers(ObjectNode item) throws Exception {
        List<MemberToRemove> members =
            Json.texts(item.path("instances")).stream().map(MemberToRemove::new).toList();
        RemoveMembersFromConsumerGroupOptions options = members.isEmpty()
            ? new RemoveMembersFromConsumerGroupOptions()
            : new RemoveMembersFromConsumerGroupOptions(members);
        Admins.of(item).removeMembersFromConsumerGroup(item.get("group").asText(), options).all().get();
        return Json.object();
    }
}
