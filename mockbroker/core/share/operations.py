"""The five APIs of the share coordinator, which have the same form.

A request has a group id and rows: a topic id with partitions. A response has a row for each. Rows
are independent of each other; each has an error code and a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages import delete_share_group_state as deleting
from mockbroker_protocol.messages import initialize_share_group_state as initializing
from mockbroker_protocol.messages import read_share_group_state as reading
from mockbroker_protocol.messages import read_share_group_state_summary as summing
from mockbroker_protocol.messages import write_share_group_state as writing


class Row(Protocol):
    """A partition of a request."""

    partition: int


class Result(Row, Protocol):
    """A partition of a response."""

    error_code: int
    error_message: str | None


class TopicRows(Protocol):
    """A topic of a request."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[Row]: ...


class TopicResults(Protocol):
    """A topic of a response."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[Result]: ...


class StateRequest(Protocol):
    """A request to the share coordinator."""

    @property
    def group_id(self) -> str: ...
    @property
    def topics(self) -> Sequence[TopicRows]: ...


class StateResponse(Protocol):
    """A response of the share coordinator."""

    @property
    def results(self) -> Sequence[TopicResults]: ...


Q = TypeVar("Q", bound=StateRequest)
A = TypeVar("A", bound=StateResponse)


class StateOperation(Generic[Q, A]):
    """One of the APIs; `title`, `event` and `rpc` are its names in Kafka's error messages."""

    __slots__ = (
        "_answer",
        "_answer_topic",
        "_ask",
        "_ask_topic",
        "api",
        "event",
        "result",
        "rpc",
        "title",
    )

    def __init__(
        self,
        api: ApiKey,
        title: str,
        event: str,
        rpc: str,
        request: tuple[Callable[..., Q], Callable[..., TopicRows]],
        response: tuple[Callable[..., A], Callable[..., TopicResults], Callable[..., Result]],
    ) -> None:
        """`request` and `response` are the classes of the message, of its topics and results."""
        self.api = api
        self.title = title
        self.event = event
        self.rpc = rpc
        self._ask, self._ask_topic = request
        self._answer, self._answer_topic, self.result = response

    def request(self, group_id: str, rows: Iterable[tuple[bytes, Row]]) -> Q:
        """A request with these rows, each with its topic id."""
        topics = _by_topic(rows)
        return self._ask(group_id, [self._ask_topic(*topic) for topic in topics.items()])

    def response(self, results: Iterable[tuple[bytes, Result]]) -> A:
        """A response with these results, each with its topic id."""
        topics = _by_topic(results)
        return self._answer([self._answer_topic(*topic) for topic in topics.items()])

    def failed(self, partition: int, error: ErrorCode, message: str) -> Result:
        """The result of a refused row."""
        return self.result(partition, int(error), message)

    def unable(self, partition: int, error: ErrorCode, reason: str) -> Result:
        """The result of a row that the coordinator could not handle."""
        return self.failed(partition, error, f"Unable to {self.title}: {reason}")

    def refusal(self, request: Q, error: ErrorCode, message: str) -> A:
        """The response with the same error in every row."""
        return self.response(
            (topic_id, self.failed(row.partition, error, message))
            for topic_id, row in each_row(request)
        )


class StateSender(Protocol):
    """The interface of a broker's persister (see `share.persister`)."""

    def send(
        self, operation: StateOperation[Q, A], request: Q, then: Callable[[A], None], /
    ) -> None:
        """Send a request; `then` is called once with the response, perhaps at once."""


T = TypeVar("T")


def _by_topic(rows: Iterable[tuple[bytes, T]]) -> dict[bytes, list[T]]:
    topics: dict[bytes, list[T]] = {}
    for topic_id, row in rows:
        topics.setdefault(topic_id, []).append(row)
    return topics


def each_row(request: StateRequest) -> Iterator[tuple[bytes, Row]]:
    """The rows of a request, each with its topic id."""
    for topic in request.topics:
        for row in topic.partitions:
            yield topic.topic_id, row


def each_result(response: StateResponse) -> Iterator[tuple[bytes, Result]]:
    """The results of a response, each with its topic id."""
    for topic in response.results:
        for result in topic.partitions:
            yield topic.topic_id, result


def _operation(api: ApiKey, module: Any, name: str, event: str = "") -> StateOperation[Any, Any]:
    """An operation by the name that its structs have; without `event` it is that of the API."""
    words = api.name.lower().split("_")
    message = "".join(map(str.capitalize, words))
    return StateOperation(
        api,
        " ".join(words),
        event or "-".join(words),
        re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower(),
        (getattr(module, f"{message}Request"), getattr(module, f"{name}Data")),
        (
            getattr(module, f"{message}Response"),
            getattr(module, f"{name}Result"),
            module.PartitionResult,
        ),
    )


INITIALIZE: StateOperation[
    initializing.InitializeShareGroupStateRequest, initializing.InitializeShareGroupStateResponse
] = _operation(ApiKey.INITIALIZE_SHARE_GROUP_STATE, initializing, "InitializeState")
READ: StateOperation[reading.ReadShareGroupStateRequest, reading.ReadShareGroupStateResponse] = (
    _operation(
        ApiKey.READ_SHARE_GROUP_STATE, reading, "ReadState", "read-update-leader-epoch-state"
    )
)
WRITE: StateOperation[writing.WriteShareGroupStateRequest, writing.WriteShareGroupStateResponse] = (
    _operation(ApiKey.WRITE_SHARE_GROUP_STATE, writing, "WriteState")
)
DELETE: StateOperation[
    deleting.DeleteShareGroupStateRequest, deleting.DeleteShareGroupStateResponse
] = _operation(ApiKey.DELETE_SHARE_GROUP_STATE, deleting, "DeleteState")
READ_SUMMARY: StateOperation[
    summing.ReadShareGroupStateSummaryRequest, summing.ReadShareGroupStateSummaryResponse
] = _operation(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, summing, "ReadStateSummary")

OPERATIONS: tuple[StateOperation[Any, Any], ...] = (INITIALIZE, READ, WRITE, DELETE, READ_SUMMARY)
