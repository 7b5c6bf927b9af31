package mockbroker.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import mockbroker.pipe.Pipe;

import org.apache.kafka.common.metrics.MeasurableStat;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.server.quota.QuotaUtils;

import java.util.Map;
import java.util.concurrent.TimeUnit;

/** How long a quota makes its client wait, after what happened when. */
public final class Quotas {
    private Quotas() {
    }

    public static void register(Map<String, Pipe.Op> ops) {
        ops.put("quota.rate", item -> throttled(item, new Rate()));
        ops.put("quota.tokens", item -> throttled(item, new TokenBucket()));
    }

    /**
     * {samples, seconds, quota, events: [[ms, value], …]} to {waits}: the time to wait after each
     * event, in ms; for tokens the check comes before the event, which is dropped if it fails.
     */
    private static ObjectNode throttled(ObjectNode item, MeasurableStat stat) {
        MetricConfig config = new MetricConfig()
            .samples(item.get("samples").asInt())
            .timeWindow(item.get("seconds").asInt(), TimeUnit.SECONDS)
            .quota(new Quota(item.get("quota").asDouble(), true));
        ObjectNode result = Pipe.JSON.objectNode();
        ArrayNode waits = result.putArray("waits");
        try (Metrics metrics = new Metrics()) {
            Sensor sensor = metrics.sensor("clients");
            sensor.add(metrics.metricName("measured", "clients"), stat, config);
            for (JsonNode event : item.get("events")) {
                long nowMs = event.get(0).asLong();
                waits.add(waitMs(sensor, stat, event.get(1).asDouble(), nowMs));
            }
        }
        return result;
    }

    private static long waitMs(Sensor sensor, MeasurableStat stat, double value, long nowMs) {
        boolean tokens = stat instanceof TokenBucket;
        try {
            if (tokens) {
                sensor.checkQuotas(nowMs);
                sensor.record(value, nowMs, false);
            } else {
                sensor.record(value, nowMs, true);
            }
            return 0;
        } catch (QuotaViolationException e) {
            return tokens ? Math.round(-e.value() / e.bound() * 1000) : QuotaUtils.throttleTime(e, nowMs);
        }
    }
}
