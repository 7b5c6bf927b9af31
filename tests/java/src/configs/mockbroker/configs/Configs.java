package mockbroker.configs;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.server.KafkaConfig;

import mockbroker.pipe.Pipe;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

import java.util.Map;

/** The broker's own config definitions: what there is, what is accepted, and what stands behind what. */
public final class Configs {
    private static final Map<String, ConfigDef> TABLES = Map.of(
        "broker", KafkaConfig.configDef(),
        "topic", LogConfig.configDefCopy(),
        "group", GroupConfig.CONFIG_DEF,
        "client-metrics", ClientMetricsConfigs.configDef());

    private Configs() {
    }

    public static void main(String[] args) throws Exception {
        Pipe.serve(Map.of(
            "definitions", Configs::definitions,
            "parse", Configs::parse,
            "synonyms", item -> synonyms()));
    }

    /** {table} to every definition of it. */
    private static ObjectNode definitions(ObjectNode item) {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        ObjectNode result = Pipe.JSON.objectNode();
        ArrayNode definitions = result.putArray("definitions");
        for (ConfigDef.ConfigKey key : table(item).configKeys().values()) {
            boolean required = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE;
            definitions.addObject().put("name", key.name).put("type", key.type.name())
                .put("default", required ? null : ConfigDef.convertToString(key.defaultValue, key.type))
                .put("internal", key.internalConfig)
                .put("mode", modes.getOrDefault(key.name, "read-only"));
        }
        return result;
    }

    /** {table, name, text} to the text of the value that it is taken for; throws when it is refused. */
    private static ObjectNode parse(ObjectNode item) {
        String name = item.get("name").asText();
        ConfigDef.ConfigKey key = table(item).configKeys().get(name);
        Object value = ConfigDef.parseType(name, item.get("text").asText(), key.type);
        if (key.validator != null) {
            key.validator.ensureValid(name, value);
        }
        return Pipe.JSON.objectNode().put("text", ConfigDef.convertToString(value, key.type));
    }

    /** The broker configs behind the topics' and the groups'. */
    private static ObjectNode synonyms() {
        ObjectNode result = Pipe.JSON.objectNode();
        ObjectNode topics = result.putObject("topic");
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((name, behind) -> {
            ArrayNode names = topics.putArray(name);
            behind.forEach(synonym -> names.add(synonym.name()));
        });
        ObjectNode groups = result.putObject("group");
        GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.forEach(
            (name, behind) -> behind.ifPresent(synonym -> groups.put(name, synonym)));
        return result;
    }

    private static ConfigDef table(ObjectNode item) {
        return TABLES.get(item.get("table").asText());
    }
}
