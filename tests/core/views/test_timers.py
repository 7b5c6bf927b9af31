"""The timers that are due, by name."""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from pathlib import Path

from mockbroker.core.cluster import Cluster
from mockbroker.core.timing.timers import DueTimers
from mockbroker.core.views.timers import NAMES, describe, timer_views
from tests.house.lint import ROOT

START_MS = 1_000_000


def cluster() -> Cluster:
    return Cluster(now_ms=lambda: START_MS, seed=1)


def nothing() -> None:
    return


class Waiting:
    def time_out(self) -> None:
        return


def test_the_earliest_is_first_and_equal_ones_are_counted():
    found = cluster()
    before = len(timer_views(found, 1000))
    timers = found.runtime.timers
    timers.call_at(START_MS + 7, nothing)
    timers.call_at(START_MS + 5, Waiting().time_out)
    timers.call_at(START_MS + 5, Waiting().time_out)
    timers.call_at(START_MS + 3, nothing).cancel()
    views = timer_views(found, 2)
    assert [(view.name, view.in_ms, view.count) for view in views] == [
        ("waiting: time out", 5, 2),
        ("nothing", 7, 1),
    ]
    assert len(timer_views(found, 1000)) == before + 2


def test_timers_of_a_clock_domain_are_due_by_the_clusters_clock():
    found = cluster()
    domain = found.clock_domains.transactions
    domain.jump_to(START_MS + 1_000)
    domain.call_at(START_MS + 1_500, nothing)
    assert ("nothing", START_MS + 500) in [
        (view.name, view.due_ms) for view in timer_views(found, 100)
    ]


def test_the_key_of_a_timer_says_what_it_is_about():
    found = cluster()
    timers: DueTimers[object] = DueTimers(lambda: False)
    timers.arm(found.runtime.timers, "billing", START_MS + 1, lambda key: None)
    timers.arm(found.runtime.timers, ("billing", "orders", 3), START_MS + 1, lambda key: None)
    abouts = {view.about for view in timer_views(found, 10)}
    assert {"billing", "billing orders 3"} <= abouts
    broker = next(iter(found.brokers.values()))
    assert describe(partial(nothing, broker))[1] == f"broker {broker.node_id}"


def test_each_name_is_that_of_a_function_there_is():
    sources = {path: path.read_text(encoding="utf-8") for path in _sources()}
    for function in NAMES:
        owner, _, name = function.partition(".")
        if function == "Event.set":
            continue  # trio's
        [module] = [path for path, text in sources.items() if has_class(text, owner)]
        dotted = ".".join(module.relative_to(ROOT).with_suffix("").parts)
        assert hasattr(getattr(import_module(dotted), owner), name), function


def has_class(text: str, name: str) -> bool:
    found = re.search(rf"^class {name}\b(?!\(Protocol)", text, re.MULTILINE)
    return found is not None


def _sources() -> list[Path]:
    return list((ROOT / "mockbroker" / "core").rglob("*.py")) + list(
        (ROOT / "mockbroker" / "server").rglob("*.py")
    )
