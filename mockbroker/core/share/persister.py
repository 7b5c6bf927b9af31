"""The persister of one broker: it brings the state of share partitions to their coordinators.

A request has any number of share partitions. The persister splits it, finds the coordinator of each
share partition, sends one request for all that go to one broker, and joins the answers. While a
request of an API is in flight to a broker, the next ones to it wait, and are sent as one for each
group. Between brokers a request is a hop on the network; a call stands for it where it can.

An error that a later attempt may not have is retried, for each share partition on its own:
after 2, 4, 8 and 16 seconds. (Kafka adds up to 20 % of jitter.) The error of the fifth attempt is
final. Meanwhile later requests about the share partition are sent, and so they are to the present
coordinator while a former one has not answered. An earlier write may follow a later one, and the
coordinator then has the older start offset again, as Kafka's.

Source: DefaultStatePersister, PersisterStateManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from mockbroker.core.brokers.broker_life import PAUSED
from mockbroker.core.brokers.host import HostBroker
from mockbroker.core.errors import ApiError
from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker.core.metadata.topic import SHARE_GROUP_STATE_TOPIC
from mockbroker.core.replication.network import Hop
from mockbroker.core.share.coordinator import coordinator_key
from mockbroker.core.share.operations import (
    INITIALIZE,
    OPERATIONS,
    WRITE,
    A,
    Q,
    StateOperation,
    each_result,
    each_row,
)
from mockbroker.core.share.records import SharePartitionKey
from mockbroker.core.timing.timers import DueTimers
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.errors import ERROR_CODES

if TYPE_CHECKING:
    from mockbroker.core.share.coordinator import ShareCoordinator
    from mockbroker.core.share.operations import Result, Row, StateRequest, StateResponse
    from mockbroker_protocol.messages.write_share_group_state import PartitionData as WrittenData

ATTEMPTS_MAX = 5
BACKOFF_MS = 1_000
REQUEST_TIMEOUT_MS = 30_000
ATTEMPTS_PER_FLIGHT = 500

RETRIED = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
    )
)
_NO_MESSAGE = ""


class PersisterHost(HostBroker, Protocol):
    """The broker of a persister, and the coordinator that it may be itself."""

    @property
    def has_newest_image(self) -> bool: ...
    @property
    def share_coordinator(self) -> ShareCoordinator: ...


class SharePersister:
    """The requests of one broker to share coordinators.

    A request has any number of topics and partitions. `then` is called once with the response,
    perhaps before `send` returns, unless the broker's process ends.
    """

    __slots__ = (
        "_brokers",
        "_busy",
        "_flights",
        "_host",
        "_repeated",
        "_services",
        "_timers",
        "_waiting",
    )

    def __init__(self, host: PersisterHost, brokers: Mapping[int, PersisterHost]) -> None:
        """`brokers` are those that can be coordinators, by node id."""
        self._host = host
        self._services = host.services
        self._brokers = brokers
        self._timers: DueTimers[_Attempt | _Flight] = DueTimers(lambda: host.state == PAUSED)
        self._flights: dict[_Flight, None] = {}
        self._repeated: dict[_Attempt, None] = {}  # those that have failed and are not over
        # The APIs and brokers of which a request is in flight, and the attempts that wait for it.
        self._busy: set[tuple[ApiKey, int]] = set()
        self._waiting: dict[tuple[ApiKey, int], list[_Attempt]] = {}

    def repeated_writes(self) -> Iterator[tuple[SharePartitionKey, int]]:
        """The share partition and the start offset of each write that has failed and is repeated
        until it has a result. A later write may be stored before it.
        """
        return ((key, row.start_offset) for key, row in _rows(self._repeated, WRITE))

    def writes(self) -> Iterator[tuple[SharePartitionKey, WrittenData]]:
        """The share partition and the row of each write that has no result yet."""
        return _rows(self._unfinished(), WRITE)

    def initializations(self) -> Iterator[tuple[SharePartitionKey, int]]:
        """The share partition and the state epoch of each InitializeShareGroupState that has no
        result yet.
        """
        return ((key, row.state_epoch) for key, row in _rows(self._unfinished(), INITIALIZE))

    def _unfinished(self) -> Iterator[_Attempt]:
        """Each attempt without a result, once."""
        flying = (attempt for flight in self._flights for attempt in flight.attempts)
        return iter(dict.fromkeys(chain(self._repeated, flying, *self._waiting.values())))

    # ------------------------------------------------------------------------------------ process

    def resume(self) -> None:
        """Resume the broker: run the timers that fell due while it was paused."""
        self._timers.resume()

    def fail_all(self) -> None:
        """Fail all requests, because a restore replaces the cluster that they are about."""
        attempts = list(self._unfinished())
        self.unload()
        for attempt in attempts:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            attempt.fail(error, f"Error in {attempt.operation.rpc} RPC. {error.message}")

    def unload(self) -> None:
        """Drop all requests, because the broker's process ends."""
        self._timers.clear()
        self._flights.clear()
        self._repeated.clear()
        self._busy.clear()
        self._waiting.clear()

    # ------------------------------------------------------------------------------------ attempts

    def send(self, operation: StateOperation[Q, A], request: Q, then: Callable[[A], None]) -> None:
        """Send a request to the coordinators of its share partitions."""
        call = _Call(operation, request, then)
        if not call.attempts:
            then(operation.response(()))
        self._send_all(operation, call.attempts)

    def _send_all(self, operation: StateOperation[Any, Any], attempts: Sequence[_Attempt]) -> None:
        """Send the attempts of one call or one retry, those to one broker together."""
        routes: dict[int, list[_Attempt]] = {}
        for attempt in attempts:
            node_id = self._find_coordinator(attempt)
            if node_id is not None:
                routes.setdefault(node_id, []).append(attempt)
        for node_id, routed in routes.items():
            self._waiting.setdefault((operation.api, node_id), []).extend(routed)
            self._flush(operation, node_id)

    def _find_coordinator(self, attempt: _Attempt) -> int | None:
        """The coordinator's node id; after None the attempt is retried, or has failed.

        Before the topic exists, Kafka sends a FindCoordinator to a random broker, which creates it.
        Here the broker creates it itself.
        """
        host, image = self._host, self._host.image
        topic = image.topics.get(SHARE_GROUP_STATE_TOPIC)
        if topic is None and host.has_newest_image:
            try:
                topic = self._services.ensure_internal_topic(SHARE_GROUP_STATE_TOPIC)
            except ApiError:
                topic = None  # too few brokers for the replication factor
        if topic is not None:
            index = coordinator_partition(attempt.coordinator_key, len(topic.partitions))
            leader = image.brokers.get(topic.partitions[index].leader_id)
            if leader is not None and not leader.fenced and leader.node_id in self._brokers:
                attempt.lookups = 0
                return leader.node_id
        attempt.lookups += 1
        if attempt.lookups < ATTEMPTS_MAX:
            self._retry(attempt, attempt.lookups)
        else:
            self._repeated.pop(attempt, None)
            attempt.fail(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                "Error in find coordinator. "
                "Exhausted max retries to find coordinator without success.",
            )
        return None

    def _retry(self, attempt: _Attempt, failures: int) -> None:
        self._repeated[attempt] = None
        due_ms = self._services.runtime.now_ms() + (BACKOFF_MS << failures)
        self._timers.arm(self._services.runtime.timers, attempt, due_ms, self._send_again)

    def _send_again(self, attempt: _Attempt | _Flight) -> None:
        assert isinstance(attempt, _Attempt)
        self._send_all(attempt.operation, (attempt,))

    # ------------------------------------------------------------------------------------- flights

    def _flush(self, operation: StateOperation[Any, Any], node_id: int) -> None:
        """Send what waits for a broker, one request for each group, unless one is in flight.

        Of very many share partitions, it sends the first ones.
        """
        route = operation.api, node_id
        if route in self._busy:
            return
        waiting = self._waiting.pop(route, [])
        if len(waiting) > ATTEMPTS_PER_FLIGHT:
            self._waiting[route] = waiting[ATTEMPTS_PER_FLIGHT:]
            del waiting[ATTEMPTS_PER_FLIGHT:]
        groups: dict[str, list[_Attempt]] = {}
        for attempt in waiting:
            groups.setdefault(attempt.group_id, []).append(attempt)
        flights = [_Flight(operation, node_id, attempts) for attempts in groups.values()]
        if flights:
            self._busy.add(route)
        self._flights.update(dict.fromkeys(flights))
        for flight in flights:
            self._depart(flight)

    def _depart(self, flight: _Flight) -> None:
        network, sender, receiver = self._services.network, self._host.node_id, flight.node_id
        api = flight.operation.api
        running = self._services.metadata.is_running(receiver)
        if running and network.is_direct(sender, receiver, api):
            coordinator = self._brokers[receiver].share_coordinator
            coordinator.handle(flight.operation, flight.request, partial(self.landed, flight))
            return
        due_ms = self._services.runtime.now_ms() + REQUEST_TIMEOUT_MS
        self._timers.arm(self._services.runtime.timers, flight, due_ms, self._time_out)
        network.send(_HOPS[api](self, flight, sender))

    def _time_out(self, flight: _Attempt | _Flight) -> None:
        assert isinstance(flight, _Flight)
        self.disconnected(flight)

    def arrived(self, hop: StateHop) -> None:
        """Handle a hop on its receiver."""
        flight = hop.flight
        coordinator = self._brokers[hop.receiver].share_coordinator
        answer = partial(self._services.network.answer, hop)
        coordinator.handle(flight.operation, flight.request, answer)

    def disconnected(self, flight: _Flight) -> None:
        """Fail all attempts of a flight that is not answered."""
        error = ErrorCode.NETWORK_EXCEPTION
        self.landed(flight, flight.operation.refusal(flight.request, error, _NO_MESSAGE))

    def landed(self, flight: _Flight, response: StateResponse) -> None:
        """Complete, retry or fail each attempt of a flight. A second response has no effect."""
        if flight not in self._flights:
            return
        self._timers.cancel(flight)
        del self._flights[flight]
        self._busy.discard((flight.operation.api, flight.node_id))
        results = {
            (topic_id, result.partition): result for topic_id, result in each_result(response)
        }
        for attempt in flight.attempts:
            self._finish(attempt, results.get((attempt.topic_id, attempt.row.partition)))
        flush = partial(self._flush, flight.operation, flight.node_id)
        if len(self._waiting.get((flight.operation.api, flight.node_id), ())) < ATTEMPTS_PER_FLIGHT:
            flush()
        else:
            self._services.runtime.timers.call_soon(flush)  # others are served between two flights

    def _finish(self, attempt: _Attempt, result: Result | None) -> None:
        rpc = attempt.operation.rpc
        prefix = f"Error in {rpc} RPC. "
        attempt.failures += 1
        self._repeated.pop(attempt, None)
        if result is None:
            failed = f"Failed to {rpc} for share partition"
            attempt.fail(ErrorCode.UNKNOWN_SERVER_ERROR, prefix + failed)
            return
        error = ERROR_CODES[result.error_code]
        if error is ErrorCode.NONE:
            attempt.complete(result)
        elif error not in RETRIED:
            attempt.fail(error, prefix + (result.error_message or error.message))
        elif attempt.failures < ATTEMPTS_MAX:
            self._retry(attempt, attempt.failures)
        else:
            exhausted = f"Exhausted max retries to complete {rpc} RPC without success."
            attempt.fail(error, prefix + exhausted)


