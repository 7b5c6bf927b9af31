"""Adds share groups and streams groups to the plan of a seed.

They are drawn by themselves: the plan of a seed without them stays the same. The last member of a
share group comes when the faults have ended, so that the laws can see that no record is left.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec

from mockbroker.simulation import plan as plans
from mockbroker.simulation.plan import ClientKind, ClientSettings, Habit, Plan, Settings, Step

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

_QUEUES: tuple[ClientKind, ...] = ("share", "streams")
RULES_SHARE = 0.4  # of the plans with these groups
_EFFECTS: tuple[dict[str, Any], ...] = (
    {"delay": {"by": 40}},
    {"delay": {"uniform": [0, 3_000]}},
    {"drop_request": {}},
    {"drop_reply": {}},
)
_CLIENT_EFFECTS: tuple[dict[str, Any], ...] = (
    {"delay": {"by": 8_000, "phase": "after"}},
    {"drop_reply": {"then": "close"}},
    {"close": {"phase": "before"}},
    {"close": {"phase": "after"}},
    {"throttle": {"by": 100}},
)
_SHARE_APIS = (
    "ShareFetch",
    "ShareFetch",
    "ShareAcknowledge",
    "ShareGroupHeartbeat",
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
)
_STREAMS_APIS = ("StreamsGroupHeartbeat", "OffsetCommit")
_STATE_APIS = (
    "InitializeShareGroupState",
    "ReadShareGroupState",
    "WriteShareGroupState",
    "WriteShareGroupState",
    "DeleteShareGroupState",
    "ReadShareGroupStateSummary",
)
_CLIENT_ERRORS = ("error", "error_after")
_ERRORS = ("NOT_LEADER_OR_FOLLOWER", "SHARE_SESSION_NOT_FOUND", "COORDINATOR_LOAD_IN_PROGRESS")
_HEARTBEAT_ERRORS = ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "UNKNOWN_MEMBER_ID")
_STATE_ERRORS = ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")


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


def completed(plan: Plan) -> Plan:
    """The plan with rules for the requests of these groups, and a share group's last member."""
    rules = _rules(plan)
    if not rules and not any(client.kind == "share" for client in plan.clients):
        return plan
    steps = sorted((*plan.steps, *rules), key=lambda step: step.at_ms)
    clients = [*plan.clients, *_last_members(plan)]
    return msgspec.structs.replace(plan, clients=clients, steps=steps)


def _rules(plan: Plan) -> list[Step]:
    """Rules for the requests of these groups, and for those to share coordinators."""
    rng = random.Random(f"queue rules {plan.seed}")
    drawn = rng.random()
    found = {client.kind for client in plan.clients}
    kinds: list[ClientKind] = [kind for kind in _QUEUES if kind in found]
    if not kinds or drawn >= RULES_SHARE:
        return []
    steps: list[Step] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        at_ms = rng.randrange(plan.settings.duration_ms)
        rule = _rule(rng.choice(kinds), rng)
        steps.append(Step(at_ms=at_ms, do=plans.ADD_RULE, arguments=rule))
        at_ms += rng.choice((500, 3_000, 10_000))
        steps.append(Step(at_ms=at_ms, do=plans.REMOVE_RULES))
    return steps


def _rule(kind: ClientKind, rng: random.Random) -> dict[str, Any]:
    match: dict[str, Any]
    effects = _EFFECTS
    if kind == "share" and rng.random() < 0.4:
        match = {"api": rng.choice(_STATE_APIS), "between_brokers": True}
        errors = _STATE_ERRORS
    else:
        api = rng.choice(_SHARE_APIS if kind == "share" else _STREAMS_APIS)
        match = {"api": api}
        effects = _EFFECTS + _CLIENT_EFFECTS
        errors = _HEARTBEAT_ERRORS if api.endswith("Heartbeat") else _ERRORS
    effect = rng.choice(effects)
    if rng.random() < 0.3:
        kind_of_error = "error" if "between_brokers" in match else rng.choice(_CLIENT_ERRORS)
        effect = {kind_of_error: {"code": rng.choice(errors)}}
    when = {"probability": rng.choice((0.1, 0.3, 0.7))}
    return {"match": match, "when": when, "do": effect}


def _last_members(plan: Plan) -> list[ClientSettings]:
    members = [client for client in plan.clients if client.kind == "share"]
    if not members:
        return []
    return [
        ClientSettings(
            kind="drainer",
            name="drainer",
            group=SHARE_GROUP,
            topics=sorted({name for member in members for name in member.topics}),
            start_ms=plan.settings.duration_ms,
        )
    ]


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
