"""Incremental fetch sessions (KIP-227).

A *session* has *targets*: the partitions of one fetcher with the parameters of its last request and
the offsets of its last response. A *full* request (session epoch 0) lists all partitions and may
open a session. An *incremental* request (epoch n > 0) lists changes only. Epoch -1 ends a session.
The *context* of a request depends on its session id and epoch:

    session id, epoch          context        the response
    0 or x, -1                 sessionless    all targets, session id 0; x is closed
    0 or x, 0                  full           all targets, the id of a new session if there is room
    x, n as expected           incremental    the targets with changes, id x
    x, n as expected, empty    sessionless    x is closed, because it has no targets
    x unknown or n wrong       error 70, 71   no targets; 106 if topic ids and names are mixed

A target *rests* on its partition if the last look found nothing that its fetcher does not know,
and nothing to read. Until the partition changes, every look would find the same, so that a request
looks at the *active* targets only. A change of the partition wakes its target, a request the
targets that it names, and another image of the broker or another isolation level all of them.
Kafka looks at each target each time, with many threads: one thread would let everybody wait for
the session of a client with thousands of partitions. No target of a small session rests.

Source: FetchSession.scala, with one shard.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from mockbroker.core.limits import SessionRoom
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest

if TYPE_CHECKING:
    from mockbroker.core.ids import IdSource
    from mockbroker.core.replication.partition import Partition

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 0x7FFFFFFF
RESTING_ABOVE = 20  # targets of a session: to look at fewer takes less than to let them rest
EVICTION_MS = 120_000  # KafkaBroker.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS

_NOT_FOUND = int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
_INVALID_EPOCH = int(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
_TOPIC_ID_ERROR = int(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)

TargetKey = tuple[str | bytes, int]


class FetchTarget:
    """One partition of a fetcher.

    `topic` is None as long as the id has not been resolved to a name. `high_watermark` and
    `log_start_offset` are those of its last response, -1 without one or after an error. Targets of
    a session are ordered by `place`. `rests_on` is the partition that a target rests on, or None.
    """

    __slots__ = (
        "high_watermark",
        "key",
        "log_start_offset",
        "place",
        "request",
        "rests_on",
        "topic",
        "topic_id",
    )

    def __init__(
        self, key: TargetKey, topic: str | None, topic_id: bytes, request: FetchPartition
    ) -> None:
        self.key = key
        self.topic = topic
        self.topic_id = topic_id
        self.request = request
        self.high_watermark = -1
        self.log_start_offset = -1
        self.place = 0
        self.rests_on: Partition | None = None


Targets = dict[TargetKey, FetchTarget]
_place = attrgetter("place")


class WaitingFetch(Protocol):
    """A request of a session that waits for its partitions."""

    def woken(self, partition: Partition, target: FetchTarget) -> None:
        """The target no longer rests on the partition: the request waits for its changes too."""
        ...


class FetchSession:
    """One fetcher's session. `epoch` is the expected epoch of its next request; `waiting` are its
    requests that wait.
    """

    __slots__ = (
        "_active",
        "_closed",
        "_next_place",
        "_read_committed",
        "_resting",
        "by_id",
        "created_ms",
        "epoch",
        "last_used_ms",
        "privileged",
        "session_id",
        "targets",
        "waiting",
    )

    def __init__(
        self, session_id: int, targets: Targets, *, by_id: bool, privileged: bool, now_ms: int
    ) -> None:
        self.session_id = session_id
        self.targets = targets
        self.by_id = by_id
        self.privileged = privileged
        self.epoch = 1
        self.created_ms = self.last_used_ms = now_ms
        self.waiting: dict[WaitingFetch, None] = {}
        # The targets that do not rest; None until one rests.
        self._active: Targets | None = None
        self._next_place = 0
        self._resting: dict[Partition, FetchTarget] = {}
        self._read_committed = False  # at the looks after which targets rest
        self._closed = False

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The lowest rank is evicted first: consumers before followers, small before large."""
        return self.privileged, len(self.targets), self.session_id

    # -- targets -----------------------------------------------------------------------------------

    def change(self, request: FetchRequest) -> None:
        """Apply the changes of an incremental request; the targets that it names are active."""
        if self.waiting:
            self._let_go()
        targets = self.targets
        if request.topics:
            _add(targets, request, by_id=self.by_id)
            if self._active is not None:
                self._activate(self._active, request)
        for forgotten in request.forgotten_topics_data:
            topic_key = forgotten.topic_id if self.by_id else forgotten.topic
            for index in forgotten.partitions:
                gone = targets.pop((topic_key, index), None)
                if gone is None or self._active is None:
                    continue
                if gone.rests_on is not None:
                    self.wake(gone.rests_on)
                del self._active[gone.key]

    def _activate(self, active: Targets, request: FetchRequest) -> None:
        for topic in request.topics:
            topic_key = topic.topic_id if self.by_id else topic.topic
            for partition in topic.partitions:
                target = self.targets[topic_key, partition.partition]
                if target.rests_on is not None:
                    self.wake(target.rests_on)
                elif target.key not in active:
                    self._put_last(target)
                    active[target.key] = target

    def move_to_end(self, target: FetchTarget) -> None:
        """Let a target be looked at after all others."""
        del self.targets[target.key]
        self.targets[target.key] = target
        self._put_last(target)

    def _put_last(self, target: FetchTarget) -> None:
        target.place = self._next_place
        self._next_place += 1

    # -- rest --------------------------------------------------------------------------------------

    def active(self, *, read_committed: bool) -> Collection[FetchTarget]:
        """The targets to look at by a request with this isolation level, in order."""
        if self._read_committed is not read_committed:
            self.wake_all()
            self._read_committed = read_committed
        if self._active is None:
            return self.targets.values()
        active = self._active.values()
        return active if len(active) < 2 else sorted(active, key=_place)

    def rest(self, target: FetchTarget, partition: Partition) -> None:
        """Let an active target rest on its partition, until one of its changes."""
        if self._closed:
            return
        if self._active is None:
            self._active = dict(self.targets)
            for each in self.targets.values():
                self._put_last(each)
        del self._active[target.key]
        self._resting[partition] = target
        target.rests_on = partition
        partition.add_resting(self)

    def wake(self, partition: Partition) -> None:
        """The target that rests on a partition is active again."""
        assert self._active is not None  # a target rests
        target = self._resting.pop(partition)
        target.rests_on = None
        partition.remove_resting(self)
        self._active[target.key] = target
        for request in self.waiting:
            request.woken(partition, target)

    def _let_go(self) -> None:
        """Let former requests that wait do so by themselves, for the targets that they have."""
        self.wake_all()
        self.waiting.clear()

    def wake_all(self) -> None:
        """No target rests."""
        if self._active is not None:
            for partition in list(self._resting):
                self.wake(partition)
            self._active = None

    def close(self) -> None:
        """End the session: its targets never rest again."""
        self._closed = True
        self.wake_all()


