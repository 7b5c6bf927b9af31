"""Generates the plan of a seed.

A seed first draws the number of brokers, the release, the configs, the clients, and the kinds of
faults of the run. Many runs with some kinds of faults find more than one run with all of them
(swarm testing).
"""

from __future__ import annotations

import hashlib
import random
from typing import Any

import msgspec

from mockbroker.core.actions import ACTIONS
from mockbroker.simulation import plan as plans
from mockbroker.simulation.drawing import Names, draw_action
from mockbroker.simulation.plan import (
    ClientKind,
    ClientSettings,
    Habit,
    Plan,
    Settings,
    Step,
    TopicSettings,
)
from mockbroker.simulation.swarm_queues import completed, with_queues

RELEASES = ("2.8", "3.3", "3.6", "3.9", "4.0", "4.1", "4.2", "4.3", "4.3", "4.3")
NEW_PROTOCOL_SINCE = ("4.0", "4.1", "4.2", "4.3")
OPERATIONS = 200  # the approximate sum for all clients

_LARGE_GROUP_SHARE = 0.4  # of plans with a group of several members
_LARGE_GROUP_OPERATIONS = 75  # the sum for its members
_CLASSIC_HABITS: tuple[Habit, ...] = (
    "stale_requests",
    "only_heartbeats",
    "ignores",
    "returns",
    "stalls",
)
_READER_HABITS: tuple[Habit, ...] = ("stale_requests", "follower")

# The steps that undo an action.
_REMEDIES: dict[str, tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...]] = {
    "stop_broker": (("start_broker", ("node",), {}),),
    "pause_broker": (("resume_broker", ("node",), {}),),
    "remove_broker": (("add_broker", ("node",), {}),),
    "fail_log_dir": (
        ("stop_broker", ("node",), {"how": "controlled"}),
        ("start_broker", ("node",), {}),
    ),
    "cut_network": (("heal_network", (), {}),),
    "lag_follower": (("lag_follower", ("topic", "partition", "node"), {"release": True}),),
    "hold_high_watermark": (("hold_high_watermark", ("topic", "partition"), {"release": True}),),
    "set_high_watermark": (("hold_high_watermark", ("topic", "partition"), {"release": True}),),
    "hold_last_stable_offset": (
        ("hold_last_stable_offset", ("topic", "partition"), {"release": True}),
    ),
    "hang_transaction": (("hang_transaction", ("transactional_id",), {"release": True}),),
    "drop_leader": (("shuffle_leaders", ("topic",), {}),),
}
_REMEDY_SHARE = 0.85

