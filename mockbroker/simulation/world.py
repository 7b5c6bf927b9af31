"""The world of one simulation: the cluster, its clock and its clients, and what is done to them.

Nobody here waits. A *driver* moves the clock, lets clients and timers run, and calls `perform` when
a step is due and `look` after everything that happened.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from mockbroker.core.actions import ACTIONS, parse_action
from mockbroker.core.brokers.broker import Broker, BrokerSpec
from mockbroker.core.brokers.broker_life import PAUSED, REMOVED, RUNNING, STOPPED
from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.events import Event, LeaderChanged
from mockbroker.core.faults.engine import engine_of
from mockbroker.core.faults.errors import NameTakenError
from mockbroker.core.faults.rules import parse_plan as parse_rules
from mockbroker.core.metadata.topic import Topic
from mockbroker.core.replication.partition import NO_LEADER
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.image import ClusterImage
from mockbroker.core.snapshot.restore import RestoreError, restore
from mockbroker.handlers import load_all
from mockbroker.simulation import observe, observe_transactions
from mockbroker.simulation import plan as plans
from mockbroker.simulation.clients import client_of
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.disturbance import Disturbance
from mockbroker.simulation.history import History
from mockbroker.simulation.laws import Laws
from mockbroker.simulation.plan import Plan, Step

AT_ONCE_MAX = 20_000  # events at one time
GRACE_MS = 120_000  # how long clients may go on once faults have stopped
# The times of rest that follow, up to one day: by then all transactions and sessions have timed
# out, and the controller has searched for leaders 288 times.
REST_MS = (10_000, 60_000, 600_000, 3_600_000, 86_400_000)
START_MS = 1_700_000_000_000
LISTENER = "PLAINTEXT"

_encode_into = msgspec.msgpack.Encoder(enc_hook=repr).encode_into
_AT_ITS_END = -1  # of a buffer
_HASHED_BYTES = 64 * 1024  # at a time


class LivelockError(Exception):
    """Too many events without a pause: an endless loop in which no time passes."""


class Clock:
    """The clock of a simulation, in ms since the epoch; the driver advances it."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    @property
    def read(self) -> Callable[[], int]:
        """A function that returns the time."""
        return lambda: self.now_ms


class Digest:
    """A checksum of all events and answers, to compare two runs."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._buffer = bytearray()

    def add(self, at_ms: int, what: str, details: object) -> None:
        """Add one event or answer."""
        buffer = self._buffer
        _encode_into((at_ms, what, details), buffer, _AT_ITS_END)
        if len(buffer) > _HASHED_BYTES:
            self._take_in()

    def _take_in(self) -> None:
        self._hash.update(self._buffer)
        self._buffer.clear()

    def hexdigest(self) -> str:
        """The checksum so far."""
        self._take_in()
        return self._hash.hexdigest()


class _Jumps:
    """The clock control for actions: the clock jumps, and has no rate."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def set_rate(self, rate: float) -> None:  # noqa: ARG002
        raise ActionError("the clock of a simulation has no rate")

    def advance(self, milliseconds: int) -> None:
        self._clock.now_ms += milliseconds


