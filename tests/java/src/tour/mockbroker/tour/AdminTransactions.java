package mockbroker.tour;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;

import java.util.HashMap;
import java.util.Map;

/** Admin's view of transactions, the ways to end them, and the features that steer them. */
final class AdminTransactions {
    private AdminTransactions() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("admin.listTransactions", AdminTransactions::list);
        ops.put("admin.describeTransactions", AdminTransactions::describe);
        ops.put("admin.abortTransaction", AdminTransactions::abort);
        ops.put("admin.fenceProducers", AdminTransactions::fence);
        ops.put("admin.updateFeatures", AdminTransactions::updateFeatures);
    }

    /** {states?: [name…]} to {id: {state, producerId}}. */
    private static ObjectNode list(ObjectNode item) throws Exception {
        ListTransactionsOptions options = new ListTransactionsOptions();
        if (item.has("states")) {
            options.filterStates(
                Json.texts(item.get("states")).stream().map(TransactionState::parse).toList());
        }
        Map<String, Object> listed = new HashMap<>();
        Admins.of(item).listTransactions(options).all().get().forEach(each -> listed.put(
            each.transactionalId(), Json.object().put("state", each.state().toString())
                .put("producerId", each.producerId())));
        return Json.result(listed);
    }

    /** {ids} to {id: {state, coordinator, producerId, epoch, timeoutMs, startMs, partitions}}. */
    private static ObjectNode describe(ObjectNode item) {
        var ids = Json.texts(item.get("ids"));
        var result = Admins.of(item).describeTransactions(ids);
        Map<String, Object> described = new HashMap<>();
        ids.forEach(id -> described.put(
            id, result.description(id).thenApply(AdminTransactions::description)));
        return Json.result(described);
    }

    private static ObjectNode description(TransactionDescription description) {
        ObjectNode node = Json.object().put("state", description.state().toString())
            .put("coordinator", description.coordinatorId())
            .put("producerId", description.producerId())
            .put("epoch", description.producerEpoch())
            .put("timeoutMs", description.transactionTimeoutMs());
        node.set("startMs", Json.value(description.transactionStartTimeMs()));
        ArrayNode partitions = node.putArray("partitions");
        description.topicPartitions().stream().map(Object::toString).sorted()
            .forEach(partitions::add);
        return node;
    }

    /** {partition, producerId, epoch, coordinatorEpoch}: end a transaction that hangs. */
    private static ObjectNode abort(ObjectNode item) throws Exception {
        Admins.of(item).abortTransaction(new AbortTransactionSpec(
            Json.partition(item.get("partition").asText()), item.get("producerId").asLong(),
            (short) item.get("epoch").asInt(), item.get("coordinatorEpoch").asInt())).all().get();
        return Json.object();
    }

    /** {ids}: whoever goes by these has to initialise anew. */
    private static ObjectNode fence(ObjectNode item) throws Exception {
        Admins.of(item).fenceProducers(Json.texts(item.get("ids"))).all().get();
        return Json.object();
    }

    /** {levels: {feature: level}}, up or down. */
    private static ObjectNode updateFeatures(ObjectNode item) throws Exception {
        Map<String, FeatureUpdate> updates = new HashMap<>();
        item.get("levels").properties().forEach(entry -> updates.put(entry.getKey(),
            new FeatureUpdate((short) entry.getValue().asInt(),
                entry.getValue().asInt() == 2 ? FeatureUpdate.UpgradeType.UPGRADE
                    : FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)));
        Admins.of(item).updateFeatures(updates, new UpdateFeaturesOptions()).all().get();
        return Json.object();
    }
}
