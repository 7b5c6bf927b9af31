"""A run interleaves the peers, drops the first round, and goes on without what is missing."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bench import model, report
from bench.model import MILLISECONDS, Figures, Measure, Peer, Running, UnavailableError
from bench.run import run

SCALE = model.QUICK
MEASURE = Measure("start", "start to first Metadata", MILLISECONDS)


class FakePeer:
    def __init__(self, name: str, events: list[str], missing: str | None = None) -> None:
        self.name = self.title = name
        self.events = events
        self.missing = missing

    def prepare(self) -> None:
        if self.missing:
            raise UnavailableError(self.missing)

    @contextmanager
    def start(self) -> Iterator[Running]:
        self.events.append(f"+{self.name}")
        yield Running(self, "127.0.0.1:1,127.0.0.1:2", (1,), 0.5)
        self.events.append(f"-{self.name}")

    def create_topic(self, running: Running, topic: str, partitions: int = 1) -> None:
        raise AssertionError

    def create_topics(self, running: Running, topics: Sequence[str], partitions: int) -> float:
        raise AssertionError

    def delete_topic(self, running: Running, topic: str) -> None:
        raise AssertionError


class FakeWorkload:
    name = "fake"
    measures: tuple[Measure, ...] = (MEASURE,)
    excluded: Mapping[str, str] = {"real": "for the sake of the test"}

    def __init__(self, events: list[str], *, fresh: bool, failing: str | None = None) -> None:
        self.events = events
        self.fresh = fresh
        self.failing = failing

    def prepare(self) -> None:
        pass

    def run(self, running: Running, scale: model.Scale) -> Figures:
        self.events.append(running.peer.name)
        if running.peer.name == self.failing:
            raise RuntimeError("it broke")
        return {MEASURE.name: float(len(self.events))}


def silent(_words: str) -> None:
    pass


def test_turns_alternate_and_the_first_round_only_warms_up() -> None:
    events: list[str] = []
    peers: list[Peer] = [FakePeer("mockbroker", events), FakePeer("kfake", events)]
    results = run([FakeWorkload(events, fresh=False)], peers, SCALE, silent)
    turns = [event for event in events if event[0] not in "+-"]
    assert turns == ["mockbroker", "kfake", "kfake", "mockbroker", "mockbroker", "kfake"]
    assert len(results.values(MEASURE.name, "kfake")) == SCALE.rounds
    assert events[:2] == ["+mockbroker", "+kfake"], "both run during every turn"


def test_a_fresh_peer_is_started_for_each_turn() -> None:
    events: list[str] = []
    run([FakeWorkload(events, fresh=True)], [FakePeer("kfake", events)], SCALE, silent)
    assert events == ["+kfake", "kfake", "-kfake"] * (SCALE.rounds + 1)


def test_a_missing_peer_and_an_excluded_one_are_left_out_and_said() -> None:
    events: list[str] = []
    peers: list[Peer] = [
        FakePeer("mockbroker", events),
        FakePeer("kfake", events, missing="no go"),
        FakePeer("real", events),
    ]
    results = run([FakeWorkload(events, fresh=True)], peers, SCALE, silent)
    assert {event for event in events if event[0] not in "+-"} == {"mockbroker"}
    assert results.missing == {"kfake": "no go"}


def test_a_failing_turn_ends_that_peers_turns_but_not_the_run() -> None:
    events: list[str] = []
    peers: list[Peer] = [FakePeer("mockbroker", events), FakePeer("kfake", events)]
    workload = FakeWorkload(events, fresh=True, failing="kfake")
    results = run([workload], peers, SCALE, silent)
    assert events.count("kfake") == 1
    assert len(results.values(MEASURE.name, "mockbroker")) == SCALE.rounds
    assert results.failures == {("fake", "kfake"): "it broke"}


def test_the_report_shows_figures_goals_and_what_is_missing(tmp_path: Path) -> None:
    events: list[str] = []
    peers: list[Peer] = [
        FakePeer("mockbroker", events),
        FakePeer("kfake", events, missing="no go"),
    ]
    results = run([FakeWorkload(events, fresh=True)], peers, SCALE, silent)
    out = io.StringIO()
    report.print_table(results, [MEASURE], peers, Console(file=out, width=160))
    assert "≤ 300.0 ms" in out.getvalue()
    assert "missed" in out.getvalue()
    assert "kfake is missing: no go" in out.getvalue()

    report.write_json(tmp_path / "bench.json", results, [MEASURE], peers, "quick")
    document = json.loads((tmp_path / "bench.json").read_text())
    figures = document["measures"]["start"]["figures"]
    assert len(figures["mockbroker"]) == SCALE.rounds
    assert figures["kfake"] == []
    assert document["goals"][0]["met"] is False
    assert document["missing"] == {"kfake": "no go"}


def test_an_interrupted_run_keeps_what_it_has() -> None:
    events: list[str] = []

    class Interrupted(FakeWorkload):
        def run(self, running: Running, scale: model.Scale) -> Figures:
            if events.count("kfake") == 2:
                raise KeyboardInterrupt
            return super().run(running, scale)

    results = run([Interrupted(events, fresh=True)], [FakePeer("kfake", events)], SCALE, silent)
    assert len(results.values(MEASURE.name, "kfake")) == 1
