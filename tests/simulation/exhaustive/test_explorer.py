"""The explorer: each state once, each order of events, and the shortest way to a violation."""

from __future__ import annotations

from typing import ClassVar

from tests.simulation.exhaustive.explorer import Level, explore
from tests.simulation.exhaustive.world import Event, ExploredWorld, must


class Jugs(ExploredWorld):
    """Two jugs of 3 and 5 litres. The well-known question is how to measure 4."""

    name: ClassVar[str] = "jugs"
    beginnings: ClassVar[tuple[str, ...]] = ("both empty",)
    sizes: ClassVar[tuple[int, int]] = (3, 5)
    wanted: ClassVar[int | None] = 4

    def __init__(self) -> None:
        self.litres = [0, 0]

    @classmethod
    def begin(cls, beginning: str) -> Jugs:
        return cls()

    def events(self) -> list[Event]:
        return [(verb, jug) for verb in ("fill", "empty", "pour") for jug in (0, 1)]

    def on_fill(self, jug: int) -> None:
        self.litres[jug] = self.sizes[jug]

    def on_empty(self, jug: int) -> None:
        self.litres[jug] = 0

    def on_pour(self, jug: int) -> None:
        amount = min(self.litres[jug], self.sizes[1 - jug] - self.litres[1 - jug])
        self.litres[jug] -= amount
        self.litres[1 - jug] += amount

    def key(self) -> object:
        return tuple(self.litres)

    def check(self) -> None:
        must(
            self.wanted is None or self.wanted not in self.litres, f"nobody measures {self.wanted}"
        )

    def settle(self) -> None:
        must(self.litres != [3, 5], "not both are full")


class Safe(Jugs):
    wanted = None


class Cracked(Safe):
    def on_pour(self, jug: int) -> None:
        raise KeyError(jug)


def test_the_first_violation_is_reached_on_a_shortest_way():
    found = explore(Jugs, 10).counterexample
    assert found is not None
    assert found.violation == "nobody measures 4"
    assert found.events == (
        ("fill", 1),
        ("pour", 1),
        ("empty", 0),
        ("pour", 1),
        ("fill", 1),
        ("pour", 1),
    )


def test_a_counterexample_reads_as_a_list_of_steps():
    assert str(explore(Jugs, 10).counterexample).splitlines() == [
        "from 'both empty':",
        "  1. fill 1",
        "  2. pour 1",
        "  3. empty 0",
        "  4. pour 1",
        "  5. fill 1",
        "  6. pour 1",
        "violated: nobody measures 4",
    ]


def test_one_event_less_does_not_find_it():
    assert explore(Jugs, 5).counterexample is None


def test_each_state_is_expanded_once():
    """Of 4 x 6 fillings 16 can be reached, those with a jug that is empty or full."""
    done = explore(Safe, 20)
    assert (done.states, done.transitions) == (16, 16 * 6)
    assert done.levels[0] == Level(1, 0)
    assert done.levels[-1] == Level(0, 0)
    assert done.counterexample is None


def test_a_shallow_exploration_is_the_beginning_of_a_deep_one():
    assert explore(Safe, 8).levels[:5] == explore(Safe, 4).levels


def test_states_that_do_not_come_to_a_good_end_are_found():
    found = explore(Safe, 5, settle_every=1).counterexample
    assert found is not None
    assert found.violation == "not both are full"
    assert found.events == (("fill", 0), ("fill", 1))


def test_what_the_machine_raises_is_a_violation():
    found = explore(Cracked, 2).counterexample
    assert found is not None
    assert (found.events, found.violation) == ((("pour", 0),), "KeyError: 0")


def test_a_beginning_that_breaks_is_a_violation_of_no_events():
    class Broken(Safe):
        @classmethod
        def begin(cls, beginning: str) -> Jugs:
            raise ValueError("no jugs")

    found = explore(Broken, 2).counterexample
    assert found is not None
    assert (found.beginning, found.events) == ("both empty", ())
    assert found.violation == "ValueError: no jugs"


def test_a_frozen_world_does_not_change():
    world = Safe.begin("both empty")
    frozen = world.freeze()
    world.take(("fill", 0))
    assert Safe.copies(frozen)().key() == (0, 0)
    assert world.key() == (3, 0)
