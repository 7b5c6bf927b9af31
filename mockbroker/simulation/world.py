"""The world of one simulation: the cluster, its clock and its clients, and what is done to them.

Nobody here waits. A *driver* moves the clock, lets clients and timers run, and calls `perform` when
a step is due and `look` after everything that happened.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from mockbroker.core.broker import BrokerSpec
from mockbroker.core.broker_life import PAUSED, REMOVED, STOPPED
from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.events import Event
from mockbroker.core.faults.actions import parse_action
from mockbroker.core.faults.actions import perform as act
from mockbroker.core.faults.engine import engine_of
from mockbroker.core.faults.errors import NameTakenError
from mockbroker.core.faults.rules import parse_plan as parse_rules
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.image import ClusterImage
from mockbroker.core.snapshot.restore import RestoreError, restore
from mockbroker.simulation import observe
from mockbroker.simulation import plan as plans
from mockbroker.simulation.clients import client_of
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.history import History
from mockbroker.simulation.laws import Laws
from mockbroker.simulation.plan import Plan, Step

AT_ONCE_MAX = 20_000  # events without any time between them
GRACE_MS = 120_000  # how long clients may go on once faults have stopped
# How long it may then take until everything is at rest. What is not after an hour never will be:
# transactions and sessions have ended, and the controller has looked for leaders a dozen times.
REST_MS = (10_000, 60_000, 600_000, 3_600_000)
START_MS = 1_700_000_000_000
LISTENER = "PLAINTEXT"

_encode = msgspec.msgpack.Encoder(enc_hook=repr).encode


class StandsStill(Exception):  # noqa: N818 - it names what happened
    """So much happens that no time passes."""


class Clock:
    """The time of a simulation, in ms since the epoch; a driver moves it on."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


class Digest:
    """A checksum of everything that happens, by which two runs are compared."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, at_ms: int, what: str, details: object) -> None:
        """Take in one thing that happened."""
        self._hash.update(_encode((at_ms, what, details)))

    def hexdigest(self) -> str:
        """The checksum so far."""
        return self._hash.hexdigest()


class _Jumps:
    """The clock as actions steer it: it only jumps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def set_rate(self, rate: float) -> None:  # noqa: ARG002
        raise ActionError("the clock of a simulation has no rate")

    def advance(self, milliseconds: int) -> None:
        self._clock.now_ms += milliseconds