class World:
    """The cluster, clients and laws of one plan. A step may replace `cluster`."""

    def __init__(self, plan: Plan, clock: Clock | None = None) -> None:
        load_all()  # laws use the contracts of APIs
        self.plan = plan
        self.clock = clock or Clock()
        self._network_rng = random.Random(f"{plan.seed} network")
        self.history = History(self.clock.read)
        self.digest = Digest()
        self.step = -1  # the number of the step that was performed last
        self.performed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        # Called after `cluster` was replaced, after the restore of a snapshot, and when a client
        # crashes.
        self.on_restarted: list[Callable[[], None]] = []
        self.on_restored: list[Callable[[], None]] = []
        self.on_client_crashed: list[Callable[[SimulatedClient], None]] = []
        self._changed_ms: dict[int, int] = {}  # the time of a broker's last change of state
        self._busy_ms = 0  # the time of the last event
        self._at_once = 0  # the events at that time
        self.configured: set[bytes] = set()  # ids of topics with changed configs
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
            now_ms=self.clock.read,
            kafka_version=settings.kafka_version,
        )
        cluster.runtime.clock_control = _Jumps(self.clock)
        network = cluster.replication.network
        network.interceptor = self._disturbance = Disturbance(network, self._network_rng)
        self.serve(cluster)
        return cluster

    def _observe(self) -> None:
        self.cluster.runtime.on_event.append(self._on_event)
        self.cluster.on_configs_changed.append(self._configured)
        self.cluster.on_broker_state.append(self._broker_changed)
        self.laws.watch(self.cluster)

    def _broker_changed(self, broker: Broker) -> None:
        self._changed_ms[broker.node_id] = self.clock.now_ms

    def has_run_since(self, node_id: int, since_ms: int) -> bool:
        """Whether a broker runs, and was not started, stopped, paused or resumed since then."""
        broker = self.cluster.processes.get(node_id)
        if broker is None or broker.state != RUNNING:
            return False
        return self._changed_ms.get(node_id, 0) < since_ms

    def _configured(self, topic: Topic) -> None:
        self.configured.add(topic.topic_id)

    def serve(self, cluster: Cluster | None = None) -> None:
        """Set the endpoints of new brokers."""
        for broker in (self.cluster if cluster is None else cluster).processes.values():
            if LISTENER not in broker.endpoints:
                broker.set_endpoint(LISTENER, f"broker-{broker.node_id}", 9092)

    def _on_event(self, event: Event) -> None:
        name = type(event).__name__
        now_ms = self.clock.now_ms
        if self._busy_ms != now_ms:
            self._busy_ms, self._at_once = now_ms, 0
        self._at_once += 1
        if self._at_once > AT_ONCE_MAX:
            at_ms = self._busy_ms - self.laws.start_ms
            raise LivelockError(f"{AT_ONCE_MAX:,} events at {at_ms} ms, the last is {event}")
        self.events[name] += 1
        self.digest.add(now_ms, name, event)
        self.laws.on_event(event)

    # -- steps -------------------------------------------------------------------------------------

    def perform(self, number: int, step: Step) -> None:
        """Perform a step, or count it as refused if it is impossible now."""
        self.step = self.laws.step = number
        name = step.do
        arguments = None if name in plans.OWN_STEPS else parse_action(name, step.arguments)
        self.laws.before(step, arguments)
        self.digest.add(self.clock.now_ms, name, step.arguments)
        try:
            if arguments is None:
                self._carry_out(step)
            else:
                self.cluster.perform(ACTIONS[name], arguments)
        except (ActionError, ApiError, RestoreError, NameTakenError):
            self.refused[name] += 1
        else:
            self.performed[name] += 1
        self._disturb()
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
            case plans.LOSE_MESSAGES:
                self._lose_messages(step.arguments.get("one_in", 0))
            case plans.CRASH_CLIENT:
                client = self.clients[step.arguments["client"]]
                for crashed in self.on_client_crashed:
                    crashed(client)

    def _lose_messages(self, one_in: int) -> None:
        """Lose one replication request in `one_in` from now on; 0 loses none."""
        rng = random.Random(f"{self.plan.seed} lost {self.step}")
        self._disturbance.lose(one_in, rng)
        self._disturb()
        self.cluster.replication.links_changed()

    def _disturb(self) -> None:
        """Disturb hops, unless rules for hops intercept them."""
        network = self.cluster.replication.network
        if network.interceptor is None:
            network.interceptor = self._disturbance

    def _restart(self) -> None:
        """Stop the cluster, and start another one with its data."""
        former = self.cluster
        image = capture(former)
        specs = [BrokerSpec(each.node_id, each.rack) for each in former.brokers.values()]
        former.runtime.on_event.clear()
        self.cluster = self._made(specs or [BrokerSpec(1)])
        emitted: list[Event] = []
        self.cluster.runtime.on_event.append(emitted.append)
        restore(self.cluster, image)
        self.cluster.runtime.on_event.remove(emitted.append)
        self.serve()
        self._observe()
        for broker in self.cluster.processes.values():
            self._broker_changed(broker)
        for event in emitted:  # the controller of the new process may have elected leaders
            if isinstance(event, LeaderChanged) and event.unclean:
                self._on_event(event)
        for observer in self.on_restarted:
            observer()

    def look(self) -> None:
        """Check the laws for everything that has changed."""
        self.laws.look()

    # -- the end -----------------------------------------------------------------------------------

    def end_faults(self) -> None:
        """End all faults: remove rules, restore links, release holds, start brokers, and elect the
        leaders that an action has dropped.

        Removed brokers return, empty, as an operator would replace them.
        """
        self.step = self.laws.step = len(self.plan.steps)
        cluster = self.cluster
        engine_of(cluster).clear()
        self._lose_messages(0)
        for act_ in (cluster.heal_network, self._release, self._run_all, self._elect):
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

    def _elect(self) -> None:
        """The controller itself would elect them after up to five minutes."""
        for topic in self.cluster.topics.values():
            for partition in topic.partitions:
                where = {"topic": topic.name, "partition": partition.index}
                for node_id in partition.isr:
                    if partition.leader_id == NO_LEADER:
                        self._act("move_leader", **where, node=node_id)

    def _act(self, name: str, **arguments: Any) -> None:
        with suppress(ActionError, ApiError):
            self.cluster.perform(ACTIONS[name], ACTIONS[name].arguments(**arguments))

    def unsettled(self) -> list[str]:
        """A sentence for everything that is not at rest."""
        self.laws.resting()
        cluster = self.cluster
        found = [
            f"broker {broker.node_id} runs and is fenced"
            for broker in cluster.processes.values()
            if broker.fenced and broker.state not in (STOPPED, REMOVED)
        ]
        stranded = False
        for partition in observe.partitions(cluster):
            configured = partition.topic.topic_id in self.configured
            if observe.is_stranded(partition, configured=configured):
                stranded = True
            else:
                found += self._unsettled_partition(partition)
        if not stranded:  # a marker needs a leader
            found += self._open_transactions()
        found += [f"group {each}" for each in observe.groups_at_work(cluster)]
        return found

    def _open_transactions(self) -> list[str]:
        found = observe_transactions.open_transactions(self.cluster)
        if self.laws.transactions_lost:
            found = [t for t in found if not observe_transactions.is_superseded(self.cluster, t)]
        return [f"transaction {each.transactional_id} is {each.state.value}" for each in found]

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
