"""Links between brokers, and the messages on them."""

from __future__ import annotations

import pytest

from mockbroker.core.replication.network import LOSE, Message, Network
from mockbroker.core.timers import TimerHeap


class Wire:
    """A network on a clock of its own, what arrives, and what is lost."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.timers = TimerHeap()
        self.network = Network(self.timers, lambda: self.now_ms)
        self.arrived: list[tuple[int, str]] = []
        self.lost: list[tuple[int, str]] = []

    def send(self, what: str, delay_ms: int = 0) -> None:
        self.network.send(
            Message(1, 2, what, "t", 0),
            lambda: self.arrived.append((self.now_ms, what)),
            delay_ms,
            lambda: self.lost.append((self.now_ms, what)),
        )

    def run(self, until_ms: int) -> None:
        while (due_ms := self.timers.deadline_ms()) is not None and due_ms <= until_ms:
            self.now_ms = max(due_ms, self.now_ms)
            self.timers.run_due(self.now_ms)
        self.now_ms = until_ms


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_a_message_arrives_at_once_but_not_within_the_call(wire):
    wire.send("a")
    assert wire.arrived == []
    wire.run(0)
    assert wire.arrived == [(0, "a")]


def test_delays_of_the_link_and_of_the_message_add_up(wire):
    wire.network.delay([(1, 2)], 10)
    wire.send("a", delay_ms=5)
    wire.network.delay([(1, 2)], 0)
    wire.send("b")
    wire.run(100)
    assert wire.arrived == [(0, "b"), (15, "a")]


def test_what_is_sent_over_a_cut_link_is_lost_and_so_is_what_is_on_its_way(wire):
    wire.network.delay([(1, 2)], 10)
    wire.send("on its way")
    wire.network.cut([(1, 2)])
    wire.send("too late")
    assert wire.lost == [(0, "too late")]
    wire.run(100)
    assert (wire.arrived, wire.lost) == ([], [(0, "too late"), (10, "on its way")])
    wire.network.heal([(1, 2)])
    wire.send("healed")
    wire.run(100)
    assert wire.arrived == [(100, "healed")]


def test_links_go_one_way(wire):
    wire.network.cut([(2, 1)])
    assert (wire.network.is_up(1, 2), wire.network.is_up(2, 1)) == (True, False)
    assert wire.network.cut_links == {(2, 1)}
    assert not wire.network.is_direct(1, 2)
    assert wire.network.is_direct(1, 3)
    wire.network.heal()
    assert wire.network.is_direct(1, 2)


def test_hooks_let_pass_delay_or_lose(wire):
    verdicts: dict[str, int | None] = {"pass": None, "late": 30, "lost": LOSE}
    wire.network.hooks.append(lambda message: verdicts[message.what])
    for what in verdicts:
        wire.send(what)
    wire.run(100)
    assert wire.lost == [(0, "lost")]
    assert wire.arrived == [(0, "pass"), (30, "late")]
    assert not wire.network.is_direct(1, 2)
