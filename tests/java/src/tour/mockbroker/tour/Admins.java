package mockbroker.tour;

import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.Admin;

import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;

/** Admin clients, one for each bootstrap address; an op names its address as {bootstrap}. */
final class Admins {
    private static final Map<String, Admin> ADMINS = new HashMap<>();

    private Admins() {
    }

    static Admin of(ObjectNode item) {
        return ADMINS.computeIfAbsent(item.get("bootstrap").asText(), bootstrap -> Admin.create(Map.of(
            "bootstrap.servers", bootstrap,
            "request.timeout.ms", "10000",
            "default.api.timeout.ms", "20000")));
    }

    static ObjectNode close(ObjectNode item) {
        Admin admin = ADMINS.remove(item.get("bootstrap").asText());
        if (admin != null) {
            admin.close();
        }
        return Json.object();
    }

    /** The first of these methods that this version of the class has: names changed with Kafka 4. */
    static Object call(Object target, String... names) throws ReflectiveOperationException {
        for (String name : names) {
            for (Method method : target.getClass().getMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == 0) {
                    return method.invoke(target);
                }
            }
        }
        throw new NoSuchMethodException(target.getClass() + String.join("|", names));
    }
}
