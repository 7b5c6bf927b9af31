"""The fetch sessions of one broker, with two clients, two partitions and few slots (KIP-227).

The cache is compared with a simple model of KIP-227: both must agree on each answer and on the
content of each session. Clients send full, incremental and final requests, with the expected epoch,
the one before or the one after. They add, change and forget partitions, and mix topic ids with
names. Answers are lost, and time passes until sessions may be evicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from mockbroker.core.fetching.fetch_session import (
    EPOCH_MAX,
    EVICTION_MS,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSessionCache,
)
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from tests.simulation.exhaustive.world import Event, ExploredWorld, must

UNIT_MS = EVICTION_MS // 2 + 1
# What an incremental request may list and forget: topics a and b have one partition each.
CHANGES = (("", ""), ("a", ""), ("b", ""), ("", "a"), ("", "b"), ("", "ab"), ("b", "a"), ("a", "a"))
OFFSETS = 2
TOLD = 7  # a high watermark


class Ids:
    """Session ids, one after the other."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0

    def session_id(self) -> int:
        self.last += 1
        return self.last


class Line(msgspec.Struct):
    """One partition of a session in the model."""

    topic: str
    offset: int
    returned: bool = False


class Session(msgspec.Struct):
    """A session of the model. `due` is the epoch of the next request."""

    lines: list[Line]
    follower: bool
    created_ms: int
    used_ms: int
    due: int = 1


class FetchClient:
    """One client: its session and the epoch of its next request."""

    __slots__ = ("due", "follower", "offset", "session_id")

    def __init__(self, *, follower: bool) -> None:
        self.follower = follower
        self.session_id = NO_SESSION
        self.due = INITIAL_EPOCH
        self.offset = 0

    def forget(self) -> None:
        self.session_id, self.due = NO_SESSION, INITIAL_EPOCH


