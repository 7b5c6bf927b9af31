"""The network between the brokers: Kafka's requests and responses travel over it.

A *link* leads from one broker to another, one way. A cut link loses every message, also those in
flight; a slow link delays it. Even on the fastest link a message arrives later than it was sent: a
timer delivers it, never the sender's call.

A broker takes part only while its process runs. A paused broker sends nothing, and messages to it
wait until it is resumed. A message belongs to a connection between two processes. When one of them
ends, the message is lost, even if the broker starts again.

A *hop* is one request of a broker to another, with its answer. Each kind of hop has an API of
Kafka's. Its request and answer become Kafka's structs only for an *interceptor*, which exists while
rules for hops are in force or the journal records hops. Brokers that reach each other without delay
and without an interceptor need no hops (`is_direct`): followers share the log of their leader, and
requests are calls.

Clients are not on this network. A broker gets metadata from the controller while both links between
the two are up, see `controller`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from mockbroker.core.brokers.broker_life import PAUSED, RUNNING

if TYPE_CHECKING:
    import msgspec

    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.timing.timers import TimerHeap
    from mockbroker_protocol import ApiKey, ErrorCode

Link = tuple[int, int]


class Hop:
    """A request of the broker `sender` to the broker `receiver`, and its answer.

    The type of *answer* depends on the kind of hop; `response` converts it to Kafka's struct.
    """

    __slots__ = (
        "generation",
        "intercepted",
        "receiver",
        "receiver_epoch",
        "sender",
        "sender_epoch",
        "version",
    )

    API: ClassVar[ApiKey]

    def __init__(self, sender: int, receiver: int) -> None:
        self.sender = sender
        self.receiver = receiver
        self.intercepted: InterceptedHop | None = None  # set by the interceptor
        self.version = 0  # of the API, for `request` and `response`
        self.generation = 0  # of the network's connections
        # The broker epochs of the two processes when the request is sent; None without a process.
        self.sender_epoch: int | None = None
        self.receiver_epoch: int | None = None

    @property
    def transactional_id(self) -> str:
        """The transactional id of the request; "" without one."""
        return ""

    def request(self) -> msgspec.Struct:
        """The request as Kafka's struct."""
        raise NotImplementedError

    def response(self, answer: Any) -> msgspec.Struct:
        """An answer as Kafka's struct."""
        raise NotImplementedError

    def error_answer(self, error: ErrorCode) -> Any:
        """The answer with `error` for everything in the request; by default the error itself."""
        return error

    def handle_request(self) -> None:
        """Handle the request on the receiver, which answers now, later, or never."""
        raise NotImplementedError

    def handle_answer(self, answer: Any) -> None:
        """Handle the answer on the sender."""
        raise NotImplementedError

    def lost(self) -> None:
        """The request or its answer is lost.

        A real sender would not notice. Here the sender sets its request timeout now, which most
        requests then do without.
        """

    def disconnected(self) -> None:
        """The connection breaks: the link to the receiver is cut, or its process has ended."""
        self.lost()


