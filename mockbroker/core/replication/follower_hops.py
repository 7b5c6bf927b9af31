"""A follower's requests to its leader, and the leader's responses.

`fetcher` and the leader exchange requests and responses as plain tuples; a log slice goes from one
log to the other by reference. For an interceptor they become Kafka's Fetch and OffsetForLeaderEpoch
here.

Source: RemoteLeaderEndPoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from mockbroker.core.replication.fetcher import (
    Answer,
    Diverged,
    EpochEnd,
    Fetch,
    Fetched,
    OffsetForLeaderEpoch,
    OutOfRange,
    RefusedPartition,
)
from mockbroker.core.replication.network import Hop
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition, PartitionKey
    from mockbroker.core.replication.replica import Replica
    from mockbroker.core.replication.replica_manager import ReplicaManager
    from mockbroker_protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
    from mockbroker_protocol.messages.offset_for_leader_epoch import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderEpochResponse,
    )

_TOPIC_IDS_SINCE = 13  # of Fetch
_REPLICA_STATE_SINCE = 15


Q = TypeVar("Q", bound="Fetch | OffsetForLeaderEpoch")


class FollowerHop(Hop, Generic[Q]):
    """One request of a follower. `broker_epoch` is that of the sending process."""

    __slots__ = ("broker_epoch", "fetcher_request", "key", "manager", "replica")

    def __init__(
        self, manager: ReplicaManager, partition: Partition, replica: Replica, fetcher_request: Q
    ) -> None:
        super().__init__(replica.node_id, fetcher_request.leader_id)
        self.fetcher_request = fetcher_request
        self.manager = manager
        self.key: PartitionKey = partition.key
        self.replica = replica
        self.broker_epoch = manager.metadata.processes[replica.node_id].epoch

    def handle_request(self) -> None:
        self.manager.handle_request(self)

    def handle_answer(self, answer: Answer) -> None:
        self.manager.handle_answer(self, answer)

    def lost(self) -> None:
        self.manager.handle_loss(self)

    def error_answer(self, error: int) -> RefusedPartition:
        return RefusedPartition(self.fetcher_request.number, int(error))

    def _partition(self, node_id: int) -> Partition | None:
        """The partition in the image of one of the two brokers."""
        return self.manager.metadata.image_of(node_id).partition_by_id(*self.key)

    def _topic(self, node_id: int) -> str:
        partition = self._partition(node_id)
        return "" if partition is None else partition.topic.name


class FetchHop(FollowerHop[Fetch]):
    """A Fetch of one partition."""

    __slots__ = ()

    API: ClassVar[ApiKey] = ApiKey.FETCH

    def request(self) -> FetchRequest:
        from mockbroker_protocol.messages import fetch as messages

        fetch, limits = self.fetcher_request, self.manager.fetch_limits
        topic_id, index = self.key
        partition = messages.FetchPartition(
            partition=index,
            current_leader_epoch=fetch.leader_epoch,
            fetch_offset=fetch.offset,
            last_fetched_epoch=fetch.last_epoch,
            log_start_offset=fetch.log_start_offset,
            partition_max_bytes=limits.partition_bytes_max,
            high_watermark=self.replica.high_watermark,
        )
        topic = messages.FetchTopic(partitions=[partition])
        if self.version < _TOPIC_IDS_SINCE:
            topic.topic = self._topic(self.sender)
        else:
            topic.topic_id = topic_id
        request = messages.FetchRequest(
            max_wait_ms=limits.wait_ms_max,
            min_bytes=limits.bytes_min,
            max_bytes=limits.bytes_max,
            topics=[topic],
        )
        if self.version < _REPLICA_STATE_SINCE:
            request.replica_id = self.sender
        else:
            request.replica_state = messages.ReplicaState(self.sender, self.broker_epoch)
        return request

    def response(self, answer: Answer) -> FetchResponse:
        from mockbroker_protocol.messages import fetch as messages

        topic_id, _ = self.key
        topic = messages.FetchableTopicResponse(partitions=[self._partition_data(answer)])
        if self.version < _TOPIC_IDS_SINCE:
            topic.topic = self._topic(self.receiver)
        else:
            topic.topic_id = topic_id
        return messages.FetchResponse(responses=[topic])

    def _partition_data(self, answer: Answer) -> PartitionData:
        from mockbroker_protocol.messages import fetch as messages

        _, index = self.key
        result = messages.PartitionData(partition_index=index, high_watermark=-1, records=[])
        led = self._partition(self.receiver)
        match answer:
            case Fetched(_, records, high_watermark, log_start_offset):
                result.high_watermark = high_watermark
                result.log_start_offset = log_start_offset
                result.last_stable_offset = -1 if led is None else led.last_stable_offset
                if records is not None:
                    result.records = list(records.batches.batches())
            case Diverged(_, epoch, end_offset):
                result.diverging_epoch = messages.EpochEndOffset(epoch, end_offset)
            case OutOfRange():
                result.error_code = int(ErrorCode.OFFSET_OUT_OF_RANGE)
                result.log_start_offset = answer.log_start_offset
            case RefusedPartition(_, error):
                result.error_code = error
            case EpochEnd():
                raise AssertionError("this is no answer to a Fetch")
        return result


class OffsetForLeaderEpochHop(FollowerHop[OffsetForLeaderEpoch]):
    """An OffsetForLeaderEpoch of one partition."""

    __slots__ = ()

    API: ClassVar[ApiKey] = ApiKey.OFFSET_FOR_LEADER_EPOCH

    def request(self) -> OffsetForLeaderEpochRequest:
        from mockbroker_protocol.messages import offset_for_leader_epoch as messages

        _, index = self.key
        partition = messages.OffsetForLeaderPartition(
            index, self.fetcher_request.leader_epoch, self.fetcher_request.epoch
        )
        topic = messages.OffsetForLeaderTopic(self._topic(self.sender), [partition])
        return messages.OffsetForLeaderEpochRequest(replica_id=self.sender, topics=[topic])

    def response(self, answer: Answer) -> OffsetForLeaderEpochResponse:
        from mockbroker_protocol.messages import offset_for_leader_epoch as messages

        _, index = self.key
        result = messages.EpochEndOffset(partition=index)
        match answer:
            case EpochEnd(_, epoch, end_offset):
                result.leader_epoch, result.end_offset = epoch, end_offset
            case RefusedPartition(_, error):
                result.error_code = error
            case _:
                raise AssertionError("this is no answer to an OffsetForLeaderEpoch")
        topic = messages.OffsetForLeaderTopicResult(self._topic(self.receiver), [result])
        return messages.OffsetForLeaderEpochResponse(topics=[topic])


AnyFollowerHop: TypeAlias = "FollowerHop[Any]"
