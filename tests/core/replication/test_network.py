"""Links between brokers, and the hops on them."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.brokers.broker_life import PAUSED, RUNNING, STOPPED
from mockbroker.core.replication.network import Hop, Network
from mockbroker.core.replication.partition import Partition
from mockbroker.core.timing.timers import TimerHeap
from mockbroker_protocol import ApiKey


class Question(Hop):
    """Asks broker 2 for an echo."""

    __slots__ = ("_what", "_wire")

    API = ApiKey.FETCH

    def __init__(self, wire: Wire, what: str, receiver: int = 2) -> None:
        super().__init__(1, receiver)
        self._wire = wire
        self._what = what

    def handle_request(self) -> None:
        self._wire.arrived.append((self._wire.now_ms, self._what))
        self._wire.network.answer(self, self._what.upper(), self._wire.late_ms)

    def handle_answer(self, answer: Any) -> None:
        self._wire.arrived.append((self._wire.now_ms, answer))

    def lost(self) -> None:
        self._wire.lost.append((self._wire.now_ms, self._what))


class Process:
    """A broker's process."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.epoch = node_id
        self.state = RUNNING


class Wire:
    """A network on a clock of its own, what arrives, and what is lost."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.late_ms = 0
        self.timers = TimerHeap()
        self.processes = {node_id: Process(node_id) for node_id in (1, 2, 3)}
        self.network = Network(self.timers, lambda: self.now_ms, self.processes)
        self.arrived: list[tuple[int, str]] = []
        self.lost: list[tuple[int, str]] = []

    def send(self, what: str) -> None:
        self.network.send(Question(self, what))

    def change(self, node_id: int, state: str, epoch: int | None = None) -> None:
        """Put a broker's process into a state; a new process has an epoch of its own."""
        process = self.processes[node_id]
        process.state = state
        process.epoch = epoch or process.epoch
        self.network.broker_changed(process)

    def run(self, until_ms: int) -> None:
        while (due_ms := self.timers.deadline_ms()) is not None and due_ms <= until_ms:
            self.now_ms = max(due_ms, self.now_ms)
            self.timers.run_due(self.now_ms)
        self.now_ms = until_ms


class Intercepting:
    """Sees hops to broker 3, and keeps all that are sent."""

    def __init__(self) -> None:
        self.kept: list[Hop] = []

    def intercepts(
        self,
        api: ApiKey,
        sender: int,
        receiver: int,
        partition: Partition | None = None,
    ) -> bool:
        return receiver == 3

    def on_send(self, hop: Hop) -> None:
        self.kept.append(hop)


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_a_request_arrives_at_once_but_not_within_the_call(wire):
    wire.send("a")
    assert wire.arrived == []
    wire.run(0)
    assert wire.arrived == [(0, "a"), (0, "A")]


def test_delays_of_the_link_and_of_the_answer_add_up(wire):
    wire.network.delay([(1, 2)], 10)
    wire.network.delay([(2, 1)], 7)
    wire.late_ms = 5
    wire.send("a")
    wire.network.delay([(1, 2)], 0)
    wire.send("b")
    wire.run(100)
    assert wire.arrived == [(0, "b"), (10, "a"), (12, "B"), (22, "A")]


def test_an_answer_is_late_only_by_its_link_unless_more_is_asked_for(wire):
    question = Question(wire, "a")
    wire.network.delay([(2, 1)], 7)
    wire.network.send(question)
    wire.run(1)
    wire.network.answer(question, "again")
    wire.run(8)
    assert wire.arrived == [(0, "a"), (7, "A"), (8, "again")]


def test_a_cut_link_loses_sent_messages_and_those_in_flight(wire):
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
    assert wire.arrived == [(100, "healed"), (100, "HEALED")]


def test_links_go_one_way(wire):
    wire.network.cut([(2, 1)])
    assert (wire.network.is_up(1, 2), wire.network.is_up(2, 1)) == (True, False)
    assert wire.network.cut_links == {(2, 1)}
    assert not wire.network.is_direct(1, 2, ApiKey.FETCH)
    assert wire.network.is_direct(1, 3, ApiKey.FETCH)
    wire.send("a")
    wire.run(0)
    assert (wire.arrived, wire.lost) == ([(0, "a")], [(0, "a")])
    wire.network.heal()
    assert wire.network.is_direct(1, 2, ApiKey.FETCH)


def test_two_brokers_reach_each_other_while_both_of_their_links_are_up(wire):
    pairs = [(1, 2), (2, 1), (1, 3), (3, 1)]
    assert all(wire.network.reaches(*pair) for pair in pairs)
    for link in ((1, 2), (2, 1)):
        wire.network.cut([link])
        assert [pair for pair in pairs if wire.network.reaches(*pair)] == [(1, 3), (3, 1)]
        wire.network.heal([link])


def test_a_broker_answers_its_own_request_at_once(wire):
    wire.network.send(Question(wire, "a", receiver=1))
    assert wire.arrived == []
    wire.run(0)
    assert wire.arrived == [(0, "a"), (0, "A")]


def test_an_interceptor_handles_only_sent_hops(wire):
    interceptor = wire.network.interceptor = Intercepting()
    assert wire.network.is_direct(1, 2, ApiKey.FETCH)
    assert not wire.network.is_direct(1, 3, ApiKey.FETCH)
    assert not wire.network.is_quiet
    wire.send("a")
    wire.run(0)
    assert (len(interceptor.kept), wire.arrived) == (1, [])


