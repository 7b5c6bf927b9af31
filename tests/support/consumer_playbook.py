"""A playbook for consumer groups: `play >> event << answer << answer`, on a manual clock.

Slots are names; members are called by their callback. What a play does not ask for must not happen:
answers left over when the next event comes, or at the end, fail the test. What the group wants
stored is stored at once (`storing`), and kept in `stored`; regexes it asks about are looked up at
once. The assignment interval is 0 unless a test says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from mockbroker.core.groups.consumer.events import (
    ConsumerHeartbeat,
    ConsumerLeave,
    Downgrade,
    Effect,
    RegexesResolved,
    ResolveRegexes,
)
from mockbroker.core.groups.consumer.group import ConsumerGroup, ConsumerSettings
from mockbroker.core.groups.consumer.machine import handle
from mockbroker.core.groups.consumer.states import ConsumerGroupState
from mockbroker.core.groups.events import ConsumerResult, Reply, Tick
from mockbroker.core.groups.modern.events import Store, Stored, StoredChange
from mockbroker.core.groups.modern.topics import TopicInfo
from mockbroker.core.patterns import compile_pattern
from mockbroker_protocol import ErrorCode

NONE = ErrorCode.NONE
START_MS = 1_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000

Owned = Mapping[str, Iterable[int]]


def topic_id(name: str) -> bytes:
    """The id of a topic in these tests."""
    return name.encode().ljust(16, b"\0")


class Topics:
    """Topics by name and how many partitions each has, as a group sees them."""

    def __init__(self, **partitions: int) -> None:
        self.version = 1
        self.created_version = 1
        self._infos: dict[str, TopicInfo] = {}
        for name, count in partitions.items():
            self.put(name, count)

    def put(self, name: str, partitions: int, *, again: int = 0) -> None:
        """Create or grow a topic; `again` tells a recreated one from its predecessor."""
        self.version += 1
        if name not in self._infos:
            self.created_version = self.version
        identity = topic_id(name)[:-1] + bytes([again])
        digest = blake2b(f"{identity!r}{partitions}".encode(), digest_size=8).digest()
        self._infos[name] = TopicInfo(identity, name, partitions, digest)

    def drop(self, name: str) -> None:
        self.version += 1
        del self._infos[name]

    def by_name(self, name: str) -> TopicInfo | None:
        return self._infos.get(name)

    def has(self, topic_id: bytes) -> bool:
        return self.by_id(topic_id) is not None

    def by_id(self, identity: bytes) -> TopicInfo | None:
        return next((i for i in self._infos.values() if i.topic_id == identity), None)

    def names(self) -> Iterable[str]:
        return self._infos


def by_id(owned: Owned) -> dict[bytes, tuple[int, ...]]:
    return {topic_id(name): tuple(partitions) for name, partitions in owned.items()}


def join(callback: str, *topics: str, **fields: Any) -> ConsumerHeartbeat:
    """A member joins, or joins again."""
    values: dict[str, Any] = {
        "member_id": callback,
        "rebalance_timeout_ms": REBALANCE_MS,
        "topic_names": frozenset(topics),
        "reported": {},
        "client_id": "client",
        "client_host": "/127.0.0.1",
    }
    return ConsumerHeartbeat(callback=callback, epoch=0, **(values | fields))


def beat(callback: str, epoch: int, owned: Owned | None = None, **fields: Any) -> ConsumerHeartbeat:
    """A member beats, and says what it owns or does not."""
    values: dict[str, Any] = {
        "member_id": callback,
        "reported": None if owned is None else by_id(owned),
        "client_id": "client",
        "client_host": "/127.0.0.1",
    }
    return ConsumerHeartbeat(callback=callback, epoch=epoch, **(values | fields))


def leave(callback: str, epoch: int = -1, **fields: Any) -> ConsumerLeave:
    return ConsumerLeave(callback=callback, epoch=epoch, **({"member_id": callback} | fields))


class Told:
    """An expected answer: its callback and whatever the test names of the result."""

    def __init__(self, callback: str, kind: type, fields: Mapping[str, Any]) -> None:
        self.callback = callback
        self.kind = kind
        self.fields = fields

    def matches(self, answer: Reply) -> bool:
        return (
            answer.callback == self.callback
            and isinstance(answer.result, self.kind)
            and all(getattr(answer.result, name) == value for name, value in self.fields.items())
        )

    def __repr__(self) -> str:
        return f"{self.kind.__name__}({self.callback!r}, {self.fields})"


def told(callback: str, epoch: int, owned: Owned | None = None, **fields: Any) -> Told:
    """A success: the member's epoch, and the assignment or that there is none in the answer."""
    assignment = None if owned is None else by_id(owned)
    values = {"error": NONE, "epoch": epoch, "assignment": assignment}
    return Told(callback, ConsumerResult, values | fields)


