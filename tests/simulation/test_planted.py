"""Bugs that are planted are there, are gone again, and are found by the simulator."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import Any

import pytest

from mockbroker.simulation.many import result_of
from mockbroker.simulation.plan import Plan, parse
from mockbroker.simulation.running import run
from tests.simulation.planted.auditing import anomalies
from tests.simulation.planted.hunting import violations_with
from tests.simulation.planted.planting import (
    PlantingError,
    _rewritten,
    load_all,
    put,
    replaced,
    rewritten,
)
from tests.simulation.planted.results import RESULTS, read

BUGS_MIN = 60

# Bugs with a law that catches them, and a seed on which it does.
FOUND = {
    "leader-epoch-stays": ("one leader an epoch", 0),
    "fenced-controller-stays": ("the controller is alive", 30),
    "found-again-and-still-fenced": ("everything comes to rest", 1),
    "read-committed-reads-all": ("fetches return what was requested", 1),
    "aborts-of-the-first-batch-only": ("transactions are atomic", 2),
    "waiting-fetch-has-no-timeout": ("requests are answered in time", 0),
    "sessions-forget-nothing": ("fetches return what was requested", 1),
    "sessions-keep-first-offsets": ("fetches return what was requested", 0),
    "generation-stays": ("partitions are owned once", 5),
    "truncation-keeps-last-epoch": ("time goes on", 2),
    "duplicates-are-appended": ("the state of a log follows from its batches", 0),
    "one-marker-is-enough": ("transactions advance when records are replicated", 2),
    "markers-leave-guards": ("markers end verification", 13),
    "marker-below-watermark-holds": ("the last stable offset follows", 0),
    "aborts-begin-at-their-marker": ("transactions are atomic", 2),
    "log-end-misses-last-record": ("offsets are dense", 0),
    "locks-end-early": ("records are acquired by one member", 13),
    "deliveries-are-not-counted": ("delivery counts rise to their limit", 1),
    "rejected-records-are-available": ("acknowledged records are not delivered again", 6),
    "batches-are-not-read": ("acknowledged records are not delivered again", 6),
    "expired-records-are-not-found": ("available records are delivered", 43),
    "active-tasks-are-not-awaited": ("tasks are active once", 41),
    "last-tasks-are-left-out": ("tasks are active once", 2),
    "static-members-are-not-fenced": ("replaced static members are fenced", 5),
}


def test_there_are_many_bugs_of_every_area() -> None:
    areas = Counter(bug.area for bug in load_all().values())
    assert areas.total() >= BUGS_MIN
    assert set(areas) == {
        "controller",
        "coordinators",
        "fetching",
        "groups",
        "journal",
        "log",
        "metadata",
        "producing",
        "replication",
        "shares",
        "snapshots",
        "streams",
        "transactions",
    }


def test_no_two_bugs_are_the_same() -> None:
    sentences = Counter(bug.wrong for bug in load_all().values())
    assert [sentence for sentence, count in sentences.items() if count > 1] == []


@pytest.mark.parametrize("name", load_all())
def test_a_bug_is_there_while_it_is_planted_and_gone_afterwards(name: str) -> None:
    """What it is planted into is still what it says: a fragment that is not there is an error."""
    bug = load_all()[name]
    with bug.plant():
        pass
    assert not _rewritten
    with bug.plant():
        pass


# Bugs that a broker's answer shows when it is made, and the same seeds find them over connections.
FOUND_OVER_STREAMS = {
    "locks-end-early": ("records are acquired by one member", 13),
    "deliveries-are-not-counted": ("delivery counts rise to their limit", 1),
    "rejected-records-are-available": ("acknowledged records are not delivered again", 6),
    "sessions-hide-errors": ("fetches report the broker's own log", 3),
    "revoked-stays-owned": ("consumers reach their target", 1),
    "last-tasks-are-left-out": ("tasks are active once", 2),
}


@pytest.mark.parametrize("name", FOUND_OVER_STREAMS)
def test_the_law_catches_the_bug_over_connections(name: str) -> None:
    law, seed = FOUND_OVER_STREAMS[name]
    with load_all()[name].plant():
        assert law in {each.law for each in result_of(seed, "streams").violations}


@pytest.mark.parametrize("name", FOUND)
def test_the_law_catches_the_bug(name: str) -> None:
    law, seed = FOUND[name]
    assert law in {each.law for each in violations_with([load_all()[name]], seed)}


def test_a_late_alter_partition_for_a_former_process_is_noticed() -> None:
    """A follower loses its log and its link to the leader before the request for its former process
    arrives. The controller refuses it by the new broker epoch (KIP-903); without one a law sees it.
    """
    where: dict[str, Any] = {"topic": "orders", "partition": 0}
    slow, lost = {"nodes": 2, "to": 1}, {"nodes": 3, "to": 2}
    steps: tuple[tuple[int, str, dict[str, Any]], ...] = (
        (2_000, "move_leader", {**where, "node": 2}),
        (2_050, "shrink_isr", {**where, "nodes": [3]}),
        (2_100, "delay_network", {**slow, "by": 1_000}),
        (2_150, "lag_follower", {**where, "node": 3, "release": True}),
        (2_155, "stop_broker", {"node": 3, "how": "power_loss"}),
        (2_156, "cut_network", lost),
        (2_157, "start_broker", {"node": 3}),
        (6_150, "heal_network", slow),
        (6_150, "heal_network", lost),
    )
    plan = parse(
        {
            "seed": 1,
            "settings": {
                "topics": [{"name": "orders", "replication_factor": 3}],
                "configs": {"min.insync.replicas": "1"},
            },
            "clients": [{"kind": "producer", "name": "p", "topics": ["orders"], "operations": 60}],
            "steps": [{"at_ms": at, "do": do, "arguments": given} for at, do, given in steps],
        }
    )
    assert run(plan).violations == []
    with load_all()["broker-epoch-stays"].plant():
        assert "replicas agree" in run(plan).laws


@pytest.mark.parametrize("seed", [2, 21, 88, 120])
def test_retries_at_the_next_leader_are_no_duplicates(seed: int) -> None:
    """Without a bug the audit counts no batch twice that a deposed leader has truncated."""
    assert "duplicate" not in (anomalies(seed) or [])


def test_the_results_are_of_the_bugs_that_there_are() -> None:
    assert list(read(RESULTS)) == list(load_all())


# -- planting -------------------------------------------------------------------------------------


def _wage(hours: int) -> int:
    return hours * 12


def test_a_function_says_something_else_while_it_is_rewritten() -> None:
    with rewritten(_wage, "hours * 12", "hours * 13"):
        assert _wage(2) == 26
    assert _wage(2) == 24


def test_a_function_may_be_rewritten_twice() -> None:
    with ExitStack() as stack:
        stack.enter_context(rewritten(_wage, "hours *", "(hours + 1) *"))
        stack.enter_context(rewritten(_wage, "12", "10"))
        assert _wage(2) == 30
    assert _wage(2) == 24


def test_a_fragment_that_is_not_there_cannot_be_rewritten() -> None:
    with pytest.raises(PlantingError, match="0 times"), rewritten(_wage, "* 14", "* 13"):
        pass
    assert _wage(1) == 12


def test_a_bug_in_code_that_closes_over_something_keeps_what_it_closes_over() -> None:
    rate = 3

    def price(count: int) -> int:
        return rate * count

    with rewritten(price, "rate * count", "rate + count"):
        assert price(4) == 7
    assert price(4) == 12


def test_what_a_class_does_not_have_cannot_be_replaced() -> None:
    with pytest.raises(PlantingError), replaced(Plan, "no_such_thing", 1):
        pass


def test_a_table_says_something_else_for_a_while() -> None:
    table = {"one": 1}
    with put(table, "one", 2):
        assert table == {"one": 2}
    assert table == {"one": 1}
    with pytest.raises(PlantingError), put(table, "two", 2):
        pass