def test_a_request_to_a_paused_broker_arrives_when_it_is_resumed(wire):
    """It is there already: a link that is cut meanwhile does not matter to it."""
    wire.change(2, PAUSED)
    wire.send("a")
    wire.send("b")
    wire.run(10)
    assert (wire.arrived, wire.lost) == ([], [])
    wire.network.cut([(1, 2)])
    wire.change(2, RUNNING)
    assert wire.arrived == []
    wire.run(10)
    assert wire.arrived == [(10, "a"), (10, "b"), (10, "A"), (10, "B")]


def test_no_request_from_or_to_a_paused_broker_is_direct(wire):
    wire.change(2, PAUSED)
    assert not wire.network.is_quiet
    direct = {
        (sender, receiver): wire.network.is_direct(sender, receiver, ApiKey.FETCH)
        for sender, receiver in [(1, 2), (2, 1), (2, 2), (1, 3), (1, 1)]
    }
    assert [pair for pair, is_direct in direct.items() if is_direct] == [(1, 3), (1, 1)]
    wire.change(2, RUNNING)
    assert wire.network.is_quiet
    wire.change(2, PAUSED)
    wire.change(2, STOPPED)
    assert wire.network.is_quiet


def test_a_broker_that_is_paused_again_at_once_receives_nothing_in_between(wire):
    wire.change(2, PAUSED)
    wire.send("a")
    wire.run(10)
    wire.change(2, RUNNING)
    wire.change(2, PAUSED)
    wire.run(20)
    assert wire.arrived == []
    wire.change(2, RUNNING)
    wire.run(30)
    assert wire.arrived == [(20, "a"), (20, "A")]


def test_an_answer_to_a_paused_broker_arrives_when_it_is_resumed(wire):
    wire.late_ms = 5
    wire.send("a")
    wire.run(1)
    wire.change(1, PAUSED)
    wire.run(10)
    assert wire.arrived == [(0, "a")]
    wire.change(1, RUNNING)
    wire.run(20)
    assert wire.arrived == [(0, "a"), (10, "A")]


@pytest.mark.parametrize("receiver", [1, 2])
def test_a_paused_broker_sends_nothing(wire, receiver):
    wire.change(1, PAUSED)
    wire.network.send(Question(wire, "a", receiver))
    wire.run(10)
    assert wire.arrived == []
    wire.change(1, RUNNING)
    wire.run(10)
    assert wire.arrived == [(10, "a"), (10, "A")]


def test_a_request_that_waits_for_a_paused_broker_is_lost_when_its_process_ends(wire):
    wire.change(2, PAUSED)
    wire.send("a")
    wire.run(10)
    wire.change(2, STOPPED)
    wire.run(10)
    assert (wire.arrived, wire.lost) == ([], [(10, "a")])


def test_a_request_to_a_broker_without_a_process_is_lost(wire):
    wire.change(2, STOPPED)
    wire.send("stopped")
    del wire.processes[2]
    wire.send("removed")
    wire.run(0)
    assert (wire.arrived, wire.lost) == ([], [(0, "stopped"), (0, "removed")])


@pytest.mark.parametrize(("restarted", "arrived"), [(1, ["a"]), (2, [])])
def test_messages_to_a_process_do_not_reach_the_next_one(wire, restarted, arrived):
    wire.network.delay([(1, 2)], 5 if restarted == 2 else 0)
    wire.network.delay([(2, 1)], 5)
    wire.send("a")
    wire.run(1)
    wire.change(restarted, STOPPED)
    wire.change(restarted, RUNNING, epoch=9)
    wire.run(20)
    assert [what for _, what in wire.arrived] == arrived
    assert wire.lost == [(5, "a")]


def test_an_answer_of_a_process_that_has_ended_is_lost(wire):
    wire.network.delay([(1, 2)], 5)
    question = Question(wire, "a")
    wire.network.send(question)
    wire.change(2, STOPPED)
    wire.network.answer(question, "A")
    assert wire.lost == [(0, "a")]


def _on_its_way(wire: Wire) -> None:
    wire.network.delay([(1, 2)], 10)
    wire.send("a")


def _answer_on_its_way(wire: Wire) -> None:
    wire.network.delay([(2, 1)], 10)
    wire.send("a")
    wire.run(0)


def _kept_for_the_receiver(wire: Wire) -> None:
    wire.change(2, PAUSED)
    wire.send("a")
    wire.run(0)


def _kept_for_the_sender(wire: Wire) -> None:
    wire.change(1, PAUSED)
    wire.send("a")


def _kept_with_the_answer(wire: Wire) -> None:
    _answer_on_its_way(wire)
    wire.change(2, PAUSED)


@pytest.mark.parametrize(
    "sent",
    [
        _on_its_way,
        _answer_on_its_way,
        _kept_for_the_receiver,
        _kept_for_the_sender,
        _kept_with_the_answer,
    ],
)
def test_a_reset_loses_every_message(wire, sent):
    sent(wire)
    wire.arrived.clear()
    wire.network.reset()
    for node_id in (1, 2):
        wire.change(node_id, RUNNING)
    wire.run(100)
    assert wire.arrived == []
    assert [what for _, what in wire.lost] == ["a"]
    wire.send("b")
    wire.run(100)
    assert wire.arrived == [(100, "b"), (100, "B")]


def test_a_reset_restores_the_links(wire):
    wire.network.cut([(1, 2)])
    wire.network.delay([(2, 1)], 10)
    wire.network.reset()
    assert wire.network.is_quiet


def test_after_a_reset_no_interceptor_delivers_an_earlier_message(wire):
    intercepting = wire.network.interceptor = Intercepting()
    wire.network.send(Question(wire, "a", 3))
    wire.network.reset()
    (hop,) = intercepting.kept
    wire.network.carry_request(hop, hop.handle_request, hop.disconnected)
    wire.network.answer(hop, "A")
    wire.run(100)
    assert wire.arrived == []
    assert [what for _, what in wire.lost] == ["a", "a"]
