"""Adds share groups and streams groups to the plan of a seed.

They are drawn by themselves: the plan of a seed without them stays the same.
"""

from __future__ import annotations

import random

import msgspec

from mockbroker.simulation.plan import ClientKind, ClientSettings, Habit, Settings

SINCE = ("4.2", "4.3")  # share.version 1 and streams.version 1 are the default
SHARE_SHARE = 0.45  # of the plans of these releases
STREAMS_SHARE = 0.3
SHARE_GROUP, STREAMS_GROUP = "sharers", "app"

_SHARE_OPERATIONS, _STREAMS_OPERATIONS = 90, 60  # the sum for the members
_SHARE_HABITS: tuple[tuple[Habit, float], ...] = (
    ("explicit", 0.5),
    ("renews", 0.3),
    ("lapses", 0.5),
    ("returns", 0.3),
    ("stale_requests", 0.25),
    ("resets_offsets", 0.15),
)


def with_queues(
    seed: int, settings: Settings, clients: list[ClientSettings], *, always: bool = False
) -> tuple[Settings, list[ClientSettings]]:
    """The cluster and clients of a plan, with members of share groups and streams groups.

    With `always` there are some wherever the release offers them.
    """
    rng = random.Random(f"queues {seed}")
    shares, streams = rng.random() < SHARE_SHARE, rng.random() < STREAMS_SHARE
    if settings.kafka_version not in SINCE:
        return settings, clients
    if shares or always:
        settings = _with_configs(settings, _share_configs(rng))
        clients = [*clients, *_members("share", settings, rng)]
    if streams:
        settings = _with_configs(settings, _streams_configs(rng))
        clients = [*clients, *_members("streams", settings, rng)]
    return settings, clients


def _with_configs(settings: Settings, configs: dict[str, str]) -> Settings:
    return msgspec.structs.replace(settings, configs={**settings.configs, **configs})


def _share_configs(rng: random.Random) -> dict[str, str]:
    """Locks and sessions that end within the run, and state that is written in several ways."""
    configs = {
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.record.lock.duration.ms": rng.choice(("1000", "2500", "15000")),
        "group.share.delivery.count.limit": rng.choice(("2", "3", "5")),
        "group.share.min.session.timeout.ms": "1000",
        "group.share.session.timeout.ms": rng.choice(("3000", "6000", "45000")),
        "group.share.min.heartbeat.interval.ms": "500",
        "group.share.heartbeat.interval.ms": rng.choice(("500", "1500")),
        "share.coordinator.state.topic.num.partitions": rng.choice(("1", "2")),
        "share.coordinator.state.topic.replication.factor": "3",
        "share.coordinator.state.topic.min.isr": rng.choice(("1", "2")),
        "share.coordinator.snapshot.update.records.per.snapshot": rng.choice(("1", "4", "500")),
    }
    if rng.random() < 0.3:
        configs["group.share.max.share.sessions"] = "1"
    if rng.random() < 0.5:
        configs["share.coordinator.state.topic.prune.interval.ms"] = "1000"
    if rng.random() < 0.3:
        configs["share.coordinator.cold.partition.snapshot.interval.ms"] = "1000"
    return configs


def _streams_configs(rng: random.Random) -> dict[str, str]:
    return {
        "group.streams.min.session.timeout.ms": "1000",
        "group.streams.session.timeout.ms": rng.choice(("3000", "6000", "45000")),
        "group.streams.min.heartbeat.interval.ms": "200",
        "group.streams.heartbeat.interval.ms": rng.choice(("200", "1000")),
        "group.streams.initial.rebalance.delay.ms": rng.choice(("0", "500", "3000")),
        "group.streams.num.standby.replicas": rng.choice(("0", "0", "1", "2")),
    }


def _members(kind: ClientKind, settings: Settings, rng: random.Random) -> list[ClientSettings]:
    is_share = kind == "share"
    count = rng.choice((1, 2, 2, 3))
    operations = (_SHARE_OPERATIONS if is_share else _STREAMS_OPERATIONS) // count
    topics = [topic.name for topic in settings.topics]
    topics = topics if rng.random() < 0.6 else topics[:1]
    members = []
    for number in range(count):
        habits: list[Habit] = ["returns"] if rng.random() < 0.4 else []
        if is_share:
            habits = [habit for habit, share in _SHARE_HABITS if rng.random() < share]
        members.append(
            ClientSettings(
                kind=kind,
                name=f"{kind}-member-{number}",
                group=SHARE_GROUP if is_share else STREAMS_GROUP,
                topics=topics,
                operations=operations,
                start_ms=rng.choice((0, rng.randrange(settings.duration_ms // 2))),
                pause_ms=(0, max(1, settings.duration_ms * 2 // operations)),
                habits=habits,
            )
        )
    return members
