"""The history of one group: its states, the owners of its partitions, and its lag."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias, TypeVar

import msgspec

from mockbroker.core.events import GroupMoved, MarkerWritten, OffsetCommitted
from mockbroker.core.journal.entries import AppendEntry, Entry, EventEntry
from mockbroker.core.metadata.topic import INTERNAL_TOPICS
from mockbroker.pipeline.past.fold import Fold
from mockbroker.pipeline.past.image import PastCluster, PastGroup, TopicPartition
from mockbroker.pipeline.past.members import Members

T = TypeVar("T")

# The newest of each that are kept.
STATES_MAX = 1_000
ASSIGNMENTS_MAX = 5_000
COMMITS_MAX = 1_000
# Above this number of points of a partition, every second one is dropped.
POINTS_KEPT_MAX = 2_000

# The time in ms, the committed offset, the last stable offset and the high watermark.
LagPoint: TypeAlias = tuple[int, int | None, int | None, int | None]


class GroupStateView(msgspec.Struct, frozen=True):
    """A group went from the state `former` to `state`; `members` counts them."""

    seq: int
    at_ms: int
    former: str
    state: str
    generation: int
    members: int
    reason: str


class AssignmentView(msgspec.Struct, frozen=True):
    """A member had a partition; the end is null while it has it. Of a streams group, `topic` is the
    subtopology of a task.
    """

    member: str
    client_id: str | None
    topic: str
    partition: int
    from_seq: int
    from_ms: int
    to_seq: int | None
    to_ms: int | None


class LagHistoryView(msgspec.Struct, frozen=True):
    """The lag in one partition. A point has the time in ms, the committed offset, the last stable
    offset and the high watermark; null is unknown.

    `still_since_ms` is since when a member has the partition, records wait below the last stable
    offset, and the committed offset has not moved; null if one of the three does not hold.
    """

    topic: str
    partition: int
    points: list[LagPoint]
    still_since_ms: int | None


class CommitView(msgspec.Struct, frozen=True):
    """A committed offset that was written, perhaps in a transaction."""

    seq: int
    at_ms: int
    topic: str
    partition: int
    offset: int
    transactional: bool


class GroupHistoryView(msgspec.Struct, frozen=True):
    """The history of a group behind entry `from_seq`, oldest first; `left_out` counts older states,
    assignments and commits. `type` is null if no entry has it.
    """

    group: str
    type: str | None
    from_seq: int
    last_seq: int
    states: list[GroupStateView]
    assignments: list[AssignmentView]
    lag: list[LagHistoryView]
    commits: list[CommitView]
    left_out: int


class _Held(msgspec.Struct):
    """A partition that a member has."""

    member: str
    client_id: str | None
    from_seq: int
    from_ms: int


class _Waiting(msgspec.Struct, frozen=True):
    """Records wait behind a committed offset since a time; None if nothing is committed."""

    committed: int | None
    since_ms: int


class GroupHistory:
    """Collects the history of one group from the entries behind an image."""

    def __init__(self, group: str, image: PastCluster, after: int) -> None:
        self._group = group
        self._image = image
        self._from_seq = self.last_seq = after
        self._states: deque[GroupStateView] = deque(maxlen=STATES_MAX)
        self._assignments: deque[AssignmentView] = deque(maxlen=ASSIGNMENTS_MAX)
        self._commits: deque[CommitView] = deque(maxlen=COMMITS_MAX)
        self._left_out = 0
        self._held: dict[tuple[str, TopicPartition], _Held] = {}
        self._points: dict[TopicPartition, list[LagPoint]] = {}
        self._waiting: dict[TopicPartition, _Waiting] = {}
        # Committed in transactions that are open.
        self._pending: set[TopicPartition] = set()
        self._known: PastGroup | None = None
        self._regroup(after, image.at_ms)
        for key in list(image.offsets.get(group, ())):
            self._sample(key)

    def add(self, entries: Iterable[Entry], members: Members, last_seq: int) -> None:
        """Apply the entries up to number `last_seq`."""
        fold = Fold(self._image, members)
        for entry in entries:
            fold.apply((entry,))
            if self._image.groups.get(self._group) is not self._known:
                self._regroup(entry.seq, entry.virtual_ms)
            if isinstance(entry, AppendEntry):
                if (entry.topic, entry.partition) in self._points:
                    self._sample((entry.topic, entry.partition))
            elif isinstance(entry, EventEntry):
                self._event(entry)
        self.last_seq = max(self.last_seq, last_seq)

    def _event(self, entry: EventEntry) -> None:
        event = entry.event
        if isinstance(event, GroupMoved):
            if event.group == self._group:
                self._keep(
                    self._states,
                    GroupStateView(
                        entry.seq,
                        entry.virtual_ms,
                        event.former,
                        event.state,
                        event.generation,
                        event.members,
                        event.reason,
                    ),
                )
        elif isinstance(event, OffsetCommitted):
            if event.group == self._group:
                key = event.topic, event.partition
                transactional = event.transactional
                commit = (entry.seq, entry.virtual_ms, *key, event.offset, transactional)
                self._keep(self._commits, CommitView(*commit))
                self._sample(key)
                if transactional:
                    self._pending.add(key)
        elif isinstance(event, MarkerWritten) and event.topic in INTERNAL_TOPICS:
            for key in self._pending:
                self._sample(key)
            self._pending = {
                (topic, index)
                for found in self._image.pending.values()
                for group, topic, index in found
                if group == self._group
            }
        else:
            key = getattr(event, "topic", ""), getattr(event, "partition", -1)
            if key in self._points:
                self._sample(key)

    def _keep(self, kept: deque[T], row: T) -> None:
        self._left_out += len(kept) == kept.maxlen
        kept.append(row)

    # -- assignments -------------------------------------------------------------------------------

    def _regroup(self, seq: int, at_ms: int) -> None:
        """Compare the assignments with the former ones."""
        self._known = group = self._image.groups.get(self._group)
        members = {} if group is None else group.members or {}
        now = {
            (member.member_id, (topic, index)): member.client_id
            for member in members.values()
            for topic, indexes in (member.assigned or {}).items()
            for index in indexes
        }
        for gone in self._held.keys() - now.keys():
            self._keep(self._assignments, self._assignment(gone, seq, at_ms))
            del self._held[gone]
        for each in now.keys() - self._held.keys():
            self._held[each] = _Held(each[0], now[each], seq, at_ms)
            if each[1] not in self._points and each[1] in self._image.partitions:
                self._sample(each[1])

    def _assignment(
        self, key: tuple[str, TopicPartition], to_seq: int | None, to_ms: int | None
    ) -> AssignmentView:
        held = self._held[key]
        topic, index = key[1]
        began = held.from_seq, held.from_ms
        return AssignmentView(held.member, held.client_id, topic, index, *began, to_seq, to_ms)

    # -- lag ---------------------------------------------------------------------------------------

    def _sample(self, key: TopicPartition) -> None:
        """Add a point for a partition if it differs from the last one."""
        partition = self._image.partitions.get(key)
        committed = self._image.offsets.get(self._group, {}).get(key)
        stable = mark = None
        if partition is not None:
            stable, mark = partition.last_stable_offset, partition.high_watermark
            self._judge(key, committed, stable, partition.log_start_offset or 0)
        points = self._points.setdefault(key, [])
        if points and points[-1][1:] == (committed, stable, mark):
            return
        points.append((self._image.at_ms, committed, stable, mark))
        if len(points) > POINTS_KEPT_MAX:
            del points[1:-1:2]

    def _judge(
        self, key: TopicPartition, committed: int | None, stable: int | None, log_start: int
    ) -> None:
        """Note since when records wait behind this committed offset, or that none does."""
        if stable is None or stable <= (log_start if committed is None else committed):
            self._waiting.pop(key, None)
        elif key not in self._waiting or self._waiting[key].committed != committed:
            self._waiting[key] = _Waiting(committed, self._image.at_ms)

    def _still_since(self) -> dict[TopicPartition, int]:
        """Since when the members with these partitions have not gone on there."""
        return {
            key: max(held.from_ms, self._waiting[key].since_ms)
            for (_, key), held in self._held.items()
            if key in self._waiting
        }

    # -- the view ----------------------------------------------------------------------------------

    def view(self, points: int, newest: int = ASSIGNMENTS_MAX) -> GroupHistoryView:
        """The history, with at most so many points of each partition, and so many of the newest
        states, assignments and commits.
        """
        still = self._still_since()
        assignments = sorted(
            [*self._assignments, *(self._assignment(key, None, None) for key in self._held)],
            key=lambda each: (each.from_seq, each.topic, each.partition),
        )
        whole = (self._states, assignments, self._commits)
        return GroupHistoryView(
            group=self._group,
            type=None if self._known is None else self._known.type,
            from_seq=self._from_seq,
            last_seq=self.last_seq,
            states=list(self._states)[-newest:],
            assignments=assignments[-newest:],
            lag=[
                LagHistoryView(topic, index, _thinned(found, points), still.get((topic, index)))
                for (topic, index), found in sorted(self._points.items())
            ],
            commits=list(self._commits)[-newest:],
            left_out=self._left_out + sum(max(len(each) - newest, 0) for each in whole),
        )


def _thinned(points: list[LagPoint], limit: int) -> list[LagPoint]:
    """At most `limit` points, evenly, with the first and the last."""
    if len(points) <= limit:
        return list(points)
    step = (len(points) - 1) / (limit - 1)
    return [points[round(at * step)] for at in range(limit)]
