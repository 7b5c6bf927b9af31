"""How soon a cluster, ours or a real one, notices that a node of its was killed."""

NOTICED = {
    "replica.lag.time.max.ms": "9000",
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "500",
}
"""Configs of the brokers. A node that a busy machine keeps waiting for so long is taken for dead as
well; with a third of it, some were."""
