package mockbroker.tour;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.admin.DescribeProducersResult.PartitionProducerState;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.common.ElectionType;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Admin's view of the cluster: nodes, log directories, producers, quorum, features. */
final class AdminCluster {
    private AdminCluster() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("admin.describeCluster", AdminCluster::describeCluster);
        ops.put("admin.describeLogDirs", AdminCluster::describeLogDirs);
        ops.put("admin.describeProducers", AdminCluster::describeProducers);
        ops.put("admin.describeQuorum", AdminCluster::describeQuorum);
        ops.put("admin.describeFeatures", AdminCluster::describeFeatures);
        ops.put("admin.electLeaders", AdminCluster::electLeaders);
    }

    private static ObjectNode describeCluster(ObjectNode item) throws Exception {
        var cluster = Admins.of(item).describeCluster();
        ObjectNode node = Json.object().put("id", cluster.clusterId().get());
        node.set("controller", Json.value(cluster.controller().get()));
        ArrayNode nodes = node.putArray("nodes");
        cluster.nodes().get().stream().sorted((a, b) -> a.id() - b.id()).forEach(broker -> nodes
            .addObject().put("id", broker.id()).put("host", broker.host()).put("port", broker.port())
            .put("rack", broker.rack()));
        return Json.result(node);
    }

    /** {brokers: [id…]} to the replicas of each broker: {id: {partition: {size, lag}}}. */
    private static ObjectNode describeLogDirs(ObjectNode item) throws Exception {
        List<Integer> brokers =
            Json.texts(item.get("brokers")).stream().map(Integer::valueOf).toList();
        Map<String, Object> described = new TreeMap<>();
        for (var entry : Admins.of(item).describeLogDirs(brokers).allDescriptions().get().entrySet()) {
            Map<String, Object> replicas = new HashMap<>();
            for (LogDirDescription dir : entry.getValue().values()) {
                dir.replicaInfos().forEach((partition, info) -> replicas.put(partition.toString(),
                    Json.object().put("size", info.size()).put("lag", info.offsetLag())));
            }
            described.put(String.valueOf(entry.getKey()), replicas);
        }
        return Json.result(described);
    }

    private static ObjectNode describeProducers(ObjectNode item) {
        var partitions = Json.partitions(item.get("partitions"));
        var result = Admins.of(item).describeProducers(partitions);
        Map<Object, Object> described = new HashMap<>();
        partitions.forEach(partition -> described.put(
            partition, result.partitionResult(partition).thenApply(AdminCluster::producers)));
        return Json.result(described);
    }

    private static ArrayNode producers(PartitionProducerState state) {
        ArrayNode producers = Pipe.JSON.arrayNode();
        state.activeProducers().forEach(producer -> {
            ObjectNode node = producers.addObject().put("id", producer.producerId())
                .put("epoch", producer.producerEpoch()).put("lastSequence", producer.lastSequence())
                .put("lastTimestamp", producer.lastTimestamp());
            node.set("coordinatorEpoch", Json.value(producer.coordinatorEpoch()));
            node.set("txnStart", Json.value(producer.currentTransactionStartOffset()));
        });
        return producers;
    }

    private static ObjectNode describeQuorum(ObjectNode item) throws Exception {
        QuorumInfo quorum = Admins.of(item).describeMetadataQuorum().quorumInfo().get();
        ObjectNode node = Json.object().put("leader", quorum.leaderId())
            .put("epoch", quorum.leaderEpoch()).put("highWatermark", quorum.highWatermark());
        ArrayNode voters = node.putArray("voters");
        quorum.voters().forEach(voter -> voters.add(voter.replicaId()));
        ArrayNode observers = node.putArray("observers");
        quorum.observers().forEach(observer -> observers.add(observer.replicaId()));
        return Json.result(node);
    }

    private static ObjectNode describeFeatures(ObjectNode item) throws Exception {
        var metadata = Admins.of(item).describeFeatures().featureMetadata().get();
        ObjectNode node = Json.object();
        node.set("finalized", Json.value(metadata.finalizedFeatures()));
        node.set("supported", Json.value(metadata.supportedFeatures()));
        return Json.result(node);
    }

    /** {type: PREFERRED|UNCLEAN, partitions}: the error of each partition, null for none. */
    private static ObjectNode electLeaders(ObjectNode item) throws Exception {
        var partitions = new HashSet<>(Json.partitions(item.get("partitions")));
        var type = ElectionType.valueOf(item.path("type").asText("PREFERRED"));
        Map<Object, Object> outcomes = new HashMap<>();
        Admins.of(item).electLeaders(type, partitions).partitions().get().forEach(
            (partition, error) -> outcomes.put(partition, error.map(Pipe::error).orElse(null)));
        return Json.result(outcomes);
    }
}
