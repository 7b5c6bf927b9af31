"""AlterPartition: a leader asks the controller for another ISR.

The controller alone changes the ISR, see `elections.alter_partition`.

Source: AlterPartitionManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.replication.network import Hop
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.metadata.metadata_cache import MetadataCache
    from mockbroker.core.replication.network import Network
    from mockbroker.core.replication.partition import PartitionKey
    from mockbroker_protocol.messages.alter_partition import (
        AlterPartitionRequest,
        AlterPartitionResponse,
    )


class AlterPartition(NamedTuple):
    """The ISR that leader `node_id` wants, and the state of the partition that it knows.

    `broker_epochs` are those of the processes that the leader has heard of, by broker.
    """

    node_id: int
    key: PartitionKey
    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    reason: str
    broker_epochs: Mapping[int, int]


class AlterPartitionHop(Hop):
    """A leader's request on its way to the controller; the answer to it is an error code."""

    __slots__ = ("_answered", "_handle", "_metadata", "_network", "_wanted")

    API = ApiKey.ALTER_PARTITION

    def __init__(
        self,
        metadata: MetadataCache,
        network: Network,
        wanted: AlterPartition,
        handle: Callable[[AlterPartition], ErrorCode],
        answered: Callable[[ErrorCode], None],
    ) -> None:
        """`handle` carries the request out, as the controller."""
        super().__init__(wanted.node_id, metadata.image.controller_id)
        self._metadata = metadata
        self._network = network
        self._handle = handle
        self._wanted = wanted
        self._answered = answered

    def arrive(self) -> None:
        if self._metadata.image.controller_id == self.receiver:
            self._network.answer(self, self._handle(self._wanted))

    def take(self, answer: ErrorCode) -> None:
        self._answered(answer)

    def refused(self, error: ErrorCode) -> ErrorCode:
        return error

    def request(self) -> AlterPartitionRequest:
        from mockbroker_protocol.messages import alter_partition as messages

        wanted, epochs = self._wanted, self._wanted.broker_epochs
        topic_id, index = wanted.key
        partition = messages.RequestPartitionData(
            partition_index=index,
            leader_epoch=wanted.leader_epoch,
            new_isr_with_epochs=[
                messages.BrokerState(node_id, epochs.get(node_id, -1)) for node_id in wanted.isr
            ],
            partition_epoch=wanted.partition_epoch,
        )
        return messages.AlterPartitionRequest(
            broker_id=self.sender,
            broker_epoch=self._metadata.processes[self.sender].epoch,
            topics=[messages.RequestTopicData(topic_id, [partition])],
        )

    def response(self, answer: ErrorCode) -> AlterPartitionResponse:
        """Kafka tells of an error of the partition, and else of the partition as it is now."""
        from mockbroker_protocol.messages import alter_partition as messages

        topic_id, index = self._wanted.key
        partition = self._metadata.image.partition_by_id(topic_id, index)
        if answer is not ErrorCode.NONE or partition is None:
            result = messages.ResponsePartitionData(partition_index=index, error_code=int(answer))
        else:
            result = messages.ResponsePartitionData(
                partition_index=index,
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                isr=list(partition.isr),
                partition_epoch=partition.partition_epoch,
            )
        return messages.AlterPartitionResponse(
            topics=[messages.ResponseTopicData(topic_id, [result])]
        )
