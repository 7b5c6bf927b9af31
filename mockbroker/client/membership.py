"""Reading as a member of a classic consumer group: join, heartbeat, commit, leave.

The member takes part in eager rebalances with the assignor `range`, which all clients know, so it
can share a group with them. It lives in the thread of its reader: it sends its heartbeats between
records.

Source: Java's ConsumerCoordinator and RangeAssignor.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping

from mockbroker.client.connection import Connection
from mockbroker.client.consuming import ConsumedRecord, Consumer, FetchStream, Position
from mockbroker.client.errors import BrokerError, ClientError, check
from mockbroker.client.router import BACKOFF_S, Router
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from mockbroker_protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from mockbroker_protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

PROTOCOL_TYPE = "consumer"
ASSIGNOR = "range"
SUBSCRIPTION_VERSION = 1
SESSION_TIMEOUT_MS = 10_000
HEARTBEAT_INTERVAL_S = 3.0
COMMIT_INTERVAL_S = 5.0
POLL_S = 0.5

# The member has to join again.
REJOIN = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.MEMBER_ID_REQUIRED,
)


class RejoinError(Exception):
    """The member has lost its generation."""


class Member:
    """One member of a group, on connections of its own. It subscribes to one topic."""

    def __init__(self, router: Router, group: str, topic: str) -> None:
        self._router = router
        self._group = group
        self._topic = topic
        self._member_id = ""
        self._generation = -1
        self._heartbeat_due_s = 0.0

    @property
    def topic(self) -> str:
        return self._topic

    def join(self) -> list[int]:
        """Join, or join again, and return the assigned partitions. Raises `ClientError`."""
        while True:
            try:
                return self._router.retrying(self._join_once)
            except RejoinError:
                time.sleep(BACKOFF_S)

    def _join_once(self) -> list[int]:
        connection = self._coordinator()
        subscription = ConsumerProtocolSubscription(topics=[self._topic])
        metadata = encode_subscription(subscription, SUBSCRIPTION_VERSION)
        joined: JoinGroupResponse = connection.send(
            JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=int(self._router.timeout_s * 1000 / 2),
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequestProtocol(name=ASSIGNOR, metadata=metadata)],
            )
        )
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            raise RejoinError
        self._check(joined.error_code)
        self._member_id, self._generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == joined.member_id and not joined.skip_assignment:
            subscribed = {
                each.member_id: decode_subscription(each.metadata).topics for each in joined.members
            }
            assignments = [
                SyncGroupRequestAssignment(member_id=member_id, assignment=encoded(topics))
                for member_id, topics in self._assign(subscribed).items()
            ]
        synced: SyncGroupResponse = connection.send(
            SyncGroupRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=joined.protocol_name,
                assignments=assignments,
            )
        )
        self._check(synced.error_code)
        self._heartbeat_due_s = time.monotonic() + HEARTBEAT_INTERVAL_S
        if not synced.assignment:
            return []
        assigned = decode_assignment(synced.assignment).assigned_partitions
        return [
            index for each in assigned if each.topic == self._topic for index in each.partitions
        ]

    def _assign(self, subscribed: Mapping[str, list[str]]) -> dict[str, dict[str, list[int]]]:
        topics = {topic for wanted in subscribed.values() for topic in wanted}
        counts = {topic: self._count(topic) for topic in topics}
        return assign_ranges(subscribed, counts)

    def _count(self, topic: str) -> int:
        """The number of partitions; 0 for a topic that does not exist."""
        try:
            return len(self._router.partitions(topic))
        except ClientError:
            return 0

    def heartbeat(self) -> None:
        """Send a heartbeat if one is due. Raises RejoinError."""
        if time.monotonic() < self._heartbeat_due_s:
            return

        def attempt() -> None:
            response: HeartbeatResponse = self._coordinator().send(
                HeartbeatRequest(
                    group_id=self._group,
                    generation_id=self._generation,
                    member_id=self._member_id,
                )
            )
            self._check(response.error_code)

        self._router.retrying(attempt)
        self._heartbeat_due_s = time.monotonic() + HEARTBEAT_INTERVAL_S

    def committed(self, partitions: list[int]) -> dict[int, int]:
        """The committed offsets of partitions; -1 without one."""

        def attempt() -> dict[int, int]:
            request = OffsetFetchRequest(
                group_id=self._group,
                topics=[OffsetFetchRequestTopic(name=self._topic, partition_indexes=partitions)],
                groups=[
                    OffsetFetchRequestGroup(
                        group_id=self._group,
                        topics=[
                            OffsetFetchRequestTopics(name=self._topic, partition_indexes=partitions)
                        ],
                    )
                ],
                require_stable=True,
            )
            response: OffsetFetchResponse = self._coordinator().send(request)
            answer = response.groups[0] if response.groups else response
            check(answer.error_code, f"offsets of group {self._group}")
            found = {}
            for topic in answer.topics:
                for each in topic.partitions:
                    check(each.error_code, f"offset of {self._topic}-{each.partition_index}")
                    found[each.partition_index] = each.committed_offset
            return found

        return self._router.retrying(attempt) if partitions else {}

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit offsets by partition. Raises RejoinError."""
        if not offsets:
            return
        partitions = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            for index, offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            topics=[OffsetCommitRequestTopic(name=self._topic, partitions=partitions)],
        )

        def attempt() -> None:
            response: OffsetCommitResponse = self._coordinator().send(request)
            for topic in response.topics:
                for each in topic.partitions:
                    self._check(each.error_code)

        self._router.retrying(attempt)

    def leave(self) -> None:
        """Leave the group, if it is a member, and close the connections."""
        try:
            if self._member_id:
                identity = MemberIdentity(member_id=self._member_id)
                self._coordinator().send(
                    LeaveGroupRequest(
                        group_id=self._group, member_id=self._member_id, members=[identity]
                    )
                )
        finally:
            self._router.close()

    def _coordinator(self) -> Connection:
        return self._router.coordinator(self._group)

    def _check(self, code: int) -> None:
        if code in REJOIN:
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            raise RejoinError
        check(code, f"group {self._group}")


