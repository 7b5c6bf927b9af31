"""`mockbroker scenario run`: files that hold, that fail, and that are invalid."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mockbroker.cli import main

Play = Callable[..., Result]

PRODUCE = """
import os
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": os.environ["MOCKBROKER_BOOTSTRAP"], "log_level": 0,
                     "enable.idempotence": True})
producer.produce("orders", "coffee")
raise SystemExit(producer.flush(60))
"""

LOST_ACK = """
name: a lost acknowledgement
cluster: {brokers: 3, topics: [{name: orders}]}
faults: {name: lose, rules: [{match: {api: Produce}, when: {times: 1}, do: {drop_reply: reset}}]}
steps:
  - wait: {match: {kind: response, rule: lose}, timeout: 60s}
  - wait: {match: {kind: response, api: Produce, error: none}, count: 2, timeout: 60s}
  - action: {stop_broker: {node: 2, how: unclean}}
  - advance: 1h
  - action: {start_broker: {node: 2}}
  - settle: 60s
  - clear_faults: true
checks:
  - {match: {kind: append, topic: orders}, exactly: 1}
  - {in_order: [{kind: fault, rule: lose}, {kind: action, change: stop_broker}]}
"""


@pytest.fixture
def play(tmp_path: Path) -> Play:
    def run(text: str, *command: str, status: int = 0) -> Result:
        path = tmp_path / "scenario.yaml"
        path.write_text(text, encoding="utf-8")
        arguments = ["scenario", "run", str(path), *(["--", *command] if command else [])]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == status, result.output
        return result

    return run


@pytest.mark.covers("S312")
def test_steps_run_in_order_beside_a_client_and_the_checks_hold(play: Play) -> None:
    lines = play(LOST_ACK, sys.executable, "-c", PRODUCE).output.splitlines()
    kinds = [line.split()[2] for line in lines if " steps[" in line]
    assert kinds == ["wait", "wait", "action", "advance", "action", "settle", "clear_faults"]
    assert [line.split()[1] for line in lines if line.endswith(" holds")] == [
        "checks[0]",
        "checks[1]",
    ]
    assert lines[-1] == "ok"


@pytest.mark.covers("S312")
def test_a_check_that_fails_prints_the_timeline_and_why(play: Play) -> None:
    text = """
    steps: [{action: {stop_broker: {node: 2}}}]
    checks: [{match: {kind: broker, change: stopped, broker: 3}}]
    """
    output = play(text, status=1).output
    assert "broker change=shutting down" in output
    assert "failed: 0 events match, at least 1 were expected" in output
    assert "but broker was 2" in output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps: [{action: {stop_broker: {node: 9}}}]", "steps[0].action: "),
        ("steps: [{wait: {match: {kind: append}, timeout: 1}}]", "0 events match after 1 ms"),
        (
            "steps: [{action: {stop_broker: {node: 2}}}, {settle: 10ms}]\n"
            "cluster: {topics: [{name: t, replication_factor: 3}]}",
            "steps[1].settle: t-0: broker 2 is not in sync",
        ),
        ("steps: [{verify: {match: {kind: append}}}]", "steps[0].verify: 0 events match"),
    ],
)
def test_a_step_that_fails_ends_the_scenario(play: Play, text: str, words: str) -> None:
    assert words in play(text, status=1).output


def test_a_wait_ends_with_the_command(play: Play) -> None:
    """Nothing more can come of it, so an hour of waiting is over at once."""
    text = "steps: [{wait: {match: {kind: append, topic: orders}, count: 2, timeout: 1h}}]"
    produce = PRODUCE.replace("flush(60)", "flush(60) and 1")
    output = play(text, sys.executable, "-c", produce, status=1).output
    assert "steps[0].wait: 1 events match when the command has ended, not 2" in output


def test_a_command_that_fails_fails_the_scenario(play: Play) -> None:
    """The exit code is the command's."""
    assert (
        "ended with 3" in play("{}", sys.executable, "-c", "raise SystemExit(3)", status=3).output
    )
    assert "No such file" in play("{}", "no-such-program-anywhere", status=1).output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stepps: []", "stepps: unknown field; did you mean 'steps'?"),
        ("steps: [{}]", "steps[0]: a step is one of wait, action, faults"),
        ("steps: [{freeze: true, advance: 1s}]", "not advance, freeze"),
        ("steps: [{action: {stop_broke: {node: 1}}}]", "did you mean 'stop_broker'"),
        ("steps: [{wait: {match: {topik: x}}}]", "steps[0].wait.match.topik"),
        ("faults: {rules: [{match: {apy: Fetch}, do: {delay: 1s}}]}", "faults.rules[0].match.apy"),
        ("checks: [{}]", "checks[0]: an expectation has match or in_order"),
        ("cluster: {brokers: many}", "cluster: "),
        ("cluster: {nodes: 3}", "cluster: "),
        ("- 1", "not a mapping"),
    ],
)
def test_a_file_that_cannot_be_is_refused_before_anything_runs(
    play: Play, text: str, words: str
) -> None:
    assert words in play(text, status=2).output
