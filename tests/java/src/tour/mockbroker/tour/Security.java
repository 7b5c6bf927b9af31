package mockbroker.tour;

import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialAlteration;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What clients of secured listeners need besides their configuration. */
final class Security {
    private Security() {
    }

    static void register(Map<String, Pipe.Op> ops) {
        ops.put("security.allowUrl", Security::allowUrl);
        ops.put("security.alterScram", Security::alterScram);
        ops.put("security.describeScram", Security::describeScram);
    }

    /** {url}: let OAUTHBEARER clients of this JVM read their tokens there. */
    private static ObjectNode allowUrl(ObjectNode item) {
        System.setProperty(
            "org.apache.kafka.sasl.oauthbearer.allowed.urls", item.get("url").asText());
        return Json.object();
    }

    /** {config, user, mechanism, iterations, password}; without a password it is a deletion. */
    private static ObjectNode alterScram(ObjectNode item) throws Exception {
        String user = item.get("user").asText();
        ScramMechanism mechanism = ScramMechanism.fromMechanismName(item.get("mechanism").asText());
        UserScramCredentialAlteration alteration = new UserScramCredentialDeletion(user, mechanism);
        if (item.has("password")) {
            alteration = new UserScramCredentialUpsertion(user,
                new ScramCredentialInfo(mechanism, item.get("iterations").asInt()),
                item.get("password").asText());
        }
        try (Admin admin = Admin.create(Json.configs(item))) {
            admin.alterUserScramCredentials(List.of(alteration)).all().get();
        }
        return Json.object();
    }

    /** {config} to {user: {mechanism: iterations}}. */
    private static ObjectNode describeScram(ObjectNode item) throws Exception {
        Map<String, Object> users = new TreeMap<>();
        try (Admin admin = Admin.create(Json.configs(item))) {
            admin.describeUserScramCredentials().all().get().forEach((user, description) -> {
                Map<String, Object> mechanisms = new TreeMap<>();
                description.credentialInfos().forEach(info ->
                    mechanisms.put(info.mechanism().mechanismName(), info.iterations()));
                users.put(user, mechanisms);
            });
        }
        return Json.result(users);
    }
}
