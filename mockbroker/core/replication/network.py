"""The network between the brokers, and what travels on it: Kafka's requests and their answers.

A *link* leads from one broker to another, one way. It can be cut, so that what is sent over it is
lost, also what is on its way; and it can be slow. Even the fastest message arrives later than it
was sent: it is handed over by a timer, never within the sender's call.

A broker takes part only while its process runs. A paused one sends nothing, and what arrives there
waits until it is resumed. A message belongs to a connection between two processes: once one of them
has ended, the message is lost, even if the broker was started again.

A *hop* is one request of a broker to another, with its answer. Each kind of hop has an API of
Kafka's. Its request and its answer are made into Kafka's structs only for an
*interceptor*, which is there while rules for hops are in force, or while the journal records hops.
Brokers that reach each other at once, without an interceptor, need no hops (`is_direct`): followers
share the log of their leader, and requests are calls.

Clients are not on this network. A broker gets metadata from the controller as long as both links
between the two are up, see `controller`.
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

    An *answer* is whatever the kind of hop gives back; only `response` makes it Kafka's.
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
        """The transactional id that the hop is about, "" for none."""
        return ""

    def request(self) -> msgspec.Struct:
        """The request as Kafka's struct."""
        raise NotImplementedError

    def response(self, answer: Any) -> msgspec.Struct:
        """An answer as Kafka's struct."""
        raise NotImplementedError

    def refused(self, error: ErrorCode) -> Any:
        """The answer that says `error` of all that the request is about."""
        raise NotImplementedError

    def arrive(self) -> None:
        """The request is with its receiver, which answers it now, later, or never."""
        raise NotImplementedError

    def take(self, answer: Any) -> None:
        """The answer is with the sender."""
        raise NotImplementedError

    def lost(self) -> None:
        """The request or its answer does not arrive.

        A real sender would not learn of the loss. Here the sender sets the timer by which it gives
        up waiting, which most requests then do without.
        """

    def unreached(self) -> None:
        """The connection breaks, which the sender may notice: the link to the receiver is cut, or
        the receiver's process has ended.
        """
        self.lost()


