"""Incremental fetch sessions: what a client fetches, remembered between its requests (KIP-227).

A *session* holds *targets*, the partitions of one fetcher with the parameters of its last request
and the offsets of its last response. A *full* request (session epoch 0) lists every partition and
may open a session; an *incremental* one (epoch n > 0) lists changes only; epoch -1 ends a session.
What a request stands for is its *context*:

    session id, epoch          context        the response
    0 or x, -1                 sessionless    all targets, session id 0; x is closed
    0 or x, 0                  full           all targets, the id of a new session if there is room
    x, n as expected           incremental    the targets that have news, id x
    x, n as expected, empty    sessionless    x is closed, as nothing is left in it
    x unknown or n wrong       error 70, 71   nothing; 106 when ids and names of topics are mixed

The counterpart of Kafka's FetchSession.scala, with one shard.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest

if TYPE_CHECKING:
    from mockbroker.core.ids import IdSource

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 0x7FFFFFFF
EVICTION_MS = 120_000  # KafkaBroker.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS

_NOT_FOUND = int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
_INVALID_EPOCH = int(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
_TOPIC_ID_ERROR = int(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)

TargetKey = tuple[str | bytes, int]


class FetchTarget:
    """One partition that a fetcher asks for.

    `topic` is None as long as the id has not been resolved to a name. `high_watermark` and
    `log_start_offset` are those of its last response, -1 without one or after an error.
    """

    __slots__ = ("high_watermark", "key", "log_start_offset", "request", "topic", "topic_id")

    def __init__(
        self, key: TargetKey, topic: str | None, topic_id: bytes, request: FetchPartition
    ) -> None:
        self.key = key
        self.topic = topic
        self.topic_id = topic_id
        self.request = request
        self.high_watermark = -1
        self.log_start_offset = -1


Targets = dict[TargetKey, FetchTarget]


class FetchSession:
    """One fetcher's session. `epoch` is the one its next request must carry."""

    __slots__ = (
        "by_id",
        "created_ms",
        "epoch",
        "last_used_ms",
        "privileged",
        "session_id",
        "targets",
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

    @property
    def rank(self) -> tuple[bool, int, int]:
        """What is evicted first has the lowest rank: consumers before followers, small before
        large.
        """
        return self.privileged, len(self.targets), self.session_id


class FetchContext:
    """What one request stands for: its targets, and whether all or only news are answered.

    `error` is a top-level error code; then there are no targets. A `session` without `incremental`
    does not occur: a full request gets its session when its response is made.
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
    """The session epoch after `epoch`; 2147483647 is followed by 1, as 0 means a full request."""
    return 1 if epoch >= EPOCH_MAX else epoch + 1


class FetchSessionCache:
    """The sessions of one broker, at most `slots_max` of them."""

    __slots__ = ("_ids", "_sessions", "slots_max")

    def __init__(self, slots_max: int, ids: IdSource) -> None:
        self.slots_max = slots_max
        self._ids = ids
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # the least recent first

    def __len__(self) -> int:
        return len(self._sessions)

    def open_context(self, request: FetchRequest, *, by_id: bool, now_ms: int) -> FetchContext:
        """Find out what a request stands for, and apply its changes to the session it names."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._sessions.pop(request.session_id, None)
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
        if request.topics:
            _add(session.targets, request, by_id=by_id)
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if by_id else forgotten.topic
            for partition in forgotten.partitions:
                session.targets.pop((topic, partition), None)
        if not session.targets:
            del self._sessions[session.session_id]
            return FetchContext({}, by_id=by_id)
        session.epoch = next_epoch(session.epoch)
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        return FetchContext(session.targets, by_id=by_id, session=session)

    def keys_of(self, session_id: int) -> list[TargetKey]:
        """What a session fetches; nothing where there is none."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.targets)

    def create(self, targets: Targets, *, by_id: bool, privileged: bool, now_ms: int) -> int:
        """Keep the targets of a full request in a session: its id, or 0 when there is no room."""
        if len(self._sessions) >= self.slots_max and not self._evict(
            (privileged, len(targets), 0), now_ms
        ):
            return NO_SESSION
        session_id = self._ids.session_id()
        while session_id in self._sessions:
            session_id = self._ids.session_id()
        self._sessions[session_id] = FetchSession(
            session_id, targets, by_id=by_id, privileged=privileged, now_ms=now_ms
        )
        return session_id

    def _evict(self, newcomer: tuple[bool, int, int], now_ms: int) -> bool:
        """Make room if some session has not been used for long, or ranks below the newcomer.

        A consumer may only push out sessions of some age; a follower any consumer's.
        """
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            del self._sessions[oldest.session_id]
            return True
        privileged = newcomer[0]
        victim = min(self._evictable(now_ms, privileged), key=_rank, default=None)
        if victim is None or newcomer < victim.rank:
            return False
        del self._sessions[victim.session_id]
        return True

    def _evictable(self, now_ms: int, privileged: bool) -> Iterable[FetchSession]:
        return (
            session
            for session in self._sessions.values()
            if now_ms - session.created_ms > EVICTION_MS or (privileged and not session.privileged)
        )


def _rank(session: FetchSession) -> tuple[bool, int, int]:
    return session.rank


def _add(targets: Targets, request: FetchRequest, *, by_id: bool) -> None:
    """Add or update targets; a known one keeps its place and its last offsets."""
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