class _Call:
    """A request of this broker, until all its share partitions have their results."""

    __slots__ = ("_missing", "_operation", "_results", "_then", "attempts")

    def __init__(
        self,
        operation: StateOperation[Any, Any],
        request: StateRequest,
        then: Callable[[Any], None],
    ) -> None:
        self._operation = operation
        self._then = then
        self.attempts = [
            _Attempt(self, number, operation, request.group_id, topic_id, row)
            for number, (topic_id, row) in enumerate(each_row(request))
        ]
        self._missing = len(self.attempts)
        self._results: list[tuple[bytes, Result] | None] = [None] * self._missing

    def complete(self, number: int, topic_id: bytes, result: Result) -> None:
        self._results[number] = topic_id, result
        self._missing -= 1
        if not self._missing:
            results = [each for each in self._results if each is not None]
            self._then(self._operation.response(results))


class _Attempt:
    """One share partition of a request (PersisterStateManagerHandler).

    `lookups` and `failures` count the attempts that failed.
    """

    __slots__ = (
        "_call",
        "_number",
        "coordinator_key",
        "failures",
        "group_id",
        "lookups",
        "operation",
        "row",
        "topic_id",
    )

    def __init__(
        self,
        call: _Call,
        number: int,
        operation: StateOperation[Any, Any],
        group_id: str,
        topic_id: bytes,
        row: Row,
    ) -> None:
        self._call = call
        self._number = number
        self.operation = operation
        self.group_id = group_id
        self.topic_id = topic_id
        self.row = row
        self.coordinator_key = coordinator_key(group_id, topic_id, row.partition)
        self.lookups = self.failures = 0

    def complete(self, result: Result) -> None:
        """Pass the result to the caller."""
        self._call.complete(self._number, self.topic_id, result)

    def fail(self, error: ErrorCode, message: str) -> None:
        """Pass a final error to the caller."""
        self.complete(self.operation.failed(self.row.partition, error, message))


