"""A playbook for classic groups: `play >> event << effect << effect`, on a manual clock.

Slots are names. What a play does not ask for must not happen: effects left over when the next event
comes, or at the end, fail the test. `Moved` effects are kept aside in `moves`. What the group wants
stored is stored at once (`storing`), unless a test takes that over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockbroker.core.groups.classic import ClassicGroup, ClassicGroupSettings
from mockbroker.core.groups.events import (
    Effect,
    Event,
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    Leaver,
    LeaveResult,
    Moved,
    Persist,
    Persisted,
    Protocols,
    Reply,
    Sync,
    SyncResult,
    Tick,
)
from mockbroker.core.groups.machine import handle
from mockbroker.core.groups.states import ClassicGroupState
from mockbroker_protocol import ErrorCode

NONE = ErrorCode.NONE
START_MS = 1_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
RANGE: Protocols = (("range", b"topics"),)


class Answer:
    """An expected reply: its callback, kind, error, and whatever else the test names."""

    def __init__(
        self, kind: type, callback: str, error: ErrorCode, fields: Mapping[str, Any]
    ) -> None:
        self.kind = kind
        self.callback = callback
        self.fields = {"error": error, **fields}

    def matches(self, effect: Effect) -> bool:
        return (
            isinstance(effect, Reply)
            and effect.callback == self.callback
            and isinstance(effect.result, self.kind)
            and all(getattr(effect.result, name) == value for name, value in self.fields.items())
        )

    def __repr__(self) -> str:
        return f"{self.kind.__name__}({self.callback!r}, {self.fields})"


def joined(callback: str, error: ErrorCode = NONE, **fields: Any) -> Answer:
    return Answer(JoinResult, callback, error, fields)


def synced(callback: str, error: ErrorCode = NONE, **fields: Any) -> Answer:
    return Answer(SyncResult, callback, error, fields)


def beaten(callback: str, error: ErrorCode = NONE) -> Answer:
    return Answer(HeartbeatResult, callback, error, {})


def left(callback: str, error: ErrorCode = NONE, **fields: Any) -> Answer:
    return Answer(LeaveResult, callback, error, fields)


def join(callback: str, member_id: str = "", **fields: Any) -> Join:
    """A Join of a client that has, or is to be given, the member id `member_id` or that of its
    callback.
    """
    values: dict[str, Any] = {
        "new_member_id": callback,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        "protocols": RANGE,
    }
    return Join(callback=callback, member_id=member_id, **(values | fields))


def sync(callback: str, generation: int, **fields: Any) -> Sync:
    return Sync(
        **({"callback": callback, "member_id": callback, "generation": generation} | fields)
    )


def beat(callback: str, generation: int, **fields: Any) -> Heartbeat:
    return Heartbeat(
        **({"callback": callback, "member_id": callback, "generation": generation} | fields)
    )


def leave(callback: str, *members: str | Leaver) -> Leave:
    leavers = [Leaver(m) if isinstance(m, str) else m for m in members]
    return Leave(callback, tuple(leavers))


class Playbook:
    def __init__(self, group: ClassicGroup | None = None, **settings: Any) -> None:
        self.now_ms = START_MS
        self.group = group or ClassicGroup("g", ClassicGroupSettings(**settings), START_MS)
        self.storing = True
        self.moves: list[Moved] = []
        self.stored: list[Persist] = []
        self.effects: list[Effect] = []

    def __rshift__(self, event: Event) -> Playbook:
        self.done()
        for effect in handle(self.group, event, self.now_ms):
            self._take(effect)
        return self

    def __lshift__(self, expected: Answer) -> Playbook:
        assert self.effects, f"nothing came, expected {expected}"
        effect = self.effects.pop(0)
        assert expected.matches(effect), f"{effect}\nis not\n{expected}"
        return self

    def _take(self, effect: Effect) -> None:
        if isinstance(effect, Moved):
            self.moves.append(effect)
        elif isinstance(effect, Persist):
            self.stored.append(effect)
            if self.storing:
                for later in handle(self.group, Persisted(effect, NONE), self.now_ms):
                    self._take(later)
        else:
            self.effects.append(effect)

    def done(self) -> None:
        """Everything that happened was expected."""
        assert not self.effects, f"unexpected: {self.effects}"

    def after(self, delay_ms: int) -> Playbook:
        """Let time pass, from deadline to deadline, as the timer actor does."""
        self.done()
        end_ms = self.now_ms + delay_ms
        while (due_ms := self.group.deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            for effect in handle(self.group, Tick(), self.now_ms):
                self._take(effect)
        self.now_ms = end_ms
        return self

    @property
    def state(self) -> ClassicGroupState:
        return self.group.state

    # ------------------------------------------------------------------------ common situations

    def take_all(self) -> list[Effect]:
        """The effects so far, which thereby count as expected."""
        effects, self.effects = self.effects, []
        return effects

    def stable(self, *members: str, **fields: Any) -> Playbook:
        """Members join, the first leads, each is assigned its own name: a Stable group."""
        self.completing(*members, **fields)
        assignments = {member: member.encode() for member in members}
        generation = self.group.generation
        for member in members[1:]:
            self >> sync(member, generation)
        self >> sync(members[0], generation, assignments=assignments)
        self.take_all()
        assert self.state is ClassicGroupState.STABLE
        return self

    def completing(self, *members: str, **fields: Any) -> Playbook:
        """Members join and have been told the generation; nobody has sent SyncGroup."""
        for member in members:
            self >> join(member, member_id_required=False, **fields)
            self.take_all()
        if self.state is ClassicGroupState.PREPARING:
            for member in members:
                waiting = self.group.members[member].join_callback
                if waiting is None:
                    self >> join(member, member, **fields)
                    self.take_all()
        assert self.state is ClassicGroupState.COMPLETING, self.state
        return self

    def preparing(self, *members: str) -> Playbook:
        """A Stable group whose last member joins again with other metadata, and waits."""
        self.stable(*members)
        self >> join(f"{members[-1]}-again", members[-1], protocols=(("range", b"other"),))
        self.done()
        assert self.state is ClassicGroupState.PREPARING
        return self
