"""Configs of groups and of client metrics subscriptions (Kafka 4.3)."""

from __future__ import annotations

from mockbroker.core.configs.defs.kinds import (
    BOOLEAN,
    INT,
    LIST,
    SHARE_OFFSET_RESET,
    STRING,
    ConfigDef,
    at_least,
    list_of,
    one_of,
)

GROUP: tuple[ConfigDef, ...] = (
    ConfigDef("consumer.assignment.interval.ms", INT, "1000", at_least(0)),
    ConfigDef("consumer.heartbeat.interval.ms", INT, "5000", at_least(1)),
    ConfigDef("consumer.session.timeout.ms", INT, "45000", at_least(1)),
    ConfigDef("share.assignment.interval.ms", INT, "1000", at_least(0)),
    ConfigDef("share.auto.offset.reset", STRING, "latest", SHARE_OFFSET_RESET),
    ConfigDef("share.delivery.count.limit", INT, "5", at_least(2)),
    ConfigDef("share.heartbeat.interval.ms", INT, "5000", at_least(1)),
    ConfigDef(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        one_of("read_committed", "read_uncommitted"),
    ),
    ConfigDef("share.partition.max.record.locks", INT, "2000", at_least(100)),
    ConfigDef("share.record.lock.duration.ms", INT, "30000", at_least(1000)),
    ConfigDef("share.renew.acknowledge.enable", BOOLEAN, "true"),
    ConfigDef("share.session.timeout.ms", INT, "45000", at_least(1)),
    ConfigDef("streams.assignment.interval.ms", INT, "1000", at_least(0)),
    ConfigDef("streams.heartbeat.interval.ms", INT, "5000", at_least(1)),
    ConfigDef("streams.initial.rebalance.delay.ms", INT, "3000", at_least(0)),
    ConfigDef("streams.num.standby.replicas", INT, "0", at_least(0)),
    ConfigDef("streams.session.timeout.ms", INT, "45000", at_least(1)),
)

CLIENT_METRICS: tuple[ConfigDef, ...] = (
    ConfigDef("interval.ms", INT, "300000"),
    ConfigDef("match", LIST, "", list_of()),
    ConfigDef("metrics", LIST, "", list_of()),
)

# The broker config that gives a group config its default; the three without one are fixed.
GROUP_SYNONYMS: dict[str, str] = {
    name: f"group.{name}"
    for name in (definition.name for definition in GROUP)
    if name
    not in ("share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable")
}