class World:
    """Everything that a plan describes, alive. Drivers read `cluster` anew after each step."""

    def __init__(self, plan: Plan, clock: Clock | None = None) -> None:
        self.plan = plan
        self.clock = clock or Clock()
        self.history = History(self.clock)
        self.digest = Digest()
        self.step = -1  # the number of the step that was performed last
        self.performed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        # Called when the cluster is another object now, when it was put back to what it was, and
        # when a client dies.
        self.on_restarted: list[Callable[[], None]] = []
        self.on_restored: list[Callable[[], None]] = []
        self.on_client_crashed: list[Callable[[SimulatedClient], None]] = []
        self._busy_ms = 0  # since when no time has passed, and how much was told since
        self._at_once = 0
        settings = plan.settings
        nodes = range(1, settings.brokers + 1)
        self.cluster = self._made([BrokerSpec(node_id) for node_id in nodes])
        self.laws = Laws(self)
        self._observe()
        for topic in settings.topics:
            self.cluster.create_topic(
                topic.name, topic.partitions, topic.replication_factor, configs=topic.configs
            )
        self.clients: dict[str, SimulatedClient] = {
            each.name: client_of(each, settings.kafka_version, list(nodes), self.history)
            for each in plan.clients
        }
        self._image: ClusterImage | None = None

    def _made(self, specs: list[BrokerSpec]) -> Cluster:
        settings = self.plan.settings
        cluster = Cluster(
            specs,
            settings.configs,
            seed=self.plan.seed,
            now_ms=self.clock,
            kafka_version=settings.kafka_version,
        )
        cluster.clock_control = _Jumps(self.clock)
        self.serve(cluster)
        return cluster

    def _observe(self) -> None:
        self.cluster.on_event.append(self._happened)
        self.laws.watch(self.cluster)

    def serve(self, cluster: Cluster | None = None) -> None:
        """Give addresses to brokers that have none."""
        for broker in (self.cluster if cluster is None else cluster).processes.values():
            if LISTENER not in broker.endpoints:
                broker.set_endpoint(LISTENER, f"broker-{broker.node_id}", 9092)

    def _happened(self, event: Event) -> None:
        name = type(event).__name__
        if self._busy_ms != self.clock.now_ms:
            self._busy_ms, self._at_once = self.clock.now_ms, 0
        self._at_once += 1
        if self._at_once > AT_ONCE_MAX:
            at_ms = self._busy_ms - self.laws.start_ms
            raise StandsStill(f"{AT_ONCE_MAX:,} events at {at_ms} ms, the last is {event}")
        self.events[name] += 1
        self.digest.add(self.clock.now_ms, name, event)
        self.laws.happened(event)

    # -- steps -------------------------------------------------------------------------------------

    def perform(self, number: int, step: Step) -> None:
        """Carry out a step; one that is not possible just now is counted, and no more."""
        self.step = number
        name = step.do
        self.laws.before(step)
        self.digest.add(self.clock.now_ms, name, step.arguments)
        try:
            self._carry_out(step)
        except (ActionError, ApiError, RestoreError, NameTakenError):
            self.refused[name] += 1
        else:
            self.performed[name] += 1
        self.serve()
        self.laws.after(step)

    def _carry_out(self, step: Step) -> None:
        match step.do:
            case plans.ADD_RULE:
                engine = engine_of(self.cluster)
                engine.add(parse_rules(step.arguments, f"rule-{self.step}"))
            case plans.REMOVE_RULES:
                engine_of(self.cluster).clear()
            case plans.SNAPSHOT:
                self._image = capture(self.cluster)
            case plans.RESTORE:
                if self._image is None:
                    raise RestoreError("there is no snapshot yet")
                restore(self.cluster, self._image)
                for observer in self.on_restored:
                    observer()
            case plans.RESTART:
                self._restart()
            case plans.CRASH_CLIENT:
                client = self.clients[step.arguments["client"]]
                for crashed in self.on_client_crashed:
                    crashed(client)
            case name:
                act(self.cluster, name, parse_action(name, step.arguments))

    def _restart(self) -> None:
        """End the whole cluster, and start another one with what it had."""
        former = self.cluster
        image = capture(former)
        specs = [BrokerSpec(each.node_id, each.rack) for each in former.brokers.values()]
        former.on_event.clear()
        self.cluster = self._made(specs or [BrokerSpec(1)])
        restore(self.cluster, image)
        self.serve()
        self._observe()
        for observer in self.on_restarted:
            observer()

    def look(self) -> None:
        """Let the laws look at what has changed."""
        self.laws.look()

    # -- the end -----------------------------------------------------------------------------------

    def calm(self) -> None:
        """Take away everything that stands in the way: rules, cuts, holds; start what is stopped.

        What only an operator could repair is repaired: brokers that were removed come back, empty.
        """
        self.step = len(self.plan.steps)
        cluster = self.cluster
        engine_of(cluster).clear()
        for act_ in (cluster.heal_network, self._release, self._run_all):
            with suppress(ActionError, ApiError):
                act_()
        self.serve()
        self.laws.look()

    def _release(self) -> None:
        cluster = self.cluster
        ids = [client.transactional_id for client in self.plan.clients if client.transactional_id]
        for transactional_id in ids:
            self._act("hang_transaction", transactional_id=transactional_id, release=True)
        for topic in list(cluster.topics):
            for partition in cluster.topics[topic].partitions:
                where = {"topic": topic, "partition": partition.index}
                self._act("hold_high_watermark", **where, release=True)
                self._act("hold_last_stable_offset", **where, release=True)
                for node_id in partition.replicas:
                    self._act("lag_follower", **where, node=node_id, release=True)

    def _run_all(self) -> None:
        cluster = self.cluster
        for node_id in range(1, self.plan.settings.brokers + 1):
            if node_id not in cluster.processes:
                self._act("add_broker", node=node_id)
        for broker in list(cluster.processes.values()):
            node = {"node": broker.node_id}
            if broker.state == PAUSED:
                self._act("resume_broker", **node)
            if broker.log_dirs.failed and broker.state not in (STOPPED, REMOVED):
                self._act("stop_broker", **node, how="controlled")
            if broker.state == STOPPED:
                self._act("start_broker", **node)
        for partition in list(observe.partitions(cluster)):
            if partition.leader_id < 0 and not partition.isr and not partition.elr:
                # Nobody is known to have everything: Kafka waits for an operator (KIP-966).
                where = {"topic": partition.topic.name, "partition": partition.index}
                self._act("elect_unclean", **where, node=partition.replicas[0])

    def _act(self, name: str, **arguments: Any) -> None:
        with suppress(ActionError, ApiError):
            act(self.cluster, name, parse_action(name, arguments))

    def unsettled(self) -> list[str]:
        """What is not at rest yet, in a sentence each."""
        cluster = self.cluster
        found = [
            f"broker {broker.node_id} runs and is fenced"
            for broker in cluster.processes.values()
            if broker.fenced and broker.state not in (STOPPED, REMOVED)
        ]
        for partition in observe.partitions(cluster):
            found += self._unsettled_partition(partition)
        found += [f"transaction {each}" for each in observe.open_transactions(cluster)]
        found += [f"group {each}" for each in observe.groups_at_work(cluster)]
        return found

    def _unsettled_partition(self, partition: Any) -> list[str]:
        name = f"{partition.topic.name}-{partition.index}"
        if partition.leader_id < 0:
            return [f"{name} has no leader (ISR {partition.isr}, ELR {list(partition.elr)})"]
        known = [node for node in partition.replicas if node in self.cluster.brokers]
        absent = [node for node in known if node not in partition.isr]
        if absent:
            return [f"{name}: replicas {absent} are not in the ISR {partition.isr}"]
        end = partition.log_end_offset
        views = observe.replicas(self.cluster, partition)
        behind = [view.node_id for view in views if view.log.end_offset != end]
        if behind:
            return [f"{name}: the logs of {behind} do not end at {end}"]
        if partition.high_watermark < end:
            return [f"{name}: the high watermark {partition.high_watermark} is below {end}"]
        if partition.last_stable_offset < partition.high_watermark and not self.laws.may_hang(
            partition
        ):
            return [
                f"{name}: the last stable offset {partition.last_stable_offset} is below the high "
                f"watermark {partition.high_watermark}"
            ]
        return []