class FetchSessionsWorld(ExploredWorld):
    """The cache, the model of it, and the clients."""

    name: ClassVar[str] = "fetch-sessions"
    beginnings: ClassVar[tuple[str, ...]] = (
        "two consumers and one slot",
        "a consumer, a follower and one slot",
        "two consumers and two slots",
        "a session whose epochs are used up",
    )

    def __init__(self, slots_max: int, *, follower: bool) -> None:
        self.now_ms = 0
        self.slots_max = slots_max
        self.cache = FetchSessionCache(slots_max, Ids())  # type: ignore[arg-type]
        self.model: dict[int, Session] = {}
        self.clients = (FetchClient(follower=False), FetchClient(follower=follower))

    @classmethod
    def begin(cls, beginning: str) -> FetchSessionsWorld:
        _, follower, two, used_up = cls.beginnings
        world = cls(2 if beginning in (two, used_up) else 1, follower=beginning == follower)
        if beginning == used_up:
            world.on_full(0, "ab")
            (session_id,) = world.model
            world.cache._sessions[session_id].epoch = EPOCH_MAX - 1
            world.model[session_id].due = world.clients[0].due = EPOCH_MAX - 1
        return world

    # -- events ------------------------------------------------------------------------------------

    def events(self) -> Sequence[Event]:
        found: list[Event] = [("time_passes",)]
        for index, client in enumerate(self.clients):
            found += [("full", index, "a"), ("full", index, "ab"), ("full", index, "ab", "lost")]
            found.append(("sessionless", index))
            if client.session_id != NO_SESSION:
                found += [("incremental", index, *change) for change in CHANGES]
                found += [("incremental", index, "", "", "lost"), ("by_id", index)]
                found += [("wrong_epoch", index, -1), ("wrong_epoch", index, 1)]
                found += [("forgotten_session", index), ("final", index)]
        return found

    def on_full(self, index: int, topics: str, lost: str = "") -> None:
        """A full request: it closes the client's session, and opens another if there is room."""
        client = self.clients[index]
        client.offset = (client.offset + 1) % OFFSETS
        request = _request(client, INITIAL_EPOCH, topics)
        self.model.pop(client.session_id, None)
        client.forget()
        context = self.cache.open_context(request, by_id=False, now_ms=self.now_ms)
        must(context.error == 0 and context.opens_session, "a full request opens a session")
        lines = [Line(topic, client.offset) for topic in topics]
        self._compare(context.targets, lines)
        may_stay = self._room_for(client, len(lines))
        session_id = self.cache.create(
            context.targets, by_id=False, privileged=client.follower, now_ms=self.now_ms
        )
        must((session_id != NO_SESSION) == may_stay, "a session is kept if there is room for it")
        must(session_id not in self.model, "a session has an id of its own")
        if session_id != NO_SESSION:
            session = Session(lines, client.follower, self.now_ms, self.now_ms)
            self.model[session_id] = session
            self._tell(session_id, session)
            if not lost:
                client.session_id, client.due = session_id, 1

    def on_sessionless(self, index: int) -> None:
        """A sessionless request, which does not change the client's session."""
        request = _request(self.clients[index], FINAL_EPOCH, "a")
        request.session_id = NO_SESSION
        context = self.cache.open_context(request, by_id=False, now_ms=self.now_ms)
        must(not context.opens_session and context.session is None, "no session is opened")
        self._compare(context.targets, [Line("a", self.clients[index].offset)])

    def on_final(self, index: int) -> None:
        client = self.clients[index]
        request = _request(client, FINAL_EPOCH, "")
        self.model.pop(client.session_id, None)
        client.forget()
        context = self.cache.open_context(request, by_id=False, now_ms=self.now_ms)
        must(not context.opens_session and not context.targets, "a session that ends has no more")

    def on_incremental(self, index: int, topics: str, forget: str, lost: str = "") -> None:
        client = self.clients[index]
        client.offset = (client.offset + 1) % OFFSETS
        request = _request(client, client.due, topics, forget)
        context = self.cache.open_context(request, by_id=False, now_ms=self.now_ms)
        session = self.model.get(client.session_id)
        if session is None or session.due != client.due:
            expected = (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND
                if session is None
                else ErrorCode.INVALID_FETCH_SESSION_EPOCH
            )
            must(context.error == expected, f"the answer is {expected.name}")
            client.forget()
            return
        must(context.error == 0, "the epoch that is due is no error")
        self._change(session, topics, forget, client.offset)
        if not session.lines:
            del self.model[client.session_id]
            must(context.session is None and not context.targets, "an empty session is closed")
            client.forget()
            return
        session.due = 1 if session.due == EPOCH_MAX else session.due + 1
        session.used_ms = self.now_ms
        self.model[client.session_id] = self.model.pop(client.session_id)  # the last one used
        self._compare(context.targets, session.lines)
        self._tell(client.session_id, session)
        if not lost:
            client.due = session.due

    def on_wrong_epoch(self, index: int, by: int) -> None:
        """A request with the epoch before or after the expected one: it changes nothing."""
        client = self.clients[index]
        session = self.model.get(client.session_id)
        epoch = client.due + by
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH) or (session and session.due == epoch):
            return
        request = _request(client, epoch, "a", "b")
        context = self.cache.open_context(request, by_id=False, now_ms=self.now_ms)
        expected = (
            ErrorCode.INVALID_FETCH_SESSION_EPOCH
            if session
            else ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        )
        must(context.error == expected, f"the answer is {expected.name}")

    def on_by_id(self, index: int) -> None:
        """A request with topic ids in a session with topic names."""
        client = self.clients[index]
        session = self.model.get(client.session_id)
        request = _request(client, client.due, "")
        context = self.cache.open_context(request, by_id=True, now_ms=self.now_ms)
        if session is None:
            must(context.error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "the session is not known")
        elif session.due != client.due:
            must(context.error == ErrorCode.INVALID_FETCH_SESSION_EPOCH, "the epoch is looked at")
        else:
            must(context.error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "names are not ids")

    def on_forgotten_session(self, index: int) -> None:
        """The client's process is new; its session remains in the cache."""
        self.clients[index].forget()

    def on_time_passes(self) -> None:
        self.now_ms += UNIT_MS

    # -- the model ---------------------------------------------------------------------------------

    @staticmethod
    def _change(session: Session, topics: str, forget: str, offset: int) -> None:
        """Apply additions and changes, then the forgotten partitions."""
        for topic in topics:
            known = [line for line in session.lines if line.topic == topic]
            if known:
                known[0].offset = offset
            else:
                session.lines.append(Line(topic, offset))
        session.lines = [line for line in session.lines if line.topic not in forget]

    def _room_for(self, client: FetchClient, size: int) -> bool:
        """Evict a session by the rules of KIP-227; returns whether there is room."""
        if len(self.model) < self.slots_max:
            return True
        idle = min(self.model, key=lambda each: self.model[each].used_ms)
        if self.now_ms - self.model[idle].used_ms > EVICTION_MS:
            del self.model[idle]
            return True
        ranks = {
            session_id: (session.follower, len(session.lines), session_id)
            for session_id, session in self.model.items()
            if self.now_ms - session.created_ms > EVICTION_MS
            or (client.follower and not session.follower)
        }
        if not ranks:
            return False
        least = min(ranks, key=ranks.__getitem__)
        if (client.follower, size, 0) < ranks[least]:
            return False
        del self.model[least]
        return True

    def _tell(self, session_id: int, session: Session) -> None:
        """The client gets the answer, with the high watermark of each partition."""
        for target in self.cache._sessions[session_id].targets.values():
            target.high_watermark = TOLD
        for line in session.lines:
            line.returned = True

    @staticmethod
    def _compare(targets: object, lines: Sequence[Line]) -> None:
        assert isinstance(targets, dict)
        found = [
            (t.key, t.topic, t.request.fetch_offset, t.high_watermark == TOLD)
            for t in targets.values()
        ]
        wanted = [((line.topic, 0), line.topic, line.offset, line.returned) for line in lines]
        must(found == wanted, f"what is fetched is {wanted}, not {found}")

    # -- invariants --------------------------------------------------------------------------------

    def check(self) -> None:
        sessions = self.cache._sessions
        must(len(sessions) <= self.slots_max, "there are no more sessions than slots")
        must(set(sessions) == set(self.model), "the sessions are those that KIP-227 keeps")
        for session_id, session in self.model.items():
            kept = sessions[session_id]
            self._compare(kept.targets, session.lines)
            must(kept.epoch == session.due, "the epoch that is due is that of KIP-227")
            must(kept.session_id == session_id, "a session has its id")
        used = [sessions[each].last_used_ms for each in sessions]
        must(used == sorted(used), "sessions are in the order in which they were used")

    def settle(self) -> None:
        """A client that sends a full request later gets a session, and continues in it."""
        for _ in range(2):
            self.on_time_passes()
        for index in range(len(self.clients)):
            for _ in range(2):
                self.on_time_passes()
            self.on_full(index, "ab")
            self.check()
            for change in (("", ""), ("", "a"), ("a", "")):
                self.on_incremental(index, *change)
                self.check()
            must(self.clients[index].session_id in self.model, "a client in peace has a session")

    # -- the key -----------------------------------------------------------------------------------

    def key(self) -> object:
        order = {session_id: rank for rank, session_id in enumerate(sorted(self.model))}
        return (
            self.slots_max,
            tuple(
                (
                    client.follower,
                    order.get(client.session_id, -1 if client.session_id else None),
                    client.offset,
                    self._ahead(client),
                )
                for client in self.clients
            ),
            tuple(
                (
                    order[session_id],
                    session.follower,
                    min(EPOCH_MAX - session.due, 3),
                    min(session.due, 3),
                    self._age(session.created_ms),
                    self._age(session.used_ms),
                    tuple((line.topic, line.offset, line.returned) for line in session.lines),
                )
                for session_id, session in self.model.items()
            ),
        )

    def _ahead(self, client: FetchClient) -> int | None:
        session = self.model.get(client.session_id)
        return None if session is None else max(min(client.due - session.due, 3), -3)

    def _age(self, since_ms: int) -> int:
        return min(self.now_ms - since_ms, EVICTION_MS + UNIT_MS)


def _request(client: FetchClient, epoch: int, topics: str, forget: str = "") -> FetchRequest:
    return FetchRequest(
        session_id=client.session_id,
        session_epoch=epoch,
        topics=[
            FetchTopic(topic, partitions=[FetchPartition(0, fetch_offset=client.offset)])
            for topic in topics
        ],
        forgotten_topics_data=[ForgottenTopic(topic, partitions=[0]) for topic in forget],
    )