def refused(callback: str, error: ErrorCode) -> Told:
    return Told(callback, ConsumerResult, {"error": error, "assignment": None, "member_id": None})


class Playbook:
    def __init__(self, topics: Topics | None = None, **settings: Any) -> None:
        self.now_ms = START_MS
        self.topics = topics or Topics(t=4)
        defaults = {"session_timeout_ms": SESSION_MS, "assignment_interval_ms": 0}
        self.group = ConsumerGroup("g", ConsumerSettings(**(defaults | settings)), self.topics)
        self.storing: ErrorCode = NONE
        self.stored: list[StoredChange] = []
        self.looked_up: list[ResolveRegexes] = []
        self.downgrades: list[Downgrade] = []
        self.answers: list[Reply] = []

    def __rshift__(self, event: object) -> Playbook:
        self.done()
        self._perform(handle(self.group, event, self.now_ms))
        return self

    def __lshift__(self, expected: Told) -> Playbook:
        assert self.answers, f"nothing came, expected {expected}"
        answer = self.answers.pop(0)
        assert expected.matches(answer), f"{answer}\nis not\n{expected}"
        return self

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                self.answers.append(effect)
            elif isinstance(effect, Store):
                if self.storing is NONE:
                    self.stored += effect.changes
                self._perform(handle(self.group, Stored(effect, self.storing), self.now_ms))
            elif isinstance(effect, ResolveRegexes):
                self.looked_up.append(effect)
                found = {
                    regex: frozenset(
                        name
                        for name in self.topics.names()
                        if compile_pattern(regex).fullmatch(name)
                    )
                    for regex in effect.regexes
                }
                resolved = RegexesResolved(found, self.topics.version, self.now_ms)
                self._perform(handle(self.group, resolved, self.now_ms))
            else:
                self.downgrades.append(effect)

    def done(self) -> None:
        """Everybody who was answered was expected to be."""
        assert not self.answers, f"unexpected: {self.answers}"

    def after(self, delay_ms: int) -> Playbook:
        """Let time pass, from deadline to deadline, as the timer actor does."""
        self.done()
        end_ms = self.now_ms + delay_ms
        while (due_ms := self.group.deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self._perform(handle(self.group, Tick(), self.now_ms))
        self.now_ms = end_ms
        return self

    # ------------------------------------------------------------------------ common situations

    @property
    def state(self) -> ConsumerGroupState:
        return self.group.state

    def take(self) -> Any:
        """The result of the only answer so far, which thereby counts as expected."""
        (answer,) = self.answers
        self.answers.clear()
        return answer.result

    def owned(self, member: str) -> dict[str, list[int]]:
        """What a member owns, by topic name."""
        return {
            identity.rstrip(b"\0").decode(): sorted(partitions)
            for identity, partitions in self.group.members[member].assigned.items()
        }

    def epoch(self, member: str) -> int:
        return self.group.members[member].epoch

    def settle(self, *members: str) -> Playbook:
        """Every member beats, and owns what it is told to, until nothing changes any more."""
        for _ in range(2 * len(members) + 2):
            for member in members:
                present = self.group.members[member]
                owned = {topic: tuple(ps) for topic, ps in present.assigned.items()}
                self >> beat(member, present.epoch, reported=owned)
                self.take()
        assert self.state is ConsumerGroupState.STABLE, self.state
        return self

    def stable(self, *members: str, topics: Iterable[str] = ("t",), **fields: Any) -> Playbook:
        """Members join one after the other; each settles before the next comes."""
        for number, member in enumerate(members, start=1):
            self >> join(member, *topics, **fields)
            self.take()
            self.settle(*members[:number])
        return self
