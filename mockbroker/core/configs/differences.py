"""The deliberate differences from Kafka, each with its config. `strict` sets Kafka's values."""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """A broker config, its default here, and the value with Kafka's behaviour."""

    config: str
    ours: str
    kafka: str
    what: str


INITIAL_REBALANCE = "group.initial.rebalance.delay.ms"
STREAMS_INITIAL_REBALANCE = "group.streams.initial.rebalance.delay.ms"
FETCH_YIELDS = "mockbroker.fetch.makes.way"
AUTO_CREATED_AT_ONCE = "mockbroker.auto.created.at.once"
FAILURE_DETECTION = "mockbroker.failure.detection"

DIFFERENCES = (
    Difference(
        INITIAL_REBALANCE,
        "0",
        "3000",
        "The first rebalance of an empty group begins at once. Kafka waits for more members.",
    ),
    Difference(
        STREAMS_INITIAL_REBALANCE,
        "0",
        "3000",
        "The first member of a streams group gets its tasks at once. Kafka waits for more members, "
        "and assigns with the next heartbeat.",
    ),
    Difference(
        FETCH_YIELDS,
        "true",
        "false",
        "A Fetch that waits for records is answered when its client sends another request on the "
        "same connection. In Kafka that request waits for up to `fetch.max.wait.ms`.",
    ),
    Difference(
        AUTO_CREATED_AT_ONCE,
        "true",
        "false",
        "The Metadata that creates a topic has it in its answer. Kafka answers "
        "UNKNOWN_TOPIC_OR_PARTITION, and a client asks again after a pause of 100 ms. Internal "
        "topics of a streams group exist when its first member joins. In Kafka the next heartbeat "
        "finds them.",
    ),
    Difference(
        FAILURE_DETECTION,
        "immediate",
        "session",
        "The controller fences a broker at once when its process is killed or its link to the "
        "controller is cut. Kafka fences it after `broker.session.timeout.ms`.",
    ),
    Difference(
        "mockbroker.replication",
        "direct",
        "stepwise",
        "A follower has each record as soon as its leader has it. In Kafka followers fetch, and "
        "get the high watermark with the next Fetch.",
    ),
    Difference(
        "mockbroker.transaction.marker.delay.ms",
        "0",
        "1",
        "Transaction markers are written at once. In Kafka they take time, and clients get "
        "CONCURRENT_TRANSACTIONS.",
    ),
    Difference(
        "record.validation",
        "headers",
        "always",
        "The records of a large batch are not decoded. Kafka validates each.",
    ),
)


def strict_configs() -> dict[str, str]:
    """The configs with Kafka's behaviour."""
    return {each.config: each.kafka for each in DIFFERENCES}
