"""The network between the brokers: every hop of replication is a message through here.

A *link* leads from one broker to another, one way. It can be cut, so that what is sent over it is
lost, also what is on its way; and it can be slow. Even the fastest message arrives later than it
was sent: it is handed over by a timer, never within the sender's call.

Clients are not on this network. A broker hears the controller as long as both links between the two
are up, see `controller`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mockbroker.core.timers import TimerHeap

Link = tuple[int, int]


class Message(NamedTuple):
    """Something one broker sends to another; `what` names it, as in "fetch"."""

    sender: int
    receiver: int
    what: str
    topic: str
    partition: int


# Asked about every message: what to do with it. None lets it pass, a number of ms delays it, and
# LOSE loses it.
Verdict = int | None
Hook = Callable[[Message], Verdict]
LOSE = -1


class Network:
    """The links between all brokers; unless told otherwise they are up and take no time."""

    __slots__ = ("_delays", "_down", "_now_ms", "_timers", "hooks")

    def __init__(self, timers: TimerHeap, now_ms: Callable[[], int]) -> None:
        self._timers = timers
        self._now_ms = now_ms
        self._down: set[Link] = set()
        self._delays: dict[Link, int] = {}
        self.hooks: list[Hook] = []

    # -- links -------------------------------------------------------------------------------------

    def is_up(self, sender: int, receiver: int) -> bool:
        return (sender, receiver) not in self._down

    @property
    def is_quiet(self) -> bool:
        """Whether every link is up and takes no time, and nobody is watching."""
        return not (self._down or self._delays or self.hooks)

    def is_direct(self, left: int, right: int) -> bool:
        """Whether the two reach each other both ways at once, and nobody is watching."""
        if self.is_quiet:
            return True
        both = ((left, right), (right, left))
        return not self.hooks and not any(x in self._down or x in self._delays for x in both)

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

    # -- messages ----------------------------------------------------------------------------------

    def send(
        self,
        message: Message,
        deliver: Callable[[], None],
        delay_ms: int = 0,
        lost: Callable[[], None] | None = None,
    ) -> None:
        """Hand `message` over by calling `deliver` when it arrives, or `lost` when it does not.

        A real sender would not learn of the loss. Here `lost` sets the timer by which the sender
        gives up waiting, which most messages then do without.
        """
        link = (message.sender, message.receiver)
        is_lost = link in self._down
        for hook in () if is_lost else self.hooks:
            verdict = hook(message)
            is_lost |= verdict == LOSE
            delay_ms += max(verdict or 0, 0)

        def arrive() -> None:
            if link not in self._down:
                deliver()
            elif lost is not None:
                lost()

        if not is_lost:
            self._timers.call_at(self._now_ms() + self._delays.get(link, 0) + delay_ms, arrive)
        elif lost is not None:
            lost()


def links_between(
    left: Iterable[int], right: Iterable[int], *, both_ways: bool
) -> set[tuple[int, int]]:
    """The links from each broker on one side to each on the other."""
    left, right = set(left), set(right)
    links = {(a, b) for a in left for b in right if a != b}
    return links | {(b, a) for a, b in links} if both_ways else links