def _rows(
    attempts: Iterable[_Attempt], operation: StateOperation[Any, Any]
) -> Iterator[tuple[SharePartitionKey, Any]]:
    """The share partition and the row of each attempt of an operation."""
    for attempt in attempts:
        if attempt.operation is operation:
            row = attempt.row
            yield SharePartitionKey(attempt.group_id, attempt.topic_id, row.partition), row


class _Flight:
    """A request on its way to one coordinator, for the attempts of one group."""

    __slots__ = ("attempts", "node_id", "operation", "request")

    def __init__(
        self, operation: StateOperation[Any, Any], node_id: int, attempts: Sequence[_Attempt]
    ) -> None:
        self.operation = operation
        self.node_id = node_id
        self.attempts = attempts
        rows = [(attempt.topic_id, attempt.row) for attempt in attempts]
        self.request: Any = operation.request(attempts[0].group_id, rows)


class StateHop(Hop):
    """A request of a persister on the network; its answer is the response."""

    __slots__ = ("_persister", "flight")

    def __init__(self, persister: SharePersister, flight: _Flight, sender: int) -> None:
        super().__init__(sender, flight.node_id)
        self._persister = persister
        self.flight = flight

    def handle_request(self) -> None:
        self._persister.arrived(self)

    def handle_answer(self, answer: StateResponse) -> None:
        self._persister.landed(self.flight, answer)

    def lost(self) -> None:
        """The persister sends it again after REQUEST_TIMEOUT_MS."""

    def disconnected(self) -> None:
        self._persister.disconnected(self.flight)

    def error_answer(self, error: ErrorCode) -> StateResponse:
        response: StateResponse = self.flight.operation.refusal(
            self.flight.request, error, error.message
        )
        return response

    def request(self) -> Any:
        return self.flight.request

    def response(self, answer: StateResponse) -> Any:
        return answer


# A class of hops for each API.
_HOPS: dict[ApiKey, type[StateHop]] = {
    operation.api: type(f"{operation.api.name}_HOP", (StateHop,), {"API": operation.api})
    for operation in OPERATIONS
}
