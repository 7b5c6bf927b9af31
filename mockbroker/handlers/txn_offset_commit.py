"""TxnOffsetCommit (28): commit offsets of a group in a transaction.

The group's coordinator leads the group's partition of `__consumer_offsets`. As its leader it
verifies the transaction, or has the partition added (v5). Then it checks the member and its
generation, if the request has them (KIP-447), and writes the offsets.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.log.verification import VerificationGuard
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.core.security.acls import AclOperation
from mockbroker.core.txn.offsets import commit_pending
from mockbroker.core.txn.verification import (
    PartitionVerification,
    TxnOperation,
    UnverifiedBatch,
    VerifiedPartitions,
)
from mockbroker.handlers.authorization import (
    each_row,
    named,
    on_group,
    on_topic,
    on_transactional_id,
)
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

LOADING_SINCE = 2
ABORTABLE_SINCE = 4
ADDED_BY_COORDINATOR_SINCE = 5
NO_SEQUENCE = -1
NONE = int(ErrorCode.NONE)

# Errors of the coordinator, mapped for its clients (CoordinatorOperationExceptionHelper).
_TRANSLATED: dict[int, int] = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}


class ExistingPartition(NamedTuple):
    """A partition of the request that exists."""

    topic: str
    topic_id: bytes
    partition: TxnOffsetCommitRequestPartition


@api(
    ApiKey.TXN_OFFSET_COMMIT,
    versions=(0, 5),
    authorize=each_row(
        on_topic(AclOperation.READ),
        first=(
            named(on_transactional_id(AclOperation.WRITE), "transactional_id"),
            named(on_group(AclOperation.READ), "group_id"),
        ),
        refused_first=True,
    ),
)
def txn_offset_commit(
    ctx: RequestContext, request: TxnOffsetCommitRequest
) -> Parked[TxnOffsetCommitResponse]:
    """A missing partition has an error of its own; an error of the group is for all others."""
    commit = _Commit(ctx, request)
    commit.start()
    return commit.parked


class _Commit:
    """One request."""

    __slots__ = ("_context", "_existing", "_request", "_topics", "parked")

    def __init__(self, context: RequestContext, request: TxnOffsetCommitRequest) -> None:
        self._context = context
        self._request = request
        self._existing: list[ExistingPartition] = []
        self._topics: dict[str, TxnOffsetCommitResponseTopic] = {}
        self.parked: Parked[TxnOffsetCommitResponse] = Parked()

    def start(self) -> None:
        request = self._request
        for topic in request.topics:
            found = self._context.image.topics.get(topic.name)
            count = len(found.partitions) if found else 0
            for partition in topic.partitions:
                index = partition.partition_index
                if found is not None and 0 <= index < count:
                    self._existing.append(ExistingPartition(topic.name, found.topic_id, partition))
                else:
                    self._add(topic.name, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not self._existing:
            self._finish()
        elif not request.group_id:
            self._finish(ErrorCode.INVALID_GROUP_ID)
        else:
            self._verify()

    def _verify(self) -> None:
        """Have the transaction's coordinator verify the partition, unless that is disabled."""
        context, request = self._context, self._request
        shard = context.broker.groups.shard_of(request.group_id)
        if isinstance(shard, ErrorCode):
            self._finish(shard)
            return
        verification = PartitionVerification(
            context.cluster,
            context.broker.node_id,
            _operation(context.api_version),
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            epoch=request.producer_epoch,
        )
        if verification.disabled:
            self._commit(None)
        else:
            verification.start([UnverifiedBatch(shard.partition, NO_SEQUENCE)], self._verified)

    def _verified(self, result: VerifiedPartitions) -> None:
        index = self._context.cluster.find_coordinator_partition(self._request.group_id)
        key = (GROUP_METADATA_TOPIC, index)
        error = result.errors.get(key, NONE)
        if error:
            self._finish(error)
        else:
            self._commit(result.guard(key))

    def _commit(self, guard: VerificationGuard | None) -> None:
        context, request = self._context, self._request
        group_id, member_id = request.group_id, request.member_id
        shard = context.broker.groups.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            self._finish(shard)
            return
        error = shard.check_commit(
            group_id,
            member_id,
            request.group_instance_id,
            request.generation_id,
            unknown_group=ErrorCode.ILLEGAL_GENERATION,
            transactional=True,
        )
        if error is not ErrorCode.NONE:
            self._finish(error)
            return
        metadata_max = context.broker.groups.offset_metadata_max
        commits: list[tuple[str, int, OffsetAndMetadata]] = []
        errors: list[int] = []
        group = shard.groups[group_id]
        for topic, topic_id, partition in self._existing:
            metadata = partition.committed_metadata
            if metadata is not None and len(metadata) > metadata_max:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                error = group.check_partition(
                    member_id,
                    request.generation_id,
                    topic,
                    topic_id,
                    partition.partition_index,
                    transactional=True,
                )
                if error is not ErrorCode.NONE:
                    self._finish(error)  # one partition refuses all
                    return
            errors.append(error)
            if error is ErrorCode.NONE:
                value = OffsetAndMetadata(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    metadata or "",
                    shard.now_ms(group_id),
                    topic_id=topic_id,
                )
                commits.append((topic, partition.partition_index, value))
        failed = commit_pending(
            context.cluster.runtime,
            shard,
            group_id,
            commits,
            producer_id=request.producer_id,
            epoch=request.producer_epoch,
            guard=guard,
            request_seq=context.seq,
        )
        if failed:
            self._finish(failed)
        else:
            shard.when_replicated(partial(self._written, errors))

    def _written(self, errors: list[int], error: ErrorCode) -> None:
        if not error:
            for existing, own_error in zip(self._existing, errors, strict=True):
                self._add(existing.topic, existing.partition.partition_index, own_error)
            self._existing = []
        self._finish(error)

    def _add(self, name: str, index: int, error: int) -> None:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = TxnOffsetCommitResponseTopic(name, [])
        topic.partitions.append(TxnOffsetCommitResponsePartition(index, error))

    def _finish(self, error: int = NONE) -> None:
        """Complete the reply; `error` is for all partitions without an error of their own."""
        error = _TRANSLATED.get(error, error)
        loading = error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if loading and self._context.api_version < LOADING_SINCE:  # clients crash (KAFKA-7296)
            error = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        for existing in self._existing:
            self._add(existing.topic, existing.partition.partition_index, error)
        self.parked.complete(TxnOffsetCommitResponse(topics=list(self._topics.values())))


def _operation(version: int) -> TxnOperation:
    if version >= ADDED_BY_COORDINATOR_SINCE:
        return TxnOperation.ADD
    return TxnOperation.VERIFY if version >= ABORTABLE_SINCE else TxnOperation.VERIFY_OLD
