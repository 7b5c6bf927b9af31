"""Group requests to a cluster without sockets, as bytes: each goes through its codec both ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mockbroker.core.groups.expiry import expire_group
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS, Parked
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_subscription,
)
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
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
from mockbroker_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from mockbroker_protocol.records import Record, iter_records, split_batches
from tests.support.ask import handle
from tests.support.requests import Node

SESSION_MS = 10_000
REBALANCE_MS = 60_000
NEWEST = {
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.OFFSET_COMMIT: 9,  # v10 names topics by id
    ApiKey.OFFSET_FETCH: 9,
}


def subscription(*topics: str) -> bytes:
    """What a consumer sends with its protocol: the topics it wants."""
    return encode_subscription(ConsumerProtocolSubscription(topics=list(topics)))


def join_request(group: str = "g", member: str = "", **fields: Any) -> JoinGroupRequest:
    """A consumer's JoinGroup; `protocols` may be given as {name: metadata}."""
    protocols: Mapping[str, bytes] = fields.pop("protocols", {"range": subscription("t")})
    values: dict[str, Any] = {
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
    }
    return JoinGroupRequest(
        group_id=group,
        member_id=member,
        protocols=[JoinGroupRequestProtocol(name, data) for name, data in protocols.items()],
        **(values | fields),
    )


def sync_request(
    group: str, member: str, generation: int, assignments: Mapping[str, bytes] = {}, **fields: Any
) -> SyncGroupRequest:
    values: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range"}
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        assignments=[SyncGroupRequestAssignment(m, a) for m, a in assignments.items()],
        **(values | fields),
    )


def heartbeat_request(group: str, member: str, generation: int, **fields: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, member_id=member, generation_id=generation, **fields)


def leave_request(group: str, *members: str | MemberIdentity) -> LeaveGroupRequest:
    identities = [MemberIdentity(m) if isinstance(m, str) else m for m in members]
    return LeaveGroupRequest(group_id=group, members=identities)


def commit_request(
    offsets: Mapping[tuple[str, int], int],
    group: str = "g",
    member: str = "",
    generation: int = -1,
    *,
    metadata: str | None = "",
    leader_epoch: int = -1,
    **fields: Any,
) -> OffsetCommitRequest:
    """OffsetCommit of {(topic, partition): offset}; without a member from nobody in particular."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, index), offset in offsets.items():
        topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name))
        line = OffsetCommitRequestPartition(index, offset, leader_epoch, metadata)
        topic.partitions.append(line)
    return OffsetCommitRequest(
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=generation,
        topics=list(topics.values()),
        **fields,
    )


def fetch_request(
    wanted: Mapping[str, Iterable[int]] | None,
    group: str = "g",
    *,
    version: int = 9,
    require_stable: bool = False,
) -> OffsetFetchRequest:
    """OffsetFetch of {topic: partitions} or, with None, of all there is."""
    if version < 8:
        old = None
        if wanted is not None:
            old = [OffsetFetchRequestTopic(name, list(p)) for name, p in wanted.items()]
        return OffsetFetchRequest(group_id=group, topics=old, require_stable=require_stable)
    topics = None
    if wanted is not None:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=list(p))
            for name, p in wanted.items()
        ]
    line = OffsetFetchRequestGroup(group_id=group, topics=topics)
    return OffsetFetchRequest(groups=[line], require_stable=require_stable)


def api_of(message: object) -> ApiKey:
    return ApiKey[type(message).__module__.rpartition(".")[2].upper()]


class Pending:
    """A request whose answer may still be parked."""

    def __init__(self, answer: Any, key: ApiKey, version: int) -> None:
        self._answer = answer
        self._codec = response_codec(key, version)

    @property
    def parked(self) -> bool:
        return isinstance(self._answer, Parked) and not self._answer.done

    @property
    def response(self) -> Any:
        """The answer as its client reads it."""
        assert not self.parked, "the reply is still parked"
        answer = self._answer.response if isinstance(self._answer, Parked) else self._answer
        encoded = b"".join(self._codec.encode(answer))
        response, end = self._codec.decode(encoded)
        assert end == len(encoded)
        return response


class GroupNode(Node):
    """A broker that leads all of `__consumer_offsets`, and topic "t" with three partitions."""

    def __init__(self, *, offsets_topic: bool = True, **options: Any) -> None:
        super().__init__(**options)
        load_all()
        if offsets_topic:
            self.cluster.ensure_internal_topic(GROUP_METADATA_TOPIC)
        self.topic("t", 3)

    def advance(self, by_ms: int) -> None:
        """Let time pass, from deadline to deadline, as the timer actor does."""
        end_ms = self.now_ms + by_ms
        timers = self.cluster.runtime.timers
        while (due_ms := timers.deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            timers.run_due(self.now_ms)
        self.now_ms = end_ms

    def send(
        self,
        request: object,
        version: int | None = None,
        *,
        broker: int = 1,
        client_id: str | None = "tester",
    ) -> Pending:
        key = api_of(request)
        if version is None:
            version = NEWEST.get(key, APIS[int(key)].max_version)
        codec = request_codec(key, version)
        frame = memoryview(bytearray(b"".join(codec.encode(request))))
        decoded, end = codec.decode(frame)
        assert end == len(frame)
        ctx = self.ctx(version, key=key, broker=broker, client_id=client_id)
        return Pending(handle(APIS[int(key)], ctx, decoded), key, version)

    def ask(self, request: object, version: int | None = None, **options: Any) -> Any:
        """Send a request whose answer must be there at once."""
        return self.send(request, version, **options).response

    def shard(self, group: str = "g", broker: int = 1) -> GroupShard:
        shard = self.cluster.brokers[broker].groups.shard_of(group)
        assert isinstance(shard, GroupShard)
        return shard

    def member(self, group: str = "g", **fields: Any) -> str:
        """Join a new member up to the end of its JoinGroup; the answer may be parked."""
        given = self.ask(join_request(group, **fields)).member_id
        self.send(join_request(group, given, **fields))
        return str(given)

    def stable(self, group: str = "g", count: int = 1, **fields: Any) -> list[str]:
        """A Stable group of so many members, each assigned its own name; the first one leads."""
        members: list[str] = []
        for _ in range(count):
            members.append(self.member(group, **fields))
            for name in members[:-1]:
                self.send(join_request(group, name, **fields))
            generation = self.shard(group).groups[group].generation
            assignments = {name: name.encode() for name in members}
            kind = {"protocol_type": fields.get("protocol_type", "consumer")}
            for name in members[1:]:
                self.send(sync_request(group, name, generation, **kind))
            request = sync_request(group, members[0], generation, assignments, **kind)
            response = self.ask(request)
            assert response.error_code == 0, response
        return members

    def log(self, group: str = "g") -> list[Record]:
        """The records of the group's partition of `__consumer_offsets`, in order."""
        log = self.shard(group).partition.log
        return [
            record
            for stored in log.batches()
            for header, batch in split_batches(bytes(stored))
            for record in iter_records(header, batch)
        ]


def expire_all(node: GroupNode, retention_ms: int) -> None:
    """Look for expired offsets in every group, without waiting for the regular check."""
    for shard in node.cluster.brokers[1].groups.loaded():
        for group_id in list(shard.groups):
            expire_group(shard, group_id, retention_ms)