def consume_as_member(
    member: Member,
    router: Router,
    consumer: Consumer,
    *,
    start: int,
    idle_timeout_s: float | None,
    isolation_level: int,
) -> Generator[ConsumedRecord, None, None]:
    """Records as `Client.consume_as_member` describes them."""
    idle_since_s = time.monotonic()
    try:
        while True:
            reading = _Reading(member, router, consumer, start, isolation_level)
            try:
                while True:
                    for record in reading.poll():
                        yield record
                        idle_since_s = time.monotonic()
                    if (
                        idle_timeout_s is not None
                        and time.monotonic() - idle_since_s >= idle_timeout_s
                    ):
                        return
            except RejoinError:
                continue
            finally:
                reading.close()
    finally:
        member.leave()


class _Reading:
    """What a member reads during one generation."""

    def __init__(
        self, member: Member, router: Router, consumer: Consumer, start: int, isolation_level: int
    ) -> None:
        self._member = member
        partitions = member.join()
        offsets = member.committed(partitions)
        fresh = [index for index in partitions if offsets.get(index, -1) < 0]
        listed = consumer.list_offsets(member.topic, start, fresh) if fresh else {}
        offsets |= {index: each.offset for index, each in listed.items()}
        # The next offset of each partition, behind the records that were handed out.
        self._next: dict[int, int] = {}
        # A partition that begins at its end is committed too, so that nothing is missed later.
        self._uncommitted = {index: listed[index].offset for index in fresh}
        self._positions = [Position(member.topic, index, offsets[index]) for index in partitions]
        self._stream = FetchStream(router, self._positions, {}, isolation_level, int(POLL_S * 1000))
        self._commit_due_s = time.monotonic() + COMMIT_INTERVAL_S

    def poll(self) -> Generator[ConsumedRecord, None, None]:
        """The records of the first answers. Raises RejoinError."""
        if self._positions:
            for record in self._stream.poll(POLL_S):
                self._uncommitted[record.partition] = record.record.offset + 1
                yield record
                self._member.heartbeat()
        else:
            time.sleep(POLL_S)  # all partitions are others'
        for position in self._positions:
            if self._uncommitted.get(position.partition, position.offset) < position.offset:
                self._uncommitted[position.partition] = position.offset
        self._member.heartbeat()
        if time.monotonic() >= self._commit_due_s:
            self._commit()

    def _commit(self) -> None:
        self._member.commit(self._uncommitted)
        self._uncommitted.clear()
        self._commit_due_s = time.monotonic() + COMMIT_INTERVAL_S

    def close(self) -> None:
        """Commit what was handed out, unless the generation is over, and end the Fetches."""
        try:
            self._commit()
        except (RejoinError, BrokerError):
            pass
        finally:
            self._stream.close()


def assign_ranges(
    subscribed: Mapping[str, list[str]], counts: Mapping[str, int]
) -> dict[str, dict[str, list[int]]]:
    """Partitions by member and topic: of each topic a range for each subscriber, in the order of
    their ids; the first ones get one more if it does not come out even.
    """
    assigned: dict[str, dict[str, list[int]]] = {member: {} for member in subscribed}
    for topic in sorted(counts):
        members = sorted(member for member, topics in subscribed.items() if topic in topics)
        share, more = divmod(counts[topic], len(members))
        first = 0
        for number, member in enumerate(members):
            end = first + share + (number < more)
            if end > first:
                assigned[member][topic] = list(range(first, end))
            first = end
    return assigned


def encoded(topics: Mapping[str, list[int]]) -> bytes:
    """An assignment for SyncGroup."""
    partitions = [TopicPartition(topic=topic, partitions=each) for topic, each in topics.items()]
    return encode_assignment(
        ConsumerProtocolAssignment(assigned_partitions=partitions), SUBSCRIPTION_VERSION
    )
