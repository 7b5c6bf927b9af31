"""How soon a cluster, ours or a real one, notices that one of its brokers was killed."""

NOTICED = {
    "replica.lag.time.max.ms": "9000",
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "500",
}
"""Configs of the brokers. A living broker that a busy machine keeps silent for so long is taken for
dead as well."""