class NetworkProcess(Protocol):
    """A broker's process: each has another `epoch`; `state` is one of `broker_life`."""

    @property
    def node_id(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def state(self) -> str: ...


class InterceptedHop(Protocol):
    """A hop that an interceptor handles."""

    def answered(self, answer: Any, late_ms: int) -> None:
        """The receiver answers, with an extra delay of `late_ms`."""


class Interceptor(Protocol):
    """Handles every hop instead of the network."""

    def intercepts(
        self, api: ApiKey, sender: int, receiver: int, partition: Partition | None = None
    ) -> bool:
        """Whether hops of this API, about this partition, must be sent as messages."""
        ...

    def on_send(self, hop: Hop) -> None:
        """Handle a hop that was sent."""


class Network:
    """The links between all brokers; by default they are up and take no time."""

    __slots__ = (
        "_delays",
        "_down",
        "_generation",
        "_now_ms",
        "_paused",
        "_processes",
        "_timers",
        "_waiting",
        "interceptor",
    )

    def __init__(
        self,
        timers: TimerHeap,
        now_ms: Callable[[], int],
        processes: Mapping[int, NetworkProcess],
    ) -> None:
        """`processes` are the brokers' processes by node id."""
        self._timers = timers
        self._now_ms = now_ms
        self._processes = processes
        self._paused: set[int] = set()
        # Callbacks that wait for a paused broker, by its node id.
        self._waiting: dict[int, list[Callable[[], None]]] = {}
        self._down: set[Link] = set()
        self._delays: dict[Link, int] = {}
        self._generation = 0  # of all connections; hops of an earlier one are lost
        self.interceptor: Interceptor | None = None

    # -- links -------------------------------------------------------------------------------------

    def is_up(self, sender: int, receiver: int) -> bool:
        return (sender, receiver) not in self._down

    def reaches(self, node_id: int, other: int) -> bool:
        """Whether the links between two brokers are up both ways."""
        down = self._down
        return not down or ((node_id, other) not in down and (other, node_id) not in down)

    @property
    def is_quiet(self) -> bool:
        """Whether every link is up and fast, no broker is paused, and there is no interceptor."""
        return not (self._down or self._delays or self._paused) and self.interceptor is None

    def is_direct(
        self, sender: int, receiver: int, api: ApiKey, partition: Partition | None = None
    ) -> bool:
        """Whether a call can stand for a request and its answer: neither broker is paused, and no
        interceptor wants the hop.

        A broker reaches itself without delay.
        """
        if self.is_quiet:
            return True
        if sender in self._paused or receiver in self._paused:
            return False
        if sender != receiver:
            there, back = (sender, receiver), (receiver, sender)
            down, delays = self._down, self._delays
            if there in down or back in down or there in delays or back in delays:
                return False
        return self.interceptor is None or not self.interceptor.intercepts(
            api, sender, receiver, partition
        )

    def cut(self, links: Iterable[Link]) -> None:
        """Lose every message on these links from now on, also those in flight."""
        self._down.update(links)

    def heal(self, links: Iterable[Link] | None = None) -> None:
        """Restore these links, or all of them, and remove their delays."""
        if links is None:
            self._down.clear()
            self._delays.clear()
            return
        for link in links:
            self._down.discard(link)
            self._delays.pop(link, None)

    def is_impaired(self, node_id: int) -> bool:
        """Whether a link of this broker is cut or slow."""
        return any(node_id in link for link in (*self._down, *self._delays))

    def reset(self) -> None:
        """Restore all links and break all connections: every hop in flight is lost, also those that
        an interceptor holds or that wait for a paused broker. The interceptor stays.
        """
        self.heal()
        self._generation += 1
        for node_id in list(self._waiting):
            self._wake(node_id)

    def delay(self, links: Iterable[Link], by_ms: int) -> None:
        """Delay every message on these links by `by_ms`."""
        for link in links:
            if by_ms > 0:
                self._delays[link] = by_ms
            else:
                self._delays.pop(link, None)

    def delay_ms(self, sender: int, receiver: int) -> int:
        """The delay of each message on a link."""
        return self._delays.get((sender, receiver), 0)

    @property
    def cut_links(self) -> frozenset[Link]:
        return frozenset(self._down)

    def groups(self, node_ids: Iterable[int]) -> list[set[int]]:
        """The brokers in groups that reach each other, directly or through others."""
        rest = set(node_ids)
        groups = []
        while rest:
            group: set[int] = set()
            found = {min(rest)}
            while found:
                rest -= found
                group |= found
                found = {
                    other for node_id in found for other in rest if self.reaches(node_id, other)
                }
            groups.append(group)
        return groups

    # -- processes ---------------------------------------------------------------------------------

    def broker_changed(self, broker: NetworkProcess) -> None:
        """The process of a broker was paused, resumed or ended. Unless it is paused, waiting
        messages continue.
        """
        if broker.state == PAUSED:
            self._paused.add(broker.node_id)
        else:
            self._paused.discard(broker.node_id)
            self._wake(broker.node_id)

    def _wake(self, node_id: int) -> None:
        for each in self._waiting.pop(node_id, ()):
            self._timers.call_at(self._now_ms(), each)

    def _when_running(
        self,
        hop: Hop,
        node_id: int,
        epoch: int | None,
        call: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        """Call `call` as soon as the process with this broker epoch runs, or `ended` if the process
        or the connection has ended.
        """
        process = self._processes.get(node_id)
        if (
            process is None
            or process.epoch != epoch
            or process.state not in (RUNNING, PAUSED)
            or hop.generation != self._generation
        ):
            ended()
        elif process.state == RUNNING:
            call()
        else:
            again = partial(self._when_running, hop, node_id, epoch, call, ended)
            self._waiting.setdefault(node_id, []).append(again)

    def _runs(self, hop: Hop, node_id: int, epoch: int | None) -> bool:
        """Whether the process with this broker epoch runs, and the connection still exists."""
        process = self._processes.get(node_id)
        return (
            process is not None
            and process.state == RUNNING
            and process.epoch == epoch
            and hop.generation == self._generation
        )

    def _epoch(self, node_id: int) -> int | None:
        process = self._processes.get(node_id)
        return None if process is None else process.epoch

    # -- hops --------------------------------------------------------------------------------------

    def send(self, hop: Hop) -> None:
        """Send a request."""
        hop.generation = self._generation
        hop.sender_epoch = epoch = self._epoch(hop.sender)
        if self._runs(hop, hop.sender, epoch):
            self._send(hop)
        else:
            self._when_running(hop, hop.sender, epoch, partial(self._send, hop), hop.lost)

    def _send(self, hop: Hop) -> None:
        hop.receiver_epoch = self._epoch(hop.receiver)
        if self.interceptor is None:
            self.carry_request(hop, hop.handle_request, hop.disconnected)
        else:
            self.interceptor.on_send(hop)

    def answer(self, hop: Hop, answer: Any, late_ms: int = 0) -> None:
        """Send the answer to a hop, with an extra delay of `late_ms`.

        A broker's answer to itself arrives at once.
        """
        receiver, epoch = hop.receiver, hop.receiver_epoch
        if self._runs(hop, receiver, epoch):
            self._answer(hop, answer, late_ms)
        else:
            send = partial(self._answer, hop, answer, late_ms)
            self._when_running(hop, receiver, epoch, send, hop.disconnected)

    def _answer(self, hop: Hop, answer: Any, late_ms: int) -> None:
        if hop.intercepted is not None:
            hop.intercepted.answered(answer, late_ms)
        elif hop.sender == hop.receiver:
            hop.handle_answer(answer)
        else:
            self.carry_answer(hop, partial(hop.handle_answer, answer), hop.lost, late_ms)

    def carry_request(
        self,
        hop: Hop,
        deliver: Callable[[], None],
        lost: Callable[[], None],
        delay_ms: int = 0,
    ) -> None:
        """Call `deliver` when the request arrives at its receiver, or `lost` if it is lost."""
        link = (hop.sender, hop.receiver)
        self._carry(link, hop, hop.receiver_epoch, deliver, lost, delay_ms)

    def carry_answer(
        self,
        hop: Hop,
        deliver: Callable[[], None],
        lost: Callable[[], None],
        delay_ms: int = 0,
    ) -> None:
        """Call `deliver` when the answer arrives at the sender, or `lost` if it is lost."""
        link = (hop.receiver, hop.sender)
        self._carry(link, hop, hop.sender_epoch, deliver, lost, delay_ms)

    def _carry(
        self,
        link: Link,
        hop: Hop,
        epoch: int | None,
        deliver: Callable[[], None],
        lost: Callable[[], None],
        delay_ms: int,
    ) -> None:
        """Carry a message to the process with this broker epoch at the end of a link."""
        if link in self._down:
            lost()
        else:
            due_ms = self._now_ms() + self._delays.get(link, 0) + delay_ms
            self._timers.call_at(due_ms, partial(self._arrive, link, hop, epoch, deliver, lost))

    def _arrive(
        self,
        link: Link,
        hop: Hop,
        epoch: int | None,
        deliver: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        if link in self._down:
            lost()
        elif self._runs(hop, link[1], epoch):
            deliver()
        else:
            self._when_running(hop, link[1], epoch, deliver, lost)


def links_between(
    left: Iterable[int], right: Iterable[int], *, both_ways: bool
) -> set[tuple[int, int]]:
    """The links from each broker on one side to each on the other."""
    left, right = set(left), set(right)
    links = {(a, b) for a in left for b in right if a != b}
    return links | {(b, a) for a, b in links} if both_ways else links