class NetworkProcess(Protocol):
    """A broker's process: `epoch` differs for each, `state` is one of `broker_life`."""

    @property
    def node_id(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def state(self) -> str: ...


class InterceptedHop(Protocol):
    """One hop in the hands of an interceptor."""

    def answered(self, answer: Any, late_ms: int) -> None:
        """The receiver answers, `late_ms` later than it could."""


class Interceptor(Protocol):
    """Gets every hop, and decides what becomes of it."""

    def intercepts(
        self, api: ApiKey, sender: int, receiver: int, partition: Partition | None = None
    ) -> bool:
        """Whether it wants hops of this API, about this partition, to be sent."""
        ...

    def on_send(self, hop: Hop) -> None:
        """A hop is sent."""


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
        # What waits for a paused broker, by its node id.
        self._waiting: dict[int, list[Callable[[], None]]] = {}
        self._down: set[Link] = set()
        self._delays: dict[Link, int] = {}
        self._generation = 0  # of all connections; a hop of an earlier one is lost
        self.interceptor: Interceptor | None = None

    # -- links -------------------------------------------------------------------------------------

    def is_up(self, sender: int, receiver: int) -> bool:
        return (sender, receiver) not in self._down

    @property
    def is_quiet(self) -> bool:
        """Whether every link is up and takes no time, without an interceptor or a paused broker."""
        return not (self._down or self._delays or self._paused) and self.interceptor is None

    def is_direct(
        self, sender: int, receiver: int, api: ApiKey, partition: Partition | None = None
    ) -> bool:
        """Whether a request and its answer take no time: neither broker is paused, and no
        interceptor wants them.

        A broker reaches itself without delay.
        """
        if self.is_quiet:
            return True
        if sender in self._paused or receiver in self._paused:
            return False
        links = ((sender, receiver), (receiver, sender))
        if sender != receiver and any(x in self._down or x in self._delays for x in links):
            return False
        return self.interceptor is None or not self.interceptor.intercepts(
            api, sender, receiver, partition
        )

    def cut(self, links: Iterable[Link]) -> None:
        """Lose everything on these links from now on, also what is on its way."""
        self._down.update(links)

    def heal(self, links: Iterable[Link] | None = None) -> None:
        """Bring these links up again, or all of them, without the delay they had."""
        if links is None:
            self._down.clear()
            self._delays.clear()
            return
        for link in links:
            self._down.discard(link)
            self._delays.pop(link, None)

    def reset(self) -> None:
        """Restore all links and break all connections: every hop that was sent before is lost, also
        one that an interceptor has or that waits for a paused broker. The interceptor stays.
        """
        self.heal()
        self._generation += 1
        for node_id in list(self._waiting):
            self._wake(node_id)

    def delay(self, links: Iterable[Link], by_ms: int) -> None:
        """Let every message of these links take `by_ms`."""
        for link in links:
            if by_ms > 0:
                self._delays[link] = by_ms
            else:
                self._delays.pop(link, None)

    @property
    def cut_links(self) -> frozenset[Link]:
        return frozenset(self._down)

    def groups(self, node_ids: Iterable[int]) -> list[set[int]]:
        """The brokers in groups that reach each other, directly or over others."""
        rest = set(node_ids)
        groups = []
        while rest:
            group: set[int] = set()
            found = {min(rest)}
            while found:
                rest -= found
                group |= found
                found = {
                    other
                    for node_id in found
                    for other in rest
                    if self.is_up(node_id, other) and self.is_up(other, node_id)
                }
            groups.append(group)
        return groups

    # -- processes ---------------------------------------------------------------------------------

    def broker_changed(self, broker: NetworkProcess) -> None:
        """The process of a broker was paused; or it was resumed or has ended, and what waited for
        it goes on.
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

    def _epoch(self, node_id: int) -> int | None:
        process = self._processes.get(node_id)
        return None if process is None else process.epoch

    # -- hops --------------------------------------------------------------------------------------

    def send(self, hop: Hop) -> None:
        """Send a request."""
        hop.generation = self._generation
        hop.sender_epoch = self._epoch(hop.sender)
        self._when_running(hop, hop.sender, hop.sender_epoch, partial(self._send, hop), hop.lost)

    def _send(self, hop: Hop) -> None:
        hop.receiver_epoch = self._epoch(hop.receiver)
        if self.interceptor is None:
            self.carry_request(hop, hop.arrive, hop.unreached)
        else:
            self.interceptor.on_send(hop)

    def answer(self, hop: Hop, answer: Any, late_ms: int = 0) -> None:
        """Send the answer to a hop back, `late_ms` later than the link would have it.

        A broker that sent the request to itself has the answer at once.
        """
        send = partial(self._answer, hop, answer, late_ms)
        self._when_running(hop, hop.receiver, hop.receiver_epoch, send, hop.unreached)

    def _answer(self, hop: Hop, answer: Any, late_ms: int) -> None:
        if hop.intercepted is not None:
            hop.intercepted.answered(answer, late_ms)
        elif hop.sender == hop.receiver:
            hop.take(answer)
        else:
            self.carry_answer(hop, partial(hop.take, answer), hop.lost, late_ms)

    def carry_request(
        self,
        hop: Hop,
        deliver: Callable[[], None],
        lost: Callable[[], None],
        delay_ms: int = 0,
    ) -> None:
        """Call `deliver` when the request arrives at its receiver, or `lost` if it does not."""
        receiver, epoch = hop.receiver, hop.receiver_epoch
        arrive = partial(self._when_running, hop, receiver, epoch, deliver, lost)
        self._carry((hop.sender, receiver), arrive, lost, delay_ms)

    def carry_answer(
        self,
        hop: Hop,
        deliver: Callable[[], None],
        lost: Callable[[], None],
        delay_ms: int = 0,
    ) -> None:
        """Call `deliver` when the answer arrives at the sender, or `lost` if it does not."""
        sender, epoch = hop.sender, hop.sender_epoch
        arrive = partial(self._when_running, hop, sender, epoch, deliver, lost)
        self._carry((hop.receiver, sender), arrive, lost, delay_ms)

    def _carry(
        self, link: Link, arrive: Callable[[], None], lost: Callable[[], None], delay_ms: int
    ) -> None:
        if link in self._down:
            lost()
        else:
            due_ms = self._now_ms() + self._delays.get(link, 0) + delay_ms
            self._timers.call_at(due_ms, partial(self._arrive, link, arrive, lost))

    def _arrive(self, link: Link, arrive: Callable[[], None], lost: Callable[[], None]) -> None:
        if link not in self._down:
            arrive()
        else:
            lost()


def links_between(
    left: Iterable[int], right: Iterable[int], *, both_ways: bool
) -> set[tuple[int, int]]:
    """The links from each broker on one side to each on the other."""
    left, right = set(left), set(right)
    links = {(a, b) for a in left for b in right if a != b}
    return links | {(b, a) for a, b in links} if both_ways else links