_EFFECTS: tuple[dict[str, Any], ...] = (
    {"delay": {"by": 40}},
    {"delay": {"uniform": [0, 3_000]}},
    {"delay": {"by": 8_000, "phase": "after"}},
    {"drop_request": {}},
    {"drop_reply": {"then": "close"}},
    {"drop_reply": {}},
    {"close": {"phase": "before"}},
    {"close": {"phase": "after"}},
    {"throttle": {"by": 100}},
)
_OUTAGE = "outage"  # most brokers stop one after the other, and start in another order
_ERRORS = ("NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "COORDINATOR_LOAD_IN_PROGRESS")
_APIS = (
    "Produce",
    "Fetch",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "OffsetCommit",
    "InitProducerId",
    "EndTxn",
    "TxnOffsetCommit",
    "FindCoordinator",
    "Metadata",
)

# Actions that need something that no simulation has, change configs that the laws go by, or do what
# every client does anyway.
LEFT_OUT = frozenset(("revoke_acl", "alter_configs", "create_internal_topics"))


def generate(seed: int) -> Plan:
    """The plan of a seed; equal seeds give equal plans."""
    return _Drawing(seed).plan()


def _with_one_timeout(settings: Settings) -> Settings:
    """Brokers that wait for coordinators for a short time wait as long for the controller."""
    timeout_ms = settings.configs.get("request.timeout.ms")
    if timeout_ms is None:
        return settings
    configs = {**settings.configs, "controller.socket.timeout.ms": timeout_ms}
    return msgspec.structs.replace(settings, configs=configs)


class _Drawing:
    """The generation of one plan."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rng = random.Random(f"plan {seed}")
        self._added = random.Random(f"plan {seed} added")  # its draws do not change the others
        self._shares_id = False
        self._groups = random.Random(f"groups {seed}")

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def plan(self) -> Plan:
        rng = self._rng
        settings = self._settings()
        clients = self._clients(settings)
        if self._groups.random() < _LARGE_GROUP_SHARE:
            settings, clients = self._with_large_group(settings, clients)
        clients = [self._with_habits(client) for client in clients]
        if self._groups.random() < 0.15:  # the timeout of the transaction coordinators' writes
            configs = {**settings.configs, "request.timeout.ms": "1500"}
            settings = msgspec.structs.replace(settings, configs=configs)
        settings = _with_one_timeout(settings)
        settings, clients = with_queues(self._seed, settings, clients)
        steps = self._steps(settings, clients, rng.choice((0, 4, 10, 20, 35, 50)))
        return completed(Plan(seed=self._seed, settings=settings, clients=clients, steps=steps))

    # -- the cluster -------------------------------------------------------------------------------

    def _settings(self) -> Settings:
        rng = self._rng
        brokers = rng.choice((3, 3, 3, 4, 5))
        factor = rng.choice((2, 3, 3))
        configs = {
            "offsets.topic.num.partitions": str(rng.choice((1, 2, 3))),
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.num.partitions": str(rng.choice((1, 2))),
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": rng.choice(("1", "2")),
            "min.insync.replicas": rng.choice(("1", "2")),
            "group.initial.rebalance.delay.ms": rng.choice(("0", "0", "500")),
            "group.min.session.timeout.ms": "1000",
        }
        if self._chance(0.35):
            configs["mockbroker.replication"] = "stepwise"
        if self._chance(0.2):
            configs["unclean.leader.election.enable"] = "true"
        if self._chance(0.5):
            configs["replica.lag.time.max.ms"] = rng.choice(("1000", "1000", "10000"))
        if self._chance(0.3):
            configs["mockbroker.coordinator.load.ms"] = rng.choice(("50", "500"))
        if self._chance(0.4):
            configs["mockbroker.transaction.marker.delay.ms"] = rng.choice(("5", "40", "400"))
        self._add_configs(configs)
        topics = [
            TopicSettings(
                name=name,
                partitions=rng.randint(1, 3),
                replication_factor=factor,
                configs={"segment.bytes": "1048576"} if self._chance(0.2) else {},
            )
            for name in ("orders", "payments")[: rng.choice((1, 2, 2))]
        ]
        return Settings(
            brokers=brokers,
            kafka_version=rng.choice(RELEASES),
            configs=configs,
            topics=topics,
            duration_ms=rng.choice((5_000, 15_000, 40_000)),
            latency_ms=rng.choice(((0, 0), (0, 3), (1, 30))),
        )

    def _add_configs(self, configs: dict[str, str]) -> None:
        """Configs that make replication take more steps, or fail in part."""
        rng = self._added
        for name, share, values in (
            ("log.dirs", 0.2, ("/a,/b",)),
            ("replica.fetch.max.bytes", 0.2, ("100", "400")),
            ("request.timeout.ms", 0.3, ("1000",)),
            ("mockbroker.replication", 0.15, ("stepwise",)),
            ("min.insync.replicas", 0.1, ("3",)),
            ("unclean.leader.election.enable", 0.1, ("true",)),
        ):
            if rng.random() < share:
                configs[name] = rng.choice(values)

    # -- clients -----------------------------------------------------------------------------------

    def _clients(self, settings: Settings) -> list[ClientSettings]:
        rng = self._rng
        self._shares_id = self._chance(0.3)  # so that one producer fences the other
        kinds = ["producer", rng.choice(("transactional", "producer"))]
        kinds += rng.choices(
            ("transactional", "classic", "consumer", "reader", "admin", "pipeline", "classic"),
            k=rng.randint(1, 4),
        )
        if "reader" not in kinds:
            kinds.append("reader")
        new_protocol = settings.kafka_version in NEW_PROTOCOL_SINCE
        kinds = [kind if new_protocol or kind != "consumer" else "classic" for kind in kinds]
        budget = OPERATIONS // len(kinds)
        made = [self._client(number, kind, settings, budget) for number, kind in enumerate(kinds)]
        return [each for each in made if each is not None]

    def _client(self, number: int, kind: str, settings: Settings, budget: int) -> ClientSettings:
        rng = self._rng
        topics = [topic.name for topic in settings.topics]
        pause_ms = (0, max(1, settings.duration_ms * 2 // max(1, budget)))
        common: dict[str, Any] = {
            "name": f"{kind}-{number}",
            "topics": topics,
            "operations": budget,
            "pause_ms": pause_ms,
            "start_ms": rng.choice((0, 0, rng.randrange(settings.duration_ms // 2))),
        }
        if self._chance(0.25):
            common["release"] = rng.choice(RELEASES)
        if kind == "consumer" and common.get("release", "4.3") not in NEW_PROTOCOL_SINCE:
            del common["release"]
        match kind:
            case "producer":
                idempotent = self._chance(0.7)
                acks = -1 if idempotent else rng.choice((-1, -1, 1, 0))
                if self._added.random() < 0.2:
                    idempotent, acks = False, 1
                return ClientSettings(kind="producer", idempotent=idempotent, acks=acks, **common)
            case "transactional" | "pipeline":
                common["operations"] = max(2, budget // 5)
                common["pause_ms"] = (0, pause_ms[1] * 5)
                pipeline: dict[str, Any] = {}
                if kind == "pipeline":
                    pipeline = {
                        "input": topics[0],
                        "topics": topics[-1:],
                        "group": f"pipeline-{number}",
                    }
                return ClientSettings(
                    kind="transactional",
                    transactional_id=f"tx-{0 if self._shares_id else number}",
                    transaction_timeout_ms=rng.choice((2_000, 10_000)),
                    abort_share=rng.choice((0.0, 0.2, 0.5)),
                    **{**common, **pipeline},
                )
            case "classic" | "consumer":
                return ClientSettings(
                    kind=kind,
                    group=f"{kind}-group",
                    instance_id=f"static-{number}" if self._chance(0.3) else None,
                    assignor=rng.choice(("", "uniform", "range")) if kind == "consumer" else "",
                    session_timeout_ms=rng.choice((3_000, 6_000)),
                    rebalance_timeout_ms=rng.choice((3_000, 5_000)),
                    read_committed=self._chance(0.7),
                    **common,
                )
            case "reader":
                return ClientSettings(kind="reader", read_committed=self._chance(0.6), **common)
            case _:
                common["operations"] = max(2, budget // 4)
                common["pause_ms"] = (0, pause_ms[1] * 4)
                return ClientSettings(kind="admin", **common)

    def _with_large_group(
        self, settings: Settings, clients: list[ClientSettings]
    ) -> tuple[Settings, list[ClientSettings]]:
        """Halve the clients' operations, and add a group of several members with habits."""
        rng = self._groups
        new = settings.kafka_version in NEW_PROTOCOL_SINCE and rng.random() < 0.6
        kind: ClientKind = "consumer" if new else "classic"
        count = rng.choice((2, 3, 3, 4))
        operations = _LARGE_GROUP_OPERATIONS // count
        static = rng.choice((0.0, 0.0, 0.5, 1.0))
        topics = [topic.name for topic in settings.topics]
        topics = topics if rng.random() < 0.7 else topics[:1]
        timeout_ms = rng.choice((3_000, 5_000))
        # Two processes with one instance id.
        twins = rng.random() < 0.3
        members = []
        for number in range(count):
            is_static = rng.random() < static or (twins and number < 2)
            instance = f"member-{0 if twins and number < 2 else number}" if is_static else None
            possible: tuple[Habit, ...] = ("returns",) if new else _CLASSIC_HABITS
            habits: list[Habit] = [each for each in possible if rng.random() < 0.4]
            if rng.random() < 0.2:
                habits.append("long_metadata")
            members.append(
                ClientSettings(
                    kind=kind,
                    name=f"member-{number}",
                    group="company",
                    topics=topics,
                    operations=operations,
                    start_ms=rng.randrange(settings.duration_ms),
                    pause_ms=(0, max(1, settings.duration_ms * 2 // operations)),
                    instance_id=instance,
                    assignor=rng.choice(("", "uniform", "range")) if new else "",
                    session_timeout_ms=rng.choice((3_000, 6_000)),
                    rebalance_timeout_ms=timeout_ms,
                    read_committed=rng.random() < 0.7,
                    habits=habits,
                )
            )
        configs = dict(settings.configs)
        if any("long_metadata" in member.habits for member in members):
            configs["message.max.bytes"] = "6000"  # less than two of these commits
        halved = [
            msgspec.structs.replace(client, operations=max(2, client.operations // 2))
            for client in clients
        ]
        return msgspec.structs.replace(settings, configs=configs), halved + members

    def _with_habits(self, client: ClientSettings) -> ClientSettings:
        if client.kind != "reader":
            return client
        habits = [each for each in _READER_HABITS if self._groups.random() < 0.25]
        return msgspec.structs.replace(client, habits=habits)

    # -- steps -------------------------------------------------------------------------------------

    def _steps(self, settings: Settings, clients: list[ClientSettings], count: int) -> list[Step]:
        rng = self._rng
        names = self._names(settings, clients)
        kinds = _chosen(set(ACTIONS) - LEFT_OUT, rng.randint(2, 8), self._seed)
        # Faults of the network and of brokers find the most bugs.
        kinds += rng.choices(
            ("cut_network", "cut_network", "stop_broker", "pause_broker", "move_leader"),
            k=rng.randint(2, 6),
        )
        for own, share in (
            (plans.ADD_RULE, 0.4),
            (plans.CRASH_CLIENT, 0.3),
            (plans.RESTART, 0.2),
            (_OUTAGE, 0.3),
        ):
            if self._chance(share):
                kinds.append(own)
        added = self._add_steps(settings, names) if count else []
        if self._chance(0.06):
            kinds += [plans.SNAPSHOT, plans.RESTORE]
        steps = _slow_links(names.nodes, rng) if self._chance(0.3) else []
        for _ in range(count):
            steps += self._some_steps(rng.choice(kinds), settings, clients, names)
        return sorted((*steps, *added), key=lambda step: step.at_ms)

    def _add_steps(self, settings: Settings, names: Names) -> list[Step]:
        """Scenarios of several related steps."""
        rng = self._added
        steps: list[Step] = []
        if rng.random() < 0.1:
            at_ms = rng.randrange(settings.duration_ms)
            one_in = {"one_in": rng.choice((2, 5, 20))}
            steps.append(Step(at_ms=at_ms, do=plans.LOSE_MESSAGES, arguments=one_in))
        for scenario, share in (
            (self._cut_from_controller, 0.25),
            (self._restart_repeatedly, 0.2),
            (self._alternate_brokers, 0.2),
            (self._lead_after_purge, 0.15),
            (self._change_while_joining, 0.15),
        ):
            if rng.random() < share:
                if rng.random() < 0.5:
                    steps += _slow_links(names.nodes, rng)
                for _ in range(rng.choice((1, 2, 3))):
                    steps += scenario(rng.randrange(settings.duration_ms), names)
        return steps

    def _cut_from_controller(self, at_ms: int, names: Names) -> list[Step]:
        """A broker cannot reach the controller, which fences it later and changes partitions
        meanwhile.
        """
        rng = self._added
        controller, other = (1, rng.choice(names.nodes[1:]))
        blind, seen = (other, controller) if rng.random() < 0.7 else rng.sample(names.nodes, 2)
        cut = {"nodes": blind, "to": seen, "fence_after": rng.choice((1_000, 35_000))}
        steps = [Step(at_ms=at_ms, do="cut_network", arguments=cut)]
        for _ in range(rng.choice((1, 2, 3))):
            at_ms += rng.choice((10, 200, 1_000))
            topic = rng.choice(names.topics)
            where = {"topic": topic, "partition": rng.randrange(names.partitions_max)}
            change, arguments = rng.choice(
                (
                    ("move_leader", {**where, "node": blind}),
                    ("move_leader", {**where, "node": rng.choice(names.nodes)}),
                    ("shuffle_leaders", {"topic": topic}),
                    ("stop_broker", {"node": rng.choice(names.nodes), "how": "controlled"}),
                    ("start_broker", {"node": rng.choice(names.nodes)}),
                )
            )
            steps.append(Step(at_ms=at_ms, do=change, arguments=arguments))
        at_ms += rng.choice((50, 1_000, 3_000))
        heal = {"nodes": blind, "to": seen}
        return [*steps, Step(at_ms=at_ms, do="heal_network", arguments=heal)]

    def _restart_repeatedly(self, at_ms: int, names: Names) -> list[Step]:
        """A broker restarts several times, often before it has caught up."""
        rng = self._added
        node = rng.choice(names.nodes)
        steps = []
        for _ in range(rng.randint(2, 4)):
            how = {"node": node, "how": rng.choice(("controlled", "unclean", "power_loss"))}
            steps.append(Step(at_ms=at_ms, do="stop_broker", arguments=how))
            at_ms += rng.choice((10, 100, 1_000))
            steps.append(Step(at_ms=at_ms, do="start_broker", arguments={"node": node}))
            at_ms += rng.choice((2, 20, 200, 1_000))
        return steps

    def _alternate_brokers(self, at_ms: int, names: Names) -> list[Step]:
        """Two brokers run in turns; each stops before the other starts."""
        rng = self._added
        one, other = rng.sample(names.nodes, 2)
        steps = []
        for _ in range(rng.randint(2, 5)):
            at_ms += rng.choice((50, 300, 1_500))
            how = {"node": one, "how": rng.choice(("controlled", "controlled", "unclean"))}
            steps.append(Step(at_ms=at_ms, do="stop_broker", arguments=how))
            at_ms += rng.choice((0, 10))
            steps.append(Step(at_ms=at_ms, do="start_broker", arguments={"node": other}))
            one, other = other, one
        at_ms += rng.choice((50, 300, 1_500))
        return [*steps, Step(at_ms=at_ms, do="start_broker", arguments={"node": other})]

    def _lead_after_purge(self, at_ms: int, names: Names) -> list[Step]:
        """One follower returns to a log whose records were deleted; then the other one leads, with
        its remaining records.
        """
        rng = self._added
        leader, near, far = rng.sample(names.nodes, 3)
        where = {"topic": rng.choice(names.topics), "partition": 0}
        back = {**where, "release": True}
        todo: list[tuple[str, dict[str, Any]]] = [
            ("move_leader", {**where, "node": leader}),
            ("shrink_isr", {**where, "nodes": [far]}),
            ("shrink_isr", {**where, "nodes": [near]}),
            ("delete_records", where),
            ("lag_follower", {**back, "node": near}),
            ("stop_broker", {"node": near, "how": "unclean"}),
            ("stop_broker", {"node": leader, "how": "unclean"}),
            ("elect_unclean", {**where, "node": far}),
            ("lag_follower", {**back, "node": far}),
            ("start_broker", {"node": near}),
            ("start_broker", {"node": leader}),
        ]
        steps = []
        for name, arguments in todo:
            steps.append(Step(at_ms=at_ms, do=name, arguments=arguments))
            at_ms += rng.choice((1, 20, 300)) if name != "shrink_isr" else rng.choice((50, 1_000))
        return steps

    def _change_while_joining(self, at_ms: int, names: Names) -> list[Step]:
        """A follower rejoins the ISR, and its leader's AlterPartition is late. Before it arrives at
        the controller, a broker restarts, and cannot fetch from the leader.
        """
        rng = self._added
        controller = names.nodes[0]
        leader = rng.choice(names.nodes[1:])
        follower, other = rng.sample([node for node in names.nodes if node != leader], 2)
        index = rng.randrange(names.partitions_max)
        where = {"topic": rng.choice(names.topics), "partition": index}
        link = {"nodes": leader, "to": controller}
        victim = {"node": rng.choice((follower, follower, other))}
        lost = {"nodes": victim["node"], "to": leader}
        how = rng.choice(("power_loss", "power_loss", "unclean", "controlled"))
        todo: list[tuple[str, dict[str, Any]]] = [
            ("move_leader", {**where, "node": leader}),
            ("shrink_isr", {**where, "nodes": [follower]}),
            ("delay_network", {**link, "by": rng.choice((300, 1_000))}),
            ("lag_follower", {**where, "node": follower, "release": True}),
            ("stop_broker", {**victim, "how": how}),
            ("cut_network", lost),
            ("start_broker", victim),
            ("heal_network", link),
            ("heal_network", lost),
        ]
        pauses_ms = (
            (0, 50),
            (0, 200),
            (0, 300),
            (5, 50, 200),
            (0,),
            (1, 20),
            (300, 1_500),
            (0,),
            (0,),
        )
        steps = []
        for (name, arguments), pause_ms in zip(todo, pauses_ms, strict=True):
            steps.append(Step(at_ms=at_ms, do=name, arguments=arguments))
            at_ms += rng.choice(pause_ms)
        return steps

    def _names(self, settings: Settings, clients: list[ClientSettings]) -> Names:
        internal = ["__consumer_offsets", "__transaction_state"]
        if any(client.kind == "share" for client in clients):
            internal.append("__share_group_state")
        return Names(
            nodes=tuple(range(1, settings.brokers + 1)),
            topics=tuple(topic.name for topic in settings.topics) * 2 + tuple(internal),
            partitions_max=max(topic.partitions for topic in settings.topics),
            groups=tuple(sorted({client.group for client in clients if client.group})),
            transactional_ids=tuple(
                sorted({c.transactional_id for c in clients if c.transactional_id})
            ),
            instance_ids=tuple(sorted({c.instance_id for c in clients if c.instance_id})),
            client_ids=tuple(client.name for client in clients),
        )

    def _some_steps(
        self, name: str, settings: Settings, clients: list[ClientSettings], names: Names
    ) -> list[Step]:
        """A step, and the steps that undo it."""
        rng = self._rng
        at_ms = rng.randrange(settings.duration_ms)
        match name:
            case plans.ADD_RULE:
                later = at_ms + rng.choice((500, 3_000, 10_000))
                return [
                    Step(at_ms=at_ms, do=name, arguments=self._rule()),
                    Step(at_ms=later, do=plans.REMOVE_RULES),
                ]
            case _ if name == _OUTAGE:
                return self._outage(at_ms, names.nodes)
            case plans.CRASH_CLIENT:
                arguments: dict[str, Any] | None = {"client": rng.choice(clients).name}
            case plans.RESTART | plans.SNAPSHOT | plans.RESTORE:
                arguments = {}
            case _:
                arguments = draw_action(name, names, rng)
        if arguments is None:
            return []
        steps = [Step(at_ms=at_ms, do=name, arguments=arguments)]
        if name in _REMEDIES and self._chance(_REMEDY_SHARE):
            later = at_ms
            for remedy, kept, added in _REMEDIES[name]:
                later += rng.choice((10, 300, 1_500, 5_000, 12_000))
                same = {key: arguments[key] for key in kept if key in arguments}
                steps.append(Step(at_ms=later, do=remedy, arguments={**same, **added}))
        return steps

    def _outage(self, at_ms: int, nodes: tuple[int, ...]) -> list[Step]:
        """Most brokers stop within a short time, so that partitions lose one replica after the
        other, and then the last one.
        """
        rng = self._rng
        gap_ms = rng.choice((10, 300, 2_000))
        ways: tuple[str, ...] = ("controlled", "unclean", "unclean", "power_loss")
        ways = ways if self._chance(0.5) else ("controlled",)
        fence_after = rng.choice((0, 0, 1_000))
        stopped = rng.sample(nodes, rng.randint(max(1, len(nodes) - 2), len(nodes)))
        steps = []
        for node in stopped:
            at_ms += rng.randint(0, gap_ms)
            arguments: dict[str, Any] = {"node": node, "how": rng.choice(ways)}
            if arguments["how"] == "unclean":
                arguments["fence_after"] = fence_after
            steps.append(Step(at_ms=at_ms, do="stop_broker", arguments=arguments))
        at_ms += rng.choice((0, 500, 4_000))
        for node in rng.sample(stopped, len(stopped)):
            at_ms += rng.randint(0, gap_ms)
            steps.append(Step(at_ms=at_ms, do="start_broker", arguments={"node": node}))
        return steps

    def _rule(self) -> dict[str, Any]:
        rng = self._rng
        effect = rng.choice(_EFFECTS)
        if self._chance(0.3):
            kind = rng.choice(("error", "error_after"))
            effect = {kind: {"code": rng.choice(_ERRORS)}}
        return {
            "match": {"api": rng.choice(_APIS)},
            "when": {"probability": rng.choice((0.1, 0.3, 0.7))},
            "do": effect,
        }


def _chosen(actions: set[str], count: int, seed: int) -> list[str]:
    """Some of the actions, by their hashes with the seed (rendezvous hashing).

    A new action thus changes only the plans that contain it, and known seeds keep their meaning.
    """

    def rank(name: str) -> bytes:
        return hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()

    return sorted(actions, key=rank)[:count]


def _slow_links(nodes: tuple[int, ...], rng: random.Random) -> list[Step]:
    """Delay messages between brokers until the network is healed."""
    delay_ms = rng.choice((1, 10, 50, 300))
    return [
        Step(at_ms=0, do="delay_network", arguments={"nodes": node, "by": delay_ms})
        for node in rng.sample(nodes, rng.randint(1, len(nodes)))
    ]
