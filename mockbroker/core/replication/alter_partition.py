"""AlterPartition: a leader requests another ISR from the controller.

Only the controller changes the ISR, see `elections.alter_partition`. Without an answer, a leader
cannot find out whether a request was carried out. It therefore repeats the request until it gets an
answer, and meanwhile the high watermark waits for both ISRs. Few errors prove that the request was
not carried out: only these revert the ISR. After the other errors the leader waits for newer
metadata.

Source: Partition.handleAlterPartitionError, DefaultAlterPartitionManager,
NodeToControllerRequestThread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.replication.network import Hop
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.metadata.metadata_cache import MetadataCache
    from mockbroker.core.replication.network import Network
    from mockbroker.core.replication.partition import PartitionKey
    from mockbroker.core.timing.timers import Timer
    from mockbroker_protocol.messages.alter_partition import (
        AlterPartitionRequest,
        AlterPartitionResponse,
    )


RETRY_BACKOFF_MS = 50
"""The back-off of a repeated request, in ms: after a broken connection, an answer of a former
controller, or an error of the whole request. Kafka repeats a request for one partition after an
unexpected error without a pause.
"""


class Reaction(Enum):
    """A leader's reaction to a refused AlterPartition."""

    REVERT_ISR = "revert the ISR: the request was not carried out"
    AWAIT_METADATA = "wait for newer metadata: the leader's state is out of date"
    RETRY = "repeat the request: its outcome is unknown"


_REACTIONS: Mapping[ErrorCode, Reaction] = {
    ErrorCode.OPERATION_NOT_ATTEMPTED: Reaction.REVERT_ISR,
    ErrorCode.INELIGIBLE_REPLICA: Reaction.REVERT_ISR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.AWAIT_METADATA,
    ErrorCode.UNKNOWN_TOPIC_ID: Reaction.AWAIT_METADATA,
    ErrorCode.FENCED_LEADER_EPOCH: Reaction.AWAIT_METADATA,
    ErrorCode.INVALID_UPDATE_VERSION: Reaction.AWAIT_METADATA,
    ErrorCode.INVALID_REQUEST: Reaction.AWAIT_METADATA,
    ErrorCode.NEW_LEADER_ELECTED: Reaction.AWAIT_METADATA,
}


def reaction_to(error: ErrorCode) -> Reaction:
    """The reaction of a leader to an error (Partition.handleAlterPartitionError)."""
    return _REACTIONS.get(error, Reaction.RETRY)


class AlterPartition(NamedTuple):
    """The ISR that leader `node_id` requests, and the partition's state in its image.

    `broker_epochs` are those in the leader's image, by broker.
    """

    node_id: int
    key: PartitionKey
    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    reason: str
    broker_epochs: Mapping[int, int]


class AlterPartitionHop(Hop):
    """A leader's request on its way to the controller; the answer is an error code.

    `answered` is called once: with the answer, NETWORK_EXCEPTION if the connection breaks, or
    REQUEST_TIMED_OUT. A later answer is dropped with its closed connection.
    """

    __slots__ = ("_answered", "_handle", "_metadata", "_network", "_wanted", "timer")

    API = ApiKey.ALTER_PARTITION

    def __init__(
        self,
        metadata: MetadataCache,
        network: Network,
        wanted: AlterPartition,
        handle: Callable[[AlterPartition], ErrorCode],
        answered: Callable[[ErrorCode], None],
    ) -> None:
        """`handle` carries out the request on the controller."""
        super().__init__(wanted.node_id, metadata.image.controller_id)
        self._metadata = metadata
        self._network = network
        self._handle = handle
        self._wanted = wanted
        self._answered: Callable[[ErrorCode], None] | None = answered
        self.timer: Timer | None = None  # calls `time_out`

    def handle_request(self) -> None:
        is_controller = self._metadata.image.controller_id == self.receiver
        answer = self._handle(self._wanted) if is_controller else ErrorCode.NOT_CONTROLLER
        self._network.answer(self, answer)

    def handle_answer(self, answer: ErrorCode) -> None:
        answered, self._answered = self._answered, None
        if self.timer is not None:
            self.timer.cancel()
        if answered is not None:
            answered(answer)

    def disconnected(self) -> None:
        self.handle_answer(ErrorCode.NETWORK_EXCEPTION)

    def time_out(self) -> None:
        """Close the connection, `controller.socket.timeout.ms` after the request."""
        self.handle_answer(ErrorCode.REQUEST_TIMED_OUT)

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
        """Kafka answers with the partition's error, or with its new state."""
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
