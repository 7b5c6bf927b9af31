"""A plan with real brokers judges what its clients saw."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mockbroker.simulation.script import Call
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.metadata import MetadataRequest
from tests.support.real_plans import real_plan
from tests.support.real_run import RealRun

NODE = 1
STARTED_MS, ASKED_MS = 1_000, 2_000


@pytest.fixture
def run() -> RealRun:
    kafka: Any = SimpleNamespace(addresses={NODE: ("127.0.0.1", 9092)})
    return RealRun(real_plan(1), kafka)


def test_a_broker_that_ran_all_the_time_has_to_answer(run: RealRun) -> None:
    call = Call(NODE, ApiKey.METADATA, 12, MetadataRequest(), 60_000)
    run._runs_since_ms[NODE] = STARTED_MS
    run.timed_out("reader", call, ASKED_MS)
    (violation,) = run.laws.violations
    assert (violation.law, "METADATA v12 of reader" in violation.message) == (
        "requests are answered in time",
        True,
    )


def test_a_broker_that_was_away_need_not(run: RealRun) -> None:
    call = Call(NODE, ApiKey.METADATA, 12, MetadataRequest(), 60_000)
    run._runs_since_ms[NODE] = ASKED_MS + 1
    run.timed_out("reader", call, ASKED_MS)
    assert run.laws.violations == []
