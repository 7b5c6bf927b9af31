"""A streams group on a manual clock: members that heartbeat, and a store that always succeeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockbroker.core.groups.events import Reply, Tick
from mockbroker.core.groups.modern.events import Store, Stored, StoredChange
from mockbroker.core.groups.streams.events import SentTopology, StreamsHeartbeat, StreamsLeave
from mockbroker.core.groups.streams.group import StreamsGroup, StreamsSettings
from mockbroker.core.groups.streams.machine import handle
from mockbroker.core.groups.streams.results import StreamsResult
from mockbroker.core.groups.streams.topology import InternalTopic, Subtopology
from mockbroker_protocol import ErrorCode
from tests.support.consumer_playbook import Topics

START_MS = 1_000_000
REBALANCE_MS = 60_000
SETTINGS = StreamsSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=0)

Lists = Mapping[str, list[int]]


def reading(*topics: str, epoch: int = 0, changelog: str | None = None) -> SentTopology:
    """A topology of one subtopology, with a state store if it has a changelog."""
    changelogs = () if changelog is None else (InternalTopic(changelog),)
    return SentTopology(epoch, (Subtopology("0", topics, changelogs=changelogs),))


class StreamsPlay:
    """One group and the topics of its cluster; each method returns the answer of one heartbeat."""

    def __init__(self, settings: StreamsSettings = SETTINGS, **partitions: int) -> None:
        self.topics = Topics(**partitions)
        self.group = StreamsGroup("g", settings, self.topics)
        self.now_ms = START_MS
        self.stored: list[StoredChange] = []
        self.error = ErrorCode.NONE  # of the next writes
        self._exists = False

    def join(self, member: str, topology: SentTopology | None, **fields: Any) -> StreamsResult:
        told: dict[str, Any] = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "process_id": f"p-{member}",
            "topology": topology,
        }
        return self.beat(member, 0, {}, **(told | fields))

    def beat(
        self,
        member: str,
        epoch: int | None = None,
        active: Lists | None = None,
        standby: Lists | None = None,
        **fields: Any,
    ) -> StreamsResult:
        """A heartbeat at the member's epoch; with `active` it says what the member owns."""
        told = active is not None
        event = StreamsHeartbeat(
            callback=member,
            member_id=member,
            epoch=self.group.members[member].epoch if epoch is None else epoch,
            active=_lines(active or {}) if told else None,
            standby=_lines(standby or {}) if told else None,
            warmup=() if told else None,
            **fields,
        )
        [answer] = self.play(event)
        return answer

    def own_all(self, member: str) -> StreamsResult:
        """A heartbeat of a member that owns what it was told to."""
        assigned = self.group.members[member].assigned
        active = {each: list(epochs) for each, epochs in assigned.active.items()}
        standby = {each: list(ps) for each, ps in assigned.standby.items()}
        return self.beat(member, None, active, standby)

    def settle(self, *members: str) -> None:
        for _ in range(4):
            for member in members:
                self.own_all(member)

    def leave(self, member: str, **fields: Any) -> StreamsResult:
        [answer] = self.play(StreamsLeave(callback=member, member_id=member, epoch=-1, **fields))
        return answer

    def advance(self, by_ms: int) -> None:
        self.now_ms += by_ms
        self.play(Tick())

    def play(self, event: object) -> list[StreamsResult]:
        answers: list[StreamsResult] = []
        effects = handle(self.group, event, self.now_ms)
        while effects:
            effect = effects.pop(0)
            if isinstance(effect, Reply):
                assert isinstance(effect.result, StreamsResult)
                answers.append(effect.result)
                continue
            assert isinstance(effect, Store)
            created = self.error is ErrorCode.NONE and not self._exists
            if self.error is ErrorCode.NONE:
                self.stored += effect.changes
                self._exists = True
            effects += handle(self.group, Stored(effect, self.error, created), self.now_ms)
        return answers

    def active(self, member: str) -> dict[str, list[int]]:
        assigned = self.group.members[member].assigned
        return {each: sorted(epochs) for each, epochs in assigned.active.items()}

    def standby(self, member: str) -> dict[str, list[int]]:
        assigned = self.group.members[member].assigned
        return {each: sorted(ps) for each, ps in assigned.standby.items()}


def _lines(tasks: Lists) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((each, tuple(partitions)) for each, partitions in tasks.items())


def codes(answer: StreamsResult) -> list[str]:
    """The names of an answer's statuses."""
    return [status.code.name for status in answer.statuses]
