"""Reading: positions, fetches and commits."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from mockbroker.simulation.clients.base import (
    ATTEMPTS_MAX,
    GROUP,
    CallSequence,
    GaveUp,
    SimulatedClient,
)
from mockbroker.simulation.clients.fetch_sessions import (
    FetchSession,
    Key,
    SessionRequest,
    sessionless,
)
from mockbroker.simulation.history import AnsweredAborts, Commit, FetchedOffset, GroupCall, Read
from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

TP = tuple[str, int]

_TOPIC_IDS_SINCE = 13  # of Fetch
_FOLLOWERS_SINCE = 11  # of Fetch
_GROUPS_SINCE = 8  # of OffsetFetch
_OFFSET_TOPIC_IDS_SINCE = 10  # of OffsetFetch and OffsetCommit
_OUT_OF_RANGE = int(ErrorCode.OFFSET_OUT_OF_RANGE)
_INVALID_EPOCH = int(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
_UNSTABLE = frozenset((int(ErrorCode.UNSTABLE_OFFSET_COMMIT),))
_EARLIEST = -2
_LATEST = -1
_MAX_WAIT_MS = 200
_FETCH_BYTES = 16_384
_ONE_BATCH_BYTES = 1  # the size of a fetch for one batch
_ONE_BATCH_SHARE = 0.15
_SESSIONS_SHARE = 0.7
_METADATA_MAX = 4_096  # offset.metadata.max.bytes
_LONG_SHARE = 0.5
_STALE_SHARE = 0.1

# base offset i64 | length i32 | leader epoch i32 | magic i8 | crc u32 | attributes i16
# | last offset delta i32 | base and max timestamp i64 | producer id i64
_HEAD = struct.Struct(">qiibIhiqqq")
_CONTROL = 0x20
_LENGTH_OVERHEAD = 12


def _named(key: str | bytes) -> tuple[str, bytes]:
    """The name and the id of a topic in a request; one of them is empty."""
    return (key, bytes(16)) if isinstance(key, str) else ("", key)


def one_piece(records: Any) -> bytes | memoryview:
    """The records of an answer as one piece."""
    if isinstance(records, list | tuple):
        return records[0] if len(records) == 1 else b"".join(records)
    return records  # type: ignore[no-any-return]


class Reading(SimulatedClient):
    """A client that fetches from partitions at its positions."""

    positions: dict[TP, int]
    _epochs: dict[TP, int]  # the leader epoch of the last read batch
    _sessions: dict[int, FetchSession]  # by broker
    _keeps_sessions: bool
    # The partitions of the Fetch in flight, and the last offsets of its session.
    fetching: tuple[dict[Key, FetchPartition], dict[Key, tuple[int, int]]]

    def begin(self) -> None:
        self.fetching = ({}, {})
        self._reads_from_followers = (
            "follower" in self.settings.habits
            and self.versions.of(ApiKey.FETCH) >= _FOLLOWERS_SINCE
        )
        self._sessions = {}
        self._keeps_sessions = self.rng.random() < _SESSIONS_SHARE

    # -- positions ---------------------------------------------------------------------------------

    def start_reading(self, partitions: Iterable[TP]) -> None:
        """Set the partitions; they have no position yet."""
        self.positions = dict.fromkeys(partitions, -1)
        self._epochs = {}

    def find_positions(self, group: str, topics: Iterable[str]) -> CallSequence:
        """Set the positions of all partitions of some topics to the group's committed offsets."""
        wanted = [(topic, index) for topic in topics for index in self.partitions_of(topic)]
        self.start_reading(wanted)
        yield from self.find_committed(group, wanted)

    def find_committed(
        self, group: str, wanted: list[TP], member_id: str | None = None, epoch: int = -1
    ) -> CallSequence:
        """Set the positions of some partitions to the group's committed offsets."""
        if not wanted:
            return
        topics: dict[str, list[int]] = {}
        for topic, index in wanted:
            topics.setdefault(topic, []).append(index)
        version = self.versions.of(ApiKey.OFFSET_FETCH)
        request = self._offset_fetch(version, group, topics, member_id, epoch)
        sent = self.history.turn()

        def error_of(response: Any) -> int:
            answer = response.groups[0] if version >= _GROUPS_SINCE else response
            if answer.error_code:
                return int(answer.error_code)
            rows = [row for topic in answer.topics for row in topic.partitions]
            return next((int(row.error_code) for row in rows if row.error_code), 0)

        response = yield from self.ask_coordinator(
            GROUP, group, ApiKey.OFFSET_FETCH, request, error_of, also_retry=_UNSTABLE
        )
        error = error_of(response)
        if error:
            raise GaveUp("committed offsets", error)
        answer = response.groups[0] if version >= _GROUPS_SINCE else response
        answered, now_ms = self.history.turn(), self.history.now_ms()
        for topic in answer.topics:
            name = topic.name or self.topic_name(topic.topic_id) or ""
            for row in topic.partitions:
                found = FetchedOffset(
                    group, name, row.partition_index, row.committed_offset, sent, answered, now_ms
                )
                self.history.found.append(found)
                if (name, row.partition_index) in self.positions:
                    self.positions[name, row.partition_index] = row.committed_offset
        self.history.counts["committed offsets read"] += 1

    def _offset_fetch(
        self,
        version: int,
        group: str,
        topics: dict[str, list[int]],
        member_id: str | None,
        epoch: int,
    ) -> OffsetFetchRequest:
        if version < _GROUPS_SINCE:
            return OffsetFetchRequest(
                group_id=group,
                topics=[OffsetFetchRequestTopic(name, rows) for name, rows in topics.items()],
                require_stable=True,
            )
        by_id = version >= _OFFSET_TOPIC_IDS_SINCE
        rows = [
            OffsetFetchRequestTopics(
                "" if by_id else name, self._topic_id(name) if by_id else bytes(16), indexes
            )
            for name, indexes in topics.items()
        ]
        wanted = OffsetFetchRequestGroup(group, member_id, epoch, rows)
        return OffsetFetchRequest(groups=[wanted], require_stable=True)

    def _topic_id(self, name: str) -> bytes:
        return next((each for each, known in self._names.items() if known == name), bytes(16))

    def _reset(self, topic: str, partition: int) -> CallSequence:
        """Set a missing or invalid position to the earliest offset."""
        leader = self.leader(topic, partition)
        if leader is None:
            yield self.backoff()
            yield from self.refresh()
            return
        isolation = 1 if self.settings.read_committed else 0
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(topic, [ListOffsetsPartition(partition, -1, _EARLIEST)])],
        )
        version = self.versions.of(ApiKey.LIST_OFFSETS)
        try:
            response = yield Call(
                leader.node_id, ApiKey.LIST_OFFSETS, version, request, self.patience_ms()
            )
        except (Disconnected, RequestTimedOut):
            yield self.backoff()
            yield from self.refresh()
            return
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            yield self.backoff()
            yield from self.refresh()
            return
        self.positions[topic, partition] = answer.offset
        self._epochs.pop((topic, partition), None)

    # -- fetching ----------------------------------------------------------------------------------

    def poll(self) -> CallSequence:
        """Fetch all partitions of one random leader."""
        for (topic, partition), position in list(self.positions.items()):
            if position < 0:
                yield from self._reset(topic, partition)
        by_node = self._by_leader()
        if sum(map(len, by_node.values())) < len(self.positions):
            yield self.backoff()
            yield from self.refresh()
            by_node = self._by_leader()
        if not by_node:
            return
        node_id = self.rng.choice(sorted(by_node))
        version = self.versions.of(ApiKey.FETCH)
        session = self._sessions.setdefault(node_id, FetchSession())
        sent_stale = yield from self._send_stale_fetch(node_id, version, session)
        requested = set(by_node[node_id])
        request = self._fetch(version, by_node[node_id], session)
        try:
            response = yield Call(node_id, ApiKey.FETCH, version, request, self.patience_ms())
        except (Disconnected, RequestTimedOut):
            session.reset()
            yield self.backoff()
            yield from self.refresh()
            return
        self.history.counts["fetches answered"] += 1
        if response.error_code == _INVALID_EPOCH and sent_stale:
            self._misfit(
                f"was refused in a fetch session of broker {node_id}, although it had sent only a "
                "stale request in between"
            )
        session.answered(response.error_code, response.session_id)
        stale = yield from self._take_answers(response, session, requested)
        if stale:
            yield self.backoff()
            yield from self.refresh()

    def _take_answers(
        self, response: Any, session: FetchSession, requested: set[TP]
    ) -> CallSequence:
        """Handle the answer of a Fetch; returns whether the metadata must be refreshed."""
        stale = bool(response.error_code)
        for topic in response.responses:
            name = topic.topic or self.topic_name(topic.topic_id) or ""
            for data in topic.partitions:
                tp = (name, data.partition_index)
                session.record_partition(
                    (topic.topic or topic.topic_id, data.partition_index),
                    -1 if data.error_code else data.high_watermark,
                    data.log_start_offset,
                )
                if tp not in requested:
                    self._misfit(f"got {name}-{data.partition_index}, which it had not requested")
                if tp not in self.positions:
                    continue
                if data.error_code == _OUT_OF_RANGE and self._reads_from_followers:
                    yield self.backoff()  # the follower's high watermark lags
                elif data.error_code == _OUT_OF_RANGE:
                    yield from self._reset(*tp)
                elif data.error_code:
                    stale = True
                elif data.diverging_epoch.end_offset >= 0:
                    self.positions[tp] = min(self.positions[tp], data.diverging_epoch.end_offset)
                    self._epochs[tp] = data.diverging_epoch.epoch
                    self.history.counts["positions cut"] += 1
                else:
                    self._take_records(tp, data)
        return stale

    def _by_leader(self) -> dict[int, list[TP]]:
        """The partitions with a position and a leader, by the broker to read from: the leader, or
        its first follower (KIP-392).
        """
        by_node: dict[int, list[TP]] = {}
        for tp, position in self.positions.items():
            leader = self.leader(*tp)
            if leader is not None and position >= 0:
                node_id = leader.node_id
                if self._reads_from_followers and leader.followers:
                    node_id = leader.followers[0]
                by_node.setdefault(node_id, []).append(tp)
        return by_node

    def _fetch(self, version: int, partitions: list[TP], session: FetchSession) -> FetchRequest:
        by_id = version >= _TOPIC_IDS_SINCE
        one_batch = self.rng.random() < _ONE_BATCH_SHARE
        fetch_bytes = _ONE_BATCH_BYTES if one_batch else _FETCH_BYTES
        wanted: dict[Key, FetchPartition] = {}
        for tp in partitions:
            leader = self._leaders[tp]
            wanted[leader.topic_id if by_id else tp[0], tp[1]] = FetchPartition(
                tp[1],
                leader.epoch,
                self.positions[tp],
                self._epochs.get(tp, -1),
                -1,
                fetch_bytes,
            )
        self.fetching = (wanted, session.last_offsets)
        session_request = (
            session.build_request(wanted) if self._keeps_sessions else sessionless(wanted)
        )
        return self._request(session_request)

    def _send_stale_fetch(self, node_id: int, version: int, session: FetchSession) -> CallSequence:
        """Send a Fetch with an earlier session epoch, which must be refused.

        Returns True if it was and the session still exists.
        """
        session_request = session.stale_request()
        if (
            session_request is None
            or "stale_requests" not in self.settings.habits
            or self.rng.random() >= _STALE_SHARE
        ):
            return False
        self.fetching = ({}, {})
        try:
            response = yield Call(
                node_id, ApiKey.FETCH, version, self._request(session_request), self.patience_ms()
            )
        except (Disconnected, RequestTimedOut):
            session.reset()
            return False
        self.history.counts["stale fetches answered"] += 1
        if not response.error_code:
            self._misfit(
                f"was answered in fetch session {session_request.session_id} of broker {node_id} "
                f"with the stale epoch {session_request.session_epoch}"
            )
        if response.error_code != _INVALID_EPOCH:
            session.reset()
        return response.error_code == _INVALID_EPOCH

    def _request(self, session_request: SessionRequest) -> FetchRequest:
        topics: dict[str | bytes, FetchTopic] = {}
        for (key, _), partition in session_request.listed.items():
            topic = topics.setdefault(key, FetchTopic(*_named(key), []))
            topic.partitions.append(partition)
        forgotten: dict[str | bytes, ForgottenTopic] = {}
        for key, index in session_request.forgotten:
            gone = forgotten.setdefault(key, ForgottenTopic(*_named(key), []))
            gone.partitions.append(index)
        return FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES * 4,
            isolation_level=1 if self.settings.read_committed else 0,
            session_id=session_request.session_id,
            session_epoch=session_request.session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    def _misfit(self, what: str) -> None:
        self.history.misfits.append(f"{self.name} {what}")

    def _take_records(self, tp: TP, data: Any) -> None:
        """Advance over the fetched batches, and note those that the application gets."""
        if not data.records:
            return
        leader = self._leaders.get(tp)
        if leader is None:
            return
        piece = one_piece(data.records)
        committed = self.settings.read_committed
        # Producers whose transaction was aborted, from an offset on (CompletedFetch).
        limit = data.last_stable_offset if committed else data.high_watermark
        aborted = sorted((a.first_offset, a.producer_id) for a in data.aborted_transactions or ())
        listed = frozenset((producer_id, offset) for offset, producer_id in aborted)
        active: set[int] = set()
        position = begin = self.positions[tp]
        at, end = 0, len(piece)
        first = int.from_bytes(piece[:8], "big")
        history = self.history
        now_ms = history.now_ms()
        while at + _HEAD.size <= end:
            base, length, epoch, _, crc, attributes, delta, _, _, producer_id = _HEAD.unpack_from(
                piece, at
            )
            if at + _LENGTH_OVERHEAD + length > end:
                break  # an incomplete batch
            at += _LENGTH_OVERHEAD + length
            last = base + delta
            if base >= limit and not history.limits_precede_reads:
                self._misfit(f"was given {tp[0]}-{tp[1]} at {base}, above the limit {limit}")
            while aborted and aborted[0][0] <= last:
                active.add(aborted.pop(0)[1])
            control = attributes & _CONTROL
            if control:
                active.discard(producer_id)
            if last < position:
                if base == first:
                    self._misfit(f"requested {tp[0]}-{tp[1]} at {position}, and was given {base}")
                continue
            position = last + 1
            self._epochs[tp] = epoch
            if control or (committed and producer_id in active):
                continue
            history.counts["batches read"] += 1
            history.reads.append(
                Read(
                    self.name,
                    tp[0],
                    leader.topic_id,
                    tp[1],
                    base,
                    crc,
                    producer_id,
                    committed=committed,
                    at_ms=now_ms,
                )
            )
        self.positions[tp] = position
        if committed:
            key = (self.name, tp[0], leader.topic_id, tp[1])
            history.aborts.append(AnsweredAborts(*key, begin, position, listed))

    # -- committing --------------------------------------------------------------------------------

    def commit(
        self,
        group: str,
        member_id: str,
        epoch: int,
        instance_id: str | None = None,
        *,
        note: GroupCall | None = None,
    ) -> CallSequence:
        """Commit the positions as a member of a group; returns the error code."""
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        notes: dict[TP, Commit] = {}
        sent = self.history.turn()
        long = "long_metadata" in self.settings.habits and self.rng.random() < _LONG_SHARE
        metadata = "x" * _METADATA_MAX if long else ""
        for (topic, index), position in self.positions.items():
            if position >= 0:
                row = OffsetCommitRequestPartition(index, position, -1, metadata)
                topics.setdefault(topic, []).append(row)
                notes[topic, index] = Commit(
                    group, topic, index, position, sent, self._topic_id(topic)
                )
        if not topics:
            return 0
        version = self.versions.of(ApiKey.OFFSET_COMMIT)
        by_id = version >= _OFFSET_TOPIC_IDS_SINCE
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[
                OffsetCommitRequestTopic(
                    "" if by_id else name, self._topic_id(name) if by_id else bytes(16), rows
                )
                for name, rows in topics.items()
            ],
        )
        self.history.commits += notes.values()
        for attempt in range(ATTEMPTS_MAX):
            node_id = yield from self.coordinator(GROUP, group)
            try:
                response = yield Call(
                    node_id, ApiKey.OFFSET_COMMIT, version, request, self.patience_ms()
                )
            except (Disconnected, RequestTimedOut):
                for each in notes.values():
                    each.doubtful = True
                if note is not None:
                    note.doubtful = True
                self._coordinators.pop((GROUP, group), None)
                yield self.backoff(attempt)
                continue
            break
        else:
            raise GaveUp("commit")
        error = 0
        acked = self.history.turn()
        for topic in response.topics:
            name = topic.name or self.topic_name(topic.topic_id) or ""
            for row in topic.partitions:
                if row.error_code == 0:
                    notes[name, row.partition_index].acked = acked
                    self.history.counts["offsets committed"] += 1
                else:
                    error = row.error_code
        if note is not None:
            self.history.group_answer(note, error)
        if error:
            self._coordinators.pop((GROUP, group), None)
        return error