class FetchContext:
    """The targets of one request; with a `session` it is incremental.

    `error` is a top-level error code; then there are no targets. A full request that
    `opens_session` gets its session with the response.
    """

    __slots__ = ("by_id", "error", "opens_session", "session", "targets")

    def __init__(
        self,
        targets: Targets,
        *,
        by_id: bool = False,
        error: int = 0,
        session: FetchSession | None = None,
        opens_session: bool = False,
    ) -> None:
        self.targets = targets
        self.by_id = by_id
        self.error = error
        self.session = session
        self.opens_session = opens_session


def next_epoch(epoch: int) -> int:
    """The session epoch after `epoch`; 1 follows 2147483647, because 0 is a full request."""
    return 1 if epoch >= EPOCH_MAX else epoch + 1


class FetchSessionCache:
    """The sessions of one broker: at most `slots_max`, whose partitions have `room`.

    A client whose session there is no room for goes on without one. A session that outgrows the
    room is closed: its client sends a full request.
    """

    __slots__ = ("_ids", "_room", "_sessions", "slots_max")

    def __init__(self, slots_max: int, ids: IdSource, room: SessionRoom | None = None) -> None:
        self.slots_max = slots_max
        self._room = room or SessionRoom()
        self._ids = ids
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # the least recent first

    def __len__(self) -> int:
        return len(self._sessions)

    def open_context(self, request: FetchRequest, *, by_id: bool, now_ms: int) -> FetchContext:
        """The context of a request; its changes are applied to its session."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._drop(request.session_id)
            targets: Targets = {}
            _add(targets, request, by_id=by_id)
            opens = request.session_epoch == INITIAL_EPOCH
            return FetchContext(targets, by_id=by_id, opens_session=opens)
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchContext({}, error=_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return FetchContext({}, error=_INVALID_EPOCH)
        if session.by_id != by_id:
            return FetchContext({}, error=_TOPIC_ID_ERROR)
        before = len(session.targets)
        session.change(request)
        if not self._room.resize(before, len(session.targets)):
            self._drop(session.session_id, before)
            return FetchContext({}, error=_NOT_FOUND)
        if not session.targets:
            self._drop(session.session_id)
            return FetchContext({}, by_id=by_id)
        session.epoch = next_epoch(session.epoch)
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        return FetchContext(session.targets, by_id=by_id, session=session)

    def close(self) -> None:
        """Close all sessions."""
        for session_id in list(self._sessions):
            self._drop(session_id)

    def wake_all(self) -> None:
        """Look at all targets of all sessions anew."""
        for session in self._sessions.values():
            session.wake_all()

    def keys_of(self, session_id: int) -> list[TargetKey]:
        """The keys of a session's targets; empty if the session does not exist."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.targets)

    def create(self, targets: Targets, *, by_id: bool, privileged: bool, now_ms: int) -> int:
        """Create a session for a full request; returns its id, or 0 if the cache is full."""
        if len(self._sessions) >= self.slots_max and not self._evict(
            (privileged, len(targets), 0), now_ms
        ):
            return NO_SESSION
        if not self._room.resize(0, len(targets)):
            return NO_SESSION
        session_id = self._ids.session_id()
        while session_id in self._sessions:
            session_id = self._ids.session_id()
        self._sessions[session_id] = FetchSession(
            session_id, targets, by_id=by_id, privileged=privileged, now_ms=now_ms
        )
        return session_id

    def _evict(self, new_rank: tuple[bool, int, int], now_ms: int) -> bool:
        """Evict a session that was not used for two minutes, or has a lower rank than the new one.

        A consumer evicts only sessions older than two minutes, a follower any consumer's session.
        """
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            self._drop(oldest.session_id)
            return True
        privileged = new_rank[0]
        evicted = min(self._evictable(now_ms, privileged), key=_rank, default=None)
        if evicted is None or new_rank < evicted.rank:
            return False
        self._drop(evicted.session_id)
        return True

    def _drop(self, session_id: int, size: int | None = None) -> None:
        """Close a session that has room for `size` partitions, by default for those it has."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._room.resize(len(session.targets) if size is None else size, 0)
            session.close()

    def _evictable(self, now_ms: int, privileged: bool) -> Iterable[FetchSession]:
        return (
            session
            for session in self._sessions.values()
            if now_ms - session.created_ms > EVICTION_MS or (privileged and not session.privileged)
        )


def _rank(session: FetchSession) -> tuple[bool, int, int]:
    return session.rank


def _add(targets: Targets, request: FetchRequest, *, by_id: bool) -> None:
    """Add or update targets; an existing target keeps its position and its last offsets."""
    for topic in request.topics:
        name = None if by_id else topic.topic
        topic_key: str | bytes = topic.topic_id if by_id else topic.topic
        for partition in topic.partitions:
            key = (topic_key, partition.partition)
            known = targets.get(key)
            if known is None:
                targets[key] = FetchTarget(key, name, topic.topic_id, partition)
            else:
                known.request = partition
