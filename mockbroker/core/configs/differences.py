"""Where a cluster differs from Kafka on purpose, because tests want it: each by a config.

`strict` sets all of them as Kafka has them.
"""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """A broker config, its value here, and the value with which the cluster does as Kafka does."""

    config: str
    ours: str
    kafka: str
    what: str


INITIAL_REBALANCE = "group.initial.rebalance.delay.ms"
FETCH_MAKES_WAY = "mockbroker.fetch.makes.way"
FAILURE_DETECTION = "mockbroker.failure.detection"

DIFFERENCES = (
    Difference(
        INITIAL_REBALANCE,
        "0",
        "3000",
        "The first rebalance of an empty group begins at once. Kafka waits for more members.",
    ),
    Difference(
        FETCH_MAKES_WAY,
        "true",
        "false",
        "A Fetch that waits for records is answered when its client sends another request on the "
        "same connection. In Kafka that request waits for up to `fetch.max.wait.ms`.",
    ),
    Difference(
        FAILURE_DETECTION,
        "immediate",
        "session",
        "The controller fences a broker at once when its process is killed or its way to the "
        "controller is cut. Kafka fences it after `broker.session.timeout.ms`.",
    ),
    Difference(
        "mockbroker.replication",
        "direct",
        "stepwise",
        "A follower has each record as soon as its leader has it. In Kafka followers fetch, and "
        "learn of the high watermark with the Fetch after that.",
    ),
    Difference(
        "mockbroker.transaction.marker.delay.ms",
        "0",
        "1",
        "Transaction markers are written at once. In Kafka they take their time, and clients meet "
        "CONCURRENT_TRANSACTIONS.",
    ),
    Difference(
        "record.validation",
        "headers",
        "always",
        "The records of a large batch are not opened. Kafka validates each.",
    ),
)


def strict_configs() -> dict[str, str]:
    """The configs with which a cluster does as Kafka does."""
    return {each.config: each.kafka for each in DIFFERENCES}
