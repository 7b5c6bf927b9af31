"""Share groups and streams groups: their events as rows.

The converter numbers the states and the lives of share partitions, so that the audit's rules need
no other table to find the events that belong together.
"""

from __future__ import annotations

from mockbroker.core.events import (
    ShareRecordsMoved,
    ShareSessionChanged,
    ShareStartMoved,
    StreamsStatusSent,
    StreamsTasksMoved,
)
from mockbroker.core.journal.entries import EventEntry
from mockbroker.pipeline.convert.cluster_state import RunState, times
from mockbroker.pipeline.convert.rows import Rows

# The changes of a start offset that the share coordinator makes, and those that begin a life.
_AT_COORDINATOR = ("initialized", "deleted")
_BEGINNING = ("loaded", "reset")

_ShareKey = tuple[str, str, int]  # group, topic id, partition
_Moved = ShareRecordsMoved | ShareStartMoved


class ShareTables:
    """Makes `share_records`, `share_starts` and `share_sessions`."""

    def __init__(self, rows: Rows, cluster: RunState) -> None:
        self._rows = rows
        self._cluster = cluster
        self._states = 0
        self._lives = 0
        # Share partition -> state epoch -> number.
        self._state: dict[_ShareKey, dict[int, int]] = {}
        # Share partition and broker -> number.
        self._life: dict[tuple[_ShareKey, int], int] = {}

    def records(self, entry: EventEntry, event: ShareRecordsMoved) -> None:
        """Records had an event."""
        self._rows.add(
            "share_records",
            {
                **self._line(entry, event),
                "life": self._life.get((_key(event), event.node_id)),
                "member": event.member or None,
                "first_offset": event.first_offset,
                "last_offset": event.last_offset,
                "state": event.state,
                "delivery_count": event.delivery_count,
                "delivery_limit": event.delivery_limit,
            },
        )

    def start(self, entry: EventEntry, event: ShareStartMoved) -> None:
        """A start offset was set or moved."""
        key = _key(event)
        if event.change in _AT_COORDINATOR:
            self._state[key] = {}
            life = None
        else:
            if event.change in _BEGINNING:
                self._lives += 1
                self._life[key, event.node_id] = self._lives
            life = self._life.get((key, event.node_id))
        self._rows.add(
            "share_starts",
            {
                **self._line(entry, event),
                "life": life,
                "former_offset": _known(event.former_offset),
                "offset": _known(event.offset),
            },
        )

    def session(self, entry: EventEntry, event: ShareSessionChanged) -> None:
        """A session was opened or closed."""
        self._rows.add(
            "share_sessions",
            {
                **times(entry),
                "broker": event.node_id,
                "group": event.group,
                "member": event.member,
                "change": event.change,
                "reason": event.reason or None,
            },
        )

    def _line(self, entry: EventEntry, event: _Moved) -> dict[str, object]:
        return {
            **times(entry),
            "broker": event.node_id,
            "group": event.group,
            "topic": event.topic or self._cluster.name_of(event.topic_id),
            "topic_id": event.topic_id,
            "partition": event.partition,
            "state_epoch": _known(event.state_epoch),
            "share_state": self._state_number(event),
            "change": event.change,
            "reason": event.reason or None,
            "cause": event.cause or None,
        }

    def _state_number(self, event: _Moved) -> int:
        numbers = self._state.setdefault(_key(event), {})
        if event.state_epoch not in numbers:
            self._states += 1
            numbers[event.state_epoch] = self._states
        return numbers[event.state_epoch]


class StreamsTables:
    """Makes `tasks` and `statuses`."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def tasks(self, entry: EventEntry, event: StreamsTasksMoved) -> None:
        """Tasks moved."""
        for partition in event.tasks:
            self._rows.add(
                "tasks",
                {
                    **times(entry),
                    "broker": event.node_id,
                    "group": event.group,
                    "member": event.member,
                    "generation": event.member_epoch,
                    "change": event.change,
                    "role": event.role,
                    "subtopology": event.subtopology,
                    "partition": partition,
                },
            )

    def status(self, entry: EventEntry, event: StreamsStatusSent) -> None:
        """A member was sent a status."""
        self._rows.add(
            "statuses",
            {
                **times(entry),
                "broker": event.node_id,
                "group": event.group,
                "member": event.member,
                "status": event.status,
                "details": event.detail,
            },
        )


def _key(event: _Moved) -> _ShareKey:
    return event.group, event.topic_id, event.partition


def _known(number: int) -> int | None:
    return None if number < 0 else number
