"""Two replicas of one partition: their logs, the follower's machine, a controller, and one cut.

The leader is a simple form of Kafka's Partition: it answers fetches, and moves the high watermark
to the smallest known log end in the ISR. The controller elects only members of the ISR. Brokers get
the result of an election one after the other. One broker may be cut off from the other and from the
controller, or crash and restart with its high watermark checkpoint or an old one. Requests and
answers are lost, late, or arrive after a timeout.

Each of the three truncation protocols of followers is an explored world. The oldest one, by the
high watermark, is known to lose committed records (KIP-101).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.fetcher import (
    Answer,
    EpochEnd,
    Fetch,
    Fetched,
    FetcherRequest,
    FetcherState,
    Follow,
    Halt,
    OffsetForLeaderEpoch,
    Pause,
    RefusedPartition,
    ReplicaFetcher,
    RetryDue,
    Truncation,
)
from mockbroker.core.replication.fetcher import Event as StateEvent
from mockbroker.core.replication.replica import Replica
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, Record, build_batch
from tests.simulation.exhaustive.replica_nodes import (
    LIMITS,
    NOBODY,
    Node,
    Records,
    copied,
    divergence_answer,
    records,
    text_of,
)
from tests.simulation.exhaustive.world import Event, ExploredWorld, must

RECORDS_MAX = 3
EPOCHS_MAX = 3
ANSWERS_MAX = 2  # on their way to one follower
ROUNDS_OF_PEACE = 40
UNKNOWN = -1
FETCH_BYTES = 1  # one batch at a time
BATCHES = tuple(bytes(build_batch([Record(timestamp=n, value=b"")])) for n in range(RECORDS_MAX))


class ReplicasWorld(ExploredWorld):
    """The two brokers, and the controller's leader, leader epoch and ISR."""

    name: ClassVar[str] = "replicas"
    truncation: ClassVar[Truncation]
    beginnings: ClassVar[tuple[str, ...]] = (
        "two empty replicas",
        "a record that the follower does not know to be committed",
        "an isolated leader with a record that nobody else has",
    )

    def __init__(self) -> None:
        self.nodes = tuple(
            Node(n, ReplicaFetcher(Replica(n, ReplicaLog(), 0), LIMITS, self.truncation))
            for n in range(2)
        )
        self.leader = 0
        self.epoch = 0
        self.isr = frozenset({0, 1})
        self.cut = NOBODY
        self.appended = 0
        self.committed: Records = ()

    @classmethod
    def begin(cls, beginning: str) -> ReplicasWorld:
        world = cls()
        world.on_learn(0)
        world.on_learn(1)
        if beginning != cls.beginnings[0]:
            world.on_append(0)
            world._until_fetched(1)
        if beginning == cls.beginnings[2]:
            world.on_cut(0)
            world.on_append(0)
            world.on_fence(0)
        return world

    def _until_fetched(self, offset: int) -> None:
        """Let the follower fetch until the leader has its fetch offset `offset`."""
        while self.nodes[0].known.get(1) != offset:
            self.on_serve(1)
            self.on_deliver(1)

    # -- events ------------------------------------------------------------------------------------

    def events(self) -> Sequence[Event]:
        found: list[Event] = []
        for node in self.nodes:
            n, other = node.node_id, self.nodes[1 - node.node_id]
            if not node.alive:
                found.append(("restart", n))
            else:
                found += [("crash", n), ("crash", n, "old_checkpoint")]
                if node.leads and self.appended < RECORDS_MAX:
                    found.append(("append", n))
                if self._may_be_served(node, other):
                    found.append(("serve", n))
                if node.answers:
                    found += [("deliver", n), ("lose", n)]
                if node.request is not None or node.paused is not None:
                    found.append(("wake", n))
                if node.epoch != self.epoch and n != self.cut and not self._is_over(n):
                    found.append(("learn", n))
                if node.leads and self._may_alter(node) and len(self.isr) > 1:
                    found.append(("shrink", n))
            silent = n in self.isr and len(self.isr) > 1 and (not node.alive or n == self.cut)
            if silent and (n != self.leader or self._electable(1 - n)):
                found.append(("fence", n))
            if self._electable(n):
                found.append(("elect", n))
        found += [("heal",)] if self.cut != NOBODY else [("cut", 0), ("cut", 1)]
        return found

    def _may_be_served(self, node: Node, leader: Node) -> bool:
        """Whether a pending request can reach the leader."""
        request = node.request
        return (
            request is not None
            and all(answer.number != request.number for answer in node.answers)
            and len(node.answers) < ANSWERS_MAX
            and leader.alive
            and self.cut == NOBODY
        )

    def _may_alter(self, node: Node) -> bool:
        """Whether the controller accepts a change of the ISR from this leader."""
        return node.node_id != self.cut and node.epoch == self.epoch and self.leader == node.node_id

    def _electable(self, n: int) -> bool:
        return (
            n in self.isr
            and self.nodes[n].alive
            and n != self.cut
            and self.epoch + 1 < EPOCHS_MAX
            and (self.leader != n or self._is_over(n))
        )

    def _is_over(self, n: int) -> bool:
        """Whether this broker has crashed since it became leader."""
        return self.leader == n and self.nodes[n].died_at == self.epoch

    def on_append(self, n: int) -> None:
        """A client writes to this leader with acks=1."""
        node = self.nodes[n]
        batch = memoryview(bytearray(BATCHES[self.appended]))
        node.log.maybe_roll(len(batch), self.appended, 0, LIMITS)
        node.log.append(batch, 0, self.appended, node.epoch)
        self.appended += 1
        self._advance(node)

    def on_serve(self, n: int) -> None:
        """The request arrives at the leader, which sends its answer."""
        node, leader = self.nodes[n], self.nodes[1 - n]
        request = node.request
        assert request is not None
        node.answers = (*node.answers, self._answer(n, request, leader))

    def _answer(self, n: int, request: FetcherRequest, leader: Node) -> Answer:
        number, log = request.number, leader.log
        if not leader.leads or leader.epoch != request.leader_epoch:
            return RefusedPartition(number, ErrorCode.FENCED_LEADER_EPOCH)
        if isinstance(request, OffsetForLeaderEpoch):
            return EpochEnd(number, *log.epochs.end_offset_for(request.epoch, log.end_offset))
        elsewhere = divergence_answer(request, log)
        if elsewhere is not None:
            return elsewhere
        taken = log.read_slice(request.offset, FETCH_BYTES)
        answer = Fetched(number, taken, leader.high_watermark, log.start_offset)
        self._update_follower_fetch_state(leader, n, request.offset)
        return answer

    def on_deliver(self, n: int) -> None:
        node = self.nodes[n]
        answer, *later = node.answers
        node.answers = tuple(later)
        counts = answer.number == node.fetcher._number
        self._tell(node, answer)
        if isinstance(answer, Fetched) and counts:
            node.confirmed = True

    def on_lose(self, n: int) -> None:
        self.nodes[n].answers = self.nodes[n].answers[1:]

    def on_wake(self, n: int) -> None:
        """The follower's pause ends, or its request times out."""
        node = self.nodes[n]
        number = node.paused if node.paused is not None else node.fetcher._number
        node.paused = None
        self._tell(node, RetryDue(number))

    def on_shrink(self, n: int) -> None:
        """The leader removes the follower from the ISR, because it lags."""
        self.isr = self.nodes[n].isr = frozenset({n})
        self._advance(self.nodes[n])

    def on_fence(self, n: int) -> None:
        """The broker's session with the controller expires; the other broker becomes leader."""
        self.isr -= {n}
        leader = self.nodes[1 - n]
        if self.leader == n:
            self.on_elect(1 - n)
        elif self._may_alter(leader):
            leader.isr = self.isr
            self._advance(leader)

    def on_elect(self, n: int) -> None:
        self.leader = n
        self.epoch += 1

    def on_learn(self, n: int) -> None:
        """The broker gets the controller's newest metadata."""
        node = self.nodes[n]
        node.epoch = self.epoch
        node.leads = self.leader == n
        if not node.leads:
            node.confirmed = False
            self._tell(node, Follow(self.leader, self.epoch))
            return
        self._tell(node, Halt())
        node.request, node.paused = None, None
        node.isr = self.isr
        node.known = {}
        node.epoch_start = node.log.end_offset
        node.log.epochs.assign(self.epoch, node.log.end_offset)
        self._advance(node)

    def on_cut(self, n: int) -> None:
        self.cut = n
        for node in self.nodes:
            node.answers = ()

    def on_heal(self) -> None:
        """The network is healed; a leader that was cut off gets the smaller ISR."""
        self.cut = NOBODY
        leader = self.nodes[self.leader]
        if leader.leads and leader.epoch == self.epoch:
            leader.isr = self.isr
            self._advance(leader)

    def on_crash(self, n: int, how: str = "") -> None:
        """The process crashes. Its log stays, and its checkpoint, which may be an old one."""
        node = self.nodes[n]
        log = copied(node.log)
        high_watermark = 0 if how else node.high_watermark
        replica = Replica(n, log, high_watermark)
        dead = Node(n, ReplicaFetcher(replica, LIMITS, self.truncation))
        dead.alive = False
        dead.died_at = self.epoch
        self.nodes = tuple(dead if each is node else each for each in self.nodes)

    def on_restart(self, n: int) -> None:
        """The broker restarts without metadata; a former leader gets a new leader epoch."""
        self.nodes[n].alive = True

    # -- the leader's side -------------------------------------------------------------------------

    def _update_follower_fetch_state(self, leader: Node, n: int, offset: int) -> None:
        leader.known[n] = offset
        if (
            n not in leader.isr
            and self._may_alter(leader)
            and offset >= max(leader.high_watermark, leader.epoch_start)
        ):
            self.isr = leader.isr = self.isr | {n}
        self._advance(leader)

    def _advance(self, leader: Node) -> None:
        """Move the high watermark to the smallest known log end in the ISR."""
        ends = [
            leader.log.end_offset if n == leader.node_id else leader.known.get(n, UNKNOWN)
            for n in leader.isr
        ]
        offset = min(ends)
        if offset <= leader.high_watermark:
            return
        leader.fetcher.replica.update_high_watermark(offset)
        below = records(leader.log)[:offset]
        known = min(len(below), len(self.committed))
        must(below[:known] == self.committed[:known], "committed records stay as they are")
        if len(below) > len(self.committed):
            self.committed = below

    def _tell(self, node: Node, event: StateEvent) -> None:
        for effect in node.fetcher.handle(event, 0):
            if isinstance(effect, Fetch | OffsetForLeaderEpoch):
                node.request, node.paused = effect, None
            elif isinstance(effect, Pause):
                node.request, node.paused = None, effect.number

    # -- invariants --------------------------------------------------------------------------------

    def check(self) -> None:
        logs = [records(node.log) for node in self.nodes]
        common = min(node.high_watermark for node in self.nodes)
        must(logs[0][:common] == logs[1][:common], "logs are equal below the high watermark")
        for n in self.isr:
            kept = logs[n][: len(self.committed)]
            must(kept == self.committed, "a replica in the ISR has all committed records")
        for node in self.nodes:
            n, leader = node.node_id, self.nodes[1 - node.node_id]
            must(node.high_watermark <= node.log.end_offset, "a watermark is within the log")
            ends = [epoch for epoch, _ in logs[n]]
            must(ends == sorted(ends), "leader epochs rise in a log")
            offsets = [BatchHeader(batch).base_offset for batch in node.log.batches()]
            must(offsets == list(range(node.log.end_offset)), "a log has each offset once")
            waits = node.request is not None or node.paused is not None
            must(
                waits or not node.alive or node.leads or node.epoch == NOBODY, "a follower fetches"
            )
            if self._is_settled(node) and leader.leads and leader.epoch == node.epoch:
                must(
                    logs[n] == logs[leader.node_id][: len(logs[n])],
                    "a follower that has settled has a beginning of its leader's log",
                )

    def _is_settled(self, node: Node) -> bool:
        fetcher = node.fetcher
        if fetcher.following is None or fetcher.state is FetcherState.TRUNCATING:
            return False
        return fetcher._settled if fetcher.truncation is Truncation.EPOCH else node.confirmed

    def settle(self) -> None:
        self.on_heal()
        for n, node in enumerate(self.nodes):
            if not node.alive:
                self.on_restart(n)
        if self._is_over(self.leader):
            self.on_elect(self.leader)
        if self.nodes[self.leader].epoch != self.epoch:
            self.on_learn(self.leader)
        follower = 1 - self.leader
        if self.nodes[follower].epoch != self.epoch:
            self.on_learn(follower)
        for _ in range(ROUNDS_OF_PEACE):
            node = self.nodes[follower]
            if node.answers:
                self.on_deliver(follower)
            elif node.request is not None:
                self.on_serve(follower)
            else:
                self.on_wake(follower)
            self.check()
        logs = [records(node.log) for node in self.nodes]
        must(logs[0] == logs[1], "in peace both have the same")
        must(self.isr == {0, 1}, "in peace both are in sync")
        marks = {node.high_watermark for node in self.nodes}
        must(marks == {len(logs[0])}, "in peace all is committed, and both know it")

    # -- the key -----------------------------------------------------------------------------------

    def freeze(self) -> ReplicasWorld:
        copy = object.__new__(type(self))
        copy.nodes = tuple(node.copy() for node in self.nodes)
        copy.leader = self.leader
        copy.epoch = self.epoch
        copy.isr = self.isr
        copy.cut = self.cut
        copy.appended = self.appended
        copy.committed = self.committed
        return copy

    @classmethod
    def copies(cls, frozen: ReplicasWorld) -> Callable[[], ExploredWorld]:
        return frozen.freeze

    def key(self) -> object:
        return (
            tuple(self._node(node) for node in self.nodes),
            self.leader,
            self.epoch,
            sorted(self.isr),
            self.cut,
            self.appended,
            self.committed,
        )

    def _node(self, node: Node) -> object:
        fetcher = node.fetcher
        said = tuple(
            (answer.number == fetcher._number, type(answer).__name__, text_of(answer))
            for answer in node.answers
        )
        return (
            records(node.log),
            node.log.epochs.entries,
            node.high_watermark,
            node.alive,
            node.died_at == self.epoch,
            node.epoch,
            node.leads,
            sorted(node.isr),
            sorted(node.known.items()),
            node.epoch_start,
            fetcher.state.value,
            fetcher._settled,
            node.confirmed,
            None if node.request is None else node.request[1:],
            said,
            node.paused is not None,
        )


class ReplicasByFetch(ReplicasWorld):
    """Followers since Kafka 2.7: a fetch has the epoch of the last record (KIP-595)."""

    name = "replicas-fetch"
    truncation = Truncation.FETCH


class ReplicasByEpoch(ReplicasWorld):
    """Followers of Kafka 0.11 to 2.6: they request the end offset of their last epoch (KIP-101)."""

    name = "replicas-epoch"
    truncation = Truncation.EPOCH


class ReplicasByHighWatermark(ReplicasWorld):
    """Followers up to Kafka 0.10: they truncate to their high watermark."""

    name = "replicas-hw"
    truncation = Truncation.HIGH_WATERMARK
