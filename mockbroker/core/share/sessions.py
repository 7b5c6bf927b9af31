"""Share sessions: the partitions that a member reads from one broker.

A *session* belongs to a member of a share group. A request with epoch 0 opens it, each further
request names its changes only, and epoch -1 closes it. The connection that opened a session closes
it too when it ends. The *context* of a ShareFetch is what its session makes of it.

A session keeps the names of its topics. A topic whose id was unknown stays unknown in the session,
and a deleted topic keeps its name.

Source: ShareSessionCache, ShareSession, ShareSessionContext, CachedSharePartition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from mockbroker.core.errors import ApiError
from mockbroker.core.limits import SessionRoom
from mockbroker.core.share.states import (
    ACKNOWLEDGE_SESSION_ANSWERS,
    FETCH_SESSION_ANSWERS,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionFacts,
    SessionRequest,
    SessionStep,
    next_epoch,
)
from mockbroker_protocol import ErrorCode

SessionKey: TypeAlias = tuple[str, str]  # group id, member id
TopicPartitionKey: TypeAlias = tuple[bytes, int]  # topic id, index


class ShareTarget(NamedTuple):
    """One partition of a request or a session; `topic` is None for an unknown topic id."""

    topic_id: bytes
    partition: int
    topic: str | None

    @property
    def key(self) -> TopicPartitionKey:
        return self.topic_id, self.partition


class CachedSharePartition:
    """A partition of a session. `must_respond` is whether the next answer has it in any case."""

    __slots__ = ("must_respond", "target")

    def __init__(self, target: ShareTarget, *, must_respond: bool) -> None:
        self.target = target
        self.must_respond = must_respond


class ShareSession:
    """A session. `epoch` is the expected epoch of its next request."""

    __slots__ = ("connection_id", "epoch", "partitions")

    def __init__(
        self, partitions: dict[TopicPartitionKey, CachedSharePartition], connection_id: int
    ) -> None:
        self.partitions = partitions
        self.connection_id = connection_id
        self.epoch = next_epoch(INITIAL_EPOCH)

    def update(self, targets: Iterable[ShareTarget], forgotten: Iterable[ShareTarget]) -> None:
        """Add the targets that are new, then remove the forgotten ones."""
        for target in targets:
            if target.key not in self.partitions:
                self.partitions[target.key] = CachedSharePartition(target, must_respond=True)
        for target in forgotten:
            self.partitions.pop(target.key, None)

    def must_send(self, key: TopicPartitionKey) -> bool:
        """Whether the next answer has a partition even without records or an error: it had an error
        the last time, or is new.
        """
        return self.partitions[key].must_respond

    def answered(self, key: TopicPartitionKey, *, has_records: bool, failed: bool) -> None:
        """An answer about a partition is sent. One with records moves to the end of the session."""
        cached = self.partitions[key]
        cached.must_respond = failed
        if has_records:
            del self.partitions[key]
            self.partitions[key] = cached


class ShareFetchContext(NamedTuple):
    """The partitions that a ShareFetch reads. `session` is None in the first and in the final
    request; `epoch` is the request's.
    """

    targets: tuple[ShareTarget, ...]
    epoch: int
    session: ShareSession | None

    @property
    def is_current(self) -> bool:
        """Whether no other request has used the session since."""
        return self.session is None or self.session.epoch == next_epoch(self.epoch)


# Why a session was closed.
FINAL = "final_epoch"
CONNECTION = "connection"
REPLACED = "replaced"
STOPPED = "broker_stopped"


class ShareSessionCache:
    """The sessions of one broker, at most `sessions_max`, whose partitions have `room`.

    `on_change` is called with a session's key, and why it was closed; "" if it was opened.
    """

    __slots__ = ("_by_connection", "_on_change", "_room", "_sessions", "sessions_max")

    def __init__(
        self,
        sessions_max: int,
        on_change: Callable[[SessionKey, str], None] | None = None,
        room: SessionRoom | None = None,
    ) -> None:
        self.sessions_max = sessions_max
        self._room = room or SessionRoom()
        self._on_change = on_change
        self._sessions: dict[SessionKey, ShareSession] = {}
        # The session that a connection opened last; None if it was dropped since.
        self._by_connection: dict[int, tuple[SessionKey, bool]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def has_members(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return any(group == group_id for group, _ in self._sessions)

    def open_context(
        self,
        key: SessionKey,
        epoch: int,
        targets: list[ShareTarget],
        forgotten: list[ShareTarget],
        *,
        acknowledges: bool,
        connection_id: int,
    ) -> ShareFetchContext:
        """The context of a ShareFetch; its changes are applied to its session. Raises ApiError."""
        match self._step(key, epoch, FETCH_SESSION_ANSWERS):
            case SessionStep.CLOSE:
                return ShareFetchContext((), epoch, None)
            case SessionStep.OPEN:
                if acknowledges:
                    raise ApiError(ErrorCode.INVALID_REQUEST)
                self._open(key, targets, connection_id)
                return ShareFetchContext(tuple(targets), epoch, None)
            case SessionStep.CONTINUE:
                session = self._sessions[key]
                self._update(session, targets, forgotten)
                session.epoch = next_epoch(session.epoch)
                cached = tuple(each.target for each in session.partitions.values())
                return ShareFetchContext(cached, epoch, session)

    def acknowledged(self, key: SessionKey, epoch: int) -> None:
        """A ShareAcknowledge uses the session. Raises ApiError."""
        if self._step(key, epoch, ACKNOWLEDGE_SESSION_ANSWERS) is SessionStep.CONTINUE:
            session = self._sessions[key]
            session.epoch = next_epoch(session.epoch)

    def _step(
        self, key: SessionKey, epoch: int, answers: Mapping[SessionFacts, SessionStep | ErrorCode]
    ) -> SessionStep:
        session = self._sessions.get(key)
        if epoch == INITIAL_EPOCH:
            request = SessionRequest.INITIAL
        elif epoch == FINAL_EPOCH:
            request = SessionRequest.FINAL
        elif session is not None and session.epoch == epoch:
            request = SessionRequest.EXPECTED
        else:
            request = SessionRequest.OTHER
        answer = answers[SessionFacts(request, session is not None)]
        if isinstance(answer, ErrorCode):
            raise ApiError(answer)
        return answer

    def _update(
        self, session: ShareSession, targets: list[ShareTarget], forgotten: list[ShareTarget]
    ) -> None:
        """Apply the changes of a request. Raises ApiError, and changes nothing, without room."""
        known = session.partitions.keys()
        added = {target.key for target in targets} - known
        gone = {key for key in (each.key for each in forgotten) if key in known or key in added}
        if not self._room.resize(len(known), len(known) + len(added) - len(gone)):
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session.update(targets, forgotten)

    def _open(self, key: SessionKey, targets: list[ShareTarget], connection_id: int) -> None:
        self.drop(key, REPLACED)
        partitions = {
            target.key: CachedSharePartition(target, must_respond=False) for target in targets
        }
        if len(partitions) < len(targets):
            # ImplicitLinkedHashCollection.mustAdd fails on a partition that is named twice.
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if len(self._sessions) >= self.sessions_max or not self._room.resize(0, len(partitions)):
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        self._sessions[key] = ShareSession(partitions, connection_id)
        self._by_connection[connection_id] = key, True
        if self._on_change is not None:
            self._on_change(key, "")

    def drop(self, key: SessionKey, reason: str = FINAL) -> ShareSession | None:
        """Remove a session, and return it; None if there is none."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._room.resize(len(session.partitions), 0)
        if session is not None and self._on_change is not None:
            self._on_change(key, reason)
        if session is not None and session.connection_id in self._by_connection:
            # The connection may open another one, and must not close the member's next session.
            opened, _ = self._by_connection[session.connection_id]
            self._by_connection[session.connection_id] = opened, False
        return session

    def connection_closed(self, connection_id: int) -> tuple[SessionKey, bool] | None:
        """The session that a closed connection opened last, and whether it still exists."""
        opened = self._by_connection.pop(connection_id, None)
        if opened is None:
            return None
        key, is_open = opened
        return key, is_open and key in self._sessions

    def clear(self) -> None:
        """Drop all sessions: the broker's process ends, or share groups were disabled."""
        for key in list(self._sessions):
            self.drop(key, STOPPED)
