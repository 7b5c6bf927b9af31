"""TxnOffsetCommit (key 28): offsets of a group that count only if the transaction is committed.

The group's coordinator has the transaction verified, or joins it (v5), as the leader of the group's
partition of `__consumer_offsets`; then it checks member and generation, if the producer told them
(KIP-447), and writes the offsets.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.log.verification import Guard
from mockbroker.core.topic import GROUP_METADATA_TOPIC
from mockbroker.core.txn.gate import Batch, Gate, Operation, Verdict
from mockbroker.core.txn.offsets import commit_pending
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

# What the coordinator's own dealings mean to a client (CoordinatorOperationExceptionHelper).
_TRANSLATED: dict[int, int] = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}


class Line(NamedTuple):
    """One partition of the request whose topic and partition exist."""

    topic: str
    topic_id: bytes
    partition: TxnOffsetCommitRequestPartition


@api(ApiKey.TXN_OFFSET_COMMIT, versions=(0, 5))
def txn_offset_commit(
    ctx: RequestContext, request: TxnOffsetCommitRequest
) -> Parked[TxnOffsetCommitResponse]:
    """What does not exist is refused by itself; what is wrong with the group, everywhere."""
    commit = _Commit(ctx, request)
    commit.start()
    return commit.parked


class _Commit:
    """One request, from the partitions that exist to the answer."""

    __slots__ = ("_answer", "_context", "_lines", "_request", "parked")

    def __init__(self, context: RequestContext, request: TxnOffsetCommitRequest) -> None:
        self._context = context
        self._request = request
        self._lines: list[Line] = []
        self._answer: dict[str, TxnOffsetCommitResponseTopic] = {}
        self.parked: Parked[TxnOffsetCommitResponse] = Parked()

    def start(self) -> None:
        request = self._request
        for topic in request.topics:
            found = self._context.image.topics.get(topic.name)
            count = len(found.partitions) if found else 0
            for line in topic.partitions:
                if found is not None and 0 <= line.partition_index < count:
                    self._lines.append(Line(topic.name, found.topic_id, line))
                else:
                    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    self._tell(topic.name, line.partition_index, error)
        if not self._lines:
            self._finish()
        elif not request.group_id:
            self._finish(ErrorCode.INVALID_GROUP_ID)
        else:
            self._verify()

    def _verify(self) -> None:
        """Have the transaction's coordinator asked, unless that is switched off."""
        context, request = self._context, self._request
        shard = context.broker.groups.shard_of(request.group_id)
        if isinstance(shard, ErrorCode):
            self._finish(shard)
            return
        gate = Gate(
            context.cluster,
            context.broker.node_id,
            _operation(context.api_version),
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            epoch=request.producer_epoch,
        )
        if gate.open:
            self._commit(None)
        else:
            gate.ask([Batch(shard.partition, NO_SEQUENCE)], self._verified)

    def _verified(self, verdict: Verdict) -> None:
        index = self._context.cluster.find_coordinator_partition(self._request.group_id)
        key = (GROUP_METADATA_TOPIC, index)
        error = verdict.errors.get(key, NONE)
        if error:
            self._finish(error)
        else:
            self._commit(verdict.guard(key))

    def _commit(self, guard: Guard | None) -> None:
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
        outcome: list[int] = []
        for topic, topic_id, line in self._lines:
            metadata = line.committed_metadata
            verdict = ErrorCode.NONE
            if metadata is not None and len(metadata) > metadata_max:
                verdict = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                verdict = shard.consumers.check_partition(
                    group_id,
                    member_id,
                    request.generation_id,
                    topic_id,
                    line.partition_index,
                    transactional=True,
                )
            outcome.append(verdict)
            if verdict is ErrorCode.NONE:
                value = OffsetAndMetadata(
                    line.committed_offset,
                    line.committed_leader_epoch,
                    metadata or "",
                    shard.now_ms(group_id),
                    topic_id=topic_id,
                )
                commits.append((topic, line.partition_index, value))
        failed = commit_pending(
            context.cluster,
            shard,
            group_id,
            commits,
            producer_id=request.producer_id,
            epoch=request.producer_epoch,
            guard=guard,
        )
        if failed:
            self._finish(failed)
        else:
            shard.when_replicated(partial(self._written, outcome))

    def _written(self, outcome: list[int], error: ErrorCode) -> None:
        if not error:
            for each, line_error in zip(self._lines, outcome, strict=True):
                self._tell(each.topic, each.partition.partition_index, line_error)
            self._lines = []
        self._finish(error)

    def _tell(self, topic: str, index: int, error: int) -> None:
        line = self._answer.get(topic)
        if line is None:
            line = self._answer[topic] = TxnOffsetCommitResponseTopic(topic, [])
        line.partitions.append(TxnOffsetCommitResponsePartition(index, error))

    def _finish(self, error: int = NONE) -> None:
        """Answer; `error` is for all partitions that have none of their own."""
        error = _TRANSLATED.get(error, error)
        loading = error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if loading and self._context.api_version < LOADING_SINCE:  # they crash (KAFKA-7296)
            error = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        for each in self._lines:
            self._tell(each.topic, each.partition.partition_index, error)
        self.parked.complete(TxnOffsetCommitResponse(topics=list(self._answer.values())))


def _operation(version: int) -> Operation:
    if version >= ADDED_BY_COORDINATOR_SINCE:
        return Operation.ADD
    return Operation.VERIFY if version >= ABORTABLE_SINCE else Operation.VERIFY_OLD
