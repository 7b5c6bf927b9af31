"""Goals are judged by ratios within a round, in the direction that the unit gives."""

from __future__ import annotations

from bench.goals import GOALS, Goal, judge, ratios
from bench.model import MEGABYTES_PER_SECOND, MILLISECONDS, TIMES
from bench.run import Results
from bench.workloads import WORKLOADS

SLOWING = [(10.0, 20.0), (20.0, 40.0), (40.0, 80.0)]
"""Ours and a peer's times on a machine that gets slower: always half of the peer's."""


def results(measure: str, rounds: list[tuple[float, float]], peer: str = "kfake") -> Results:
    found = Results()
    for number, (ours, other) in enumerate(rounds, start=1):
        found.add(number, "mockbroker", {measure: ours})
        found.add(number, peer, {measure: other})
    return found


def test_every_goal_is_about_a_measure_that_some_workload_takes() -> None:
    measured = {measure.name for workload in WORKLOADS for measure in workload.measures}
    assert {goal.measure for goal in GOALS} <= measured


def test_every_measure_has_a_name_of_its_own() -> None:
    names = [measure.name for workload in WORKLOADS for measure in workload.measures]
    assert len(set(names)) == len(names)


def test_a_ratio_compares_turns_of_the_same_round() -> None:
    assert ratios(results("m", SLOWING), "m", ["kfake"], "lower") == [0.5, 0.5, 0.5]


def test_a_round_that_lacks_a_peer_does_not_count() -> None:
    found = results("m", SLOWING)
    found.add(4, "mockbroker", {"m": 1.0})
    assert ratios(found, "m", ["kfake"], "lower") == [0.5, 0.5, 0.5]


def test_a_round_in_which_a_peer_took_nothing_does_not_count() -> None:
    """A JVM that grew by no page has no figure that ours could be compared with."""
    found = results("m", [(10.0, 0.0), (10.0, 20.0)])
    assert ratios(found, "m", ["kfake"], "lower") == [0.5]
    assert judge(Goal("m", 1.0, ("kfake",)), results("m", [(10.0, 0.0)]), TIMES).met is None


def test_the_better_of_two_peers_is_the_faster_one() -> None:
    found = results("m", [(30.0, 20.0)])
    found.add(1, "real", {"m": 60.0})
    assert ratios(found, "m", ["kfake", "real"], "higher") == [0.5]
    assert ratios(found, "m", ["kfake", "real"], "lower") == [1.5]


def test_times_are_bounded_from_above() -> None:
    found = results("m", SLOWING)
    assert judge(Goal("m", 0.5, ("kfake",)), found, MILLISECONDS).met is True
    assert judge(Goal("m", 0.4, ("kfake",)), found, MILLISECONDS).met is False


def test_speeds_are_bounded_from_below() -> None:
    found = results("m", SLOWING)
    assert judge(Goal("m", 0.5, ("kfake",)), found, MEGABYTES_PER_SECOND).met is True
    assert judge(Goal("m", 0.6, ("kfake",)), found, MEGABYTES_PER_SECOND).met is False


def test_an_absolute_goal_bounds_the_median_of_ours() -> None:
    found = results("m", [(1.0, 0.0), (1.1, 0.0), (9.0, 0.0)])
    verdict = judge(Goal("m", 1.2), found, TIMES)
    assert (verdict.value, verdict.met) == (1.1, True)


def test_a_goal_without_its_peer_is_not_judged() -> None:
    verdict = judge(Goal("m", 1.0, ("real",)), results("m", SLOWING), MILLISECONDS)
    assert (verdict.value, verdict.met) == (None, None)


def test_goals_are_written_in_the_unit_of_their_measure() -> None:
    assert Goal("m", 0.3).words(MILLISECONDS) == "≤ 300.0 ms"
    assert Goal("m", 1.25, ("kfake",)).words(MILLISECONDS) == "≤ 1.25× kfake"
    both = Goal("m", 1.0, ("real", "kfake"))
    assert both.words(MEGABYTES_PER_SECOND) == "≥ 1× the better of real/kfake"
