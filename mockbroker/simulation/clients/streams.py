"""Members of streams groups (KIP-1071): the threads of an application with two subtopologies.

The first one reads the topics and writes to a repartition topic; the second one reads that, and has
a changelog topic.

Source: StreamsGroupHeartbeatRequestManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mockbroker.core.ids import uuid_text
from mockbroker.simulation.clients.base import GROUP, CallSequence, SimulatedClient
from mockbroker.simulation.script import Script
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.streams_group_heartbeat import (
    ResponseTaskIds as TaskIds,
)
from mockbroker_protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)

_JOIN_EPOCH, _LEAVE_EPOCH = 0, -1
_HABIT_SHARE = 0.1
_LATE_SHARE = 0.3  # of the heartbeats after a change: the thread still closes tasks
_FENCED = frozenset((int(ErrorCode.FENCED_MEMBER_EPOCH), int(ErrorCode.UNKNOWN_MEMBER_ID)))

Task = tuple[bytes, int]  # subtopology id and partition


def tasks_of(rows: Iterable[TaskIds]) -> frozenset[Task]:
    """The tasks of an answer."""
    return frozenset(
        (row.subtopology_id.encode(), index) for row in rows for index in row.partitions
    )


def _rows(tasks: Iterable[Task]) -> list[TaskIds]:
    by_id: dict[str, list[int]] = {}
    for subtopology, index in sorted(tasks):
        by_id.setdefault(subtopology.decode(), []).append(index)
    return [TaskIds(*row) for row in by_id.items()]


class StreamsMember(SimulatedClient):
    """One member."""

    def live(self) -> Script:
        settings = self.settings
        if self.versions.of(ApiKey.STREAMS_GROUP_HEARTBEAT) < 0:
            return
        self._begin_anew()
        self._beat_ms = self._interval_ms = 0
        yield from self.refresh()
        for _ in range(settings.operations):
            yield self.pause()
            if self.epoch > 0 and self._falls_into("returns"):
                self._begin_anew()
            now_ms = self.history.now_ms()
            if self._changed or now_ms - self._beat_ms >= self._interval_ms:
                yield from self._beat()
        if self.rng.random() < 0.7 and self.epoch > 0:
            yield from self._heartbeat("leave", _LEAVE_EPOCH)

    def _falls_into(self, habit: str) -> bool:
        return habit in self.settings.habits and self.rng.random() < _HABIT_SHARE

    def _begin_anew(self) -> None:
        self.member_id = uuid_text(self.rng.randbytes(16))
        self._rejoin()

    def _rejoin(self) -> None:
        self.epoch = _JOIN_EPOCH
        self._tasks: tuple[frozenset[Task], ...] = (frozenset(),) * 3
        self._changed = True

    def _topology(self) -> Topology:
        group = self.settings.group
        repartition, changelog = f"{group}-totals-repartition", f"{group}-totals-changelog"
        return Topology(
            0,
            [
                Subtopology(
                    "0",
                    source_topics=list(self.settings.topics),
                    repartition_sink_topics=[repartition],
                ),
                Subtopology(
                    "1",
                    state_changelog_topics=[TopicInfo(changelog)],
                    repartition_source_topics=[TopicInfo(repartition)],
                ),
            ],
        )

    def _beat(self) -> CallSequence:
        joins = self.epoch == _JOIN_EPOCH
        closes = self._changed and not joins and self.rng.random() < _LATE_SHARE
        response = yield from self._heartbeat(
            "join" if joins else "heartbeat",
            self.epoch,
            reports=joins or (self._changed and not closes),
        )
        self._beat_ms = self.history.now_ms()
        if response.error_code:
            if response.error_code in _FENCED or joins:
                self._rejoin()
            yield self.backoff(2)
            return
        self.epoch = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms
        self._changed = closes
        if response.active_tasks is not None:
            self.history.counts["tasks assigned"] += 1
            tasks = tuple(
                tasks_of(rows or ())
                for rows in (response.active_tasks, response.standby_tasks, response.warmup_tasks)
            )
            self._changed |= tasks != self._tasks
            self._tasks = tasks

    def _heartbeat(self, what: str, epoch: int, *, reports: bool = False) -> CallSequence:
        settings = self.settings
        joins = what == "join"
        request = StreamsGroupHeartbeatRequest(
            group_id=settings.group,
            member_id=self.member_id,
            member_epoch=epoch,
        )
        if joins:
            request.topology = self._topology()
            request.rebalance_timeout_ms = settings.rebalance_timeout_ms
            request.process_id = uuid_text(self.name.encode().ljust(16)[:16])
            request.client_tags = []
        if reports:
            request.active_tasks = _rows(self._tasks[0])
            request.standby_tasks = _rows(self._tasks[1])
            request.warmup_tasks = _rows(self._tasks[2])
        note = self.history.group_call(
            what, "streams", settings.group, self.name, self.member_id, None, epoch
        )
        note.owned = self._tasks[0] if reports else None
        response: Any = yield from self.ask_coordinator(
            GROUP,
            settings.group,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            request,
            attempts=5 if what == "leave" else 40,
            note=note,
        )
        note.answered_generation = response.member_epoch
        if response.active_tasks is not None:
            note.assigned = tasks_of(response.active_tasks)
        return response
