"""Plans that are lived through over connections."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import Any

import msgspec
import pytest

from mockbroker.handlers.base import Parked
from mockbroker.simulation import stream_run
from mockbroker.simulation.laws.base import NO_FAILURES, TIME_GOES_ON
from mockbroker.simulation.plan import ClientSettings, Plan, Settings, Step, TopicSettings
from mockbroker.simulation.running import PlanResult, run, simulate
from mockbroker.simulation.stream_driver import Troubles
from mockbroker_protocol import ApiKey
from tests.support.handlers import replace_handler

SMOKE_SEEDS = range(20, 26)


def plan(*steps: Step, seed: int = 1, duration_ms: int = 4_000, operations: int = 25) -> Plan:
    """Two producers, a reader and two members of a group, with these steps."""
    orders = TopicSettings(name="orders", partitions=2, replication_factor=3)
    topics = ["orders"]
    pause_ms = (50, 150)
    clients = [
        ClientSettings(
            kind=kind,  # type: ignore[arg-type]
            name=name,
            topics=topics,
            operations=operations,
            pause_ms=pause_ms,
            group="group" if kind == "classic" else "",
        )
        for kind, name in (
            ("producer", "first"),
            ("producer", "second"),
            ("reader", "reader"),
            ("classic", "one"),
            ("classic", "other"),
        )
    ]
    settings = Settings(topics=[orders], duration_ms=duration_ms)
    return Plan(seed=seed, settings=settings, clients=clients, steps=list(steps))


def over_streams(plan: Plan) -> PlanResult:
    return run(plan, mode="streams")


def test_a_quiet_plan_keeps_every_law() -> None:
    outcome = over_streams(plan())
    assert outcome.violations == []
    assert outcome.counts["batches acknowledged"] >= 50  # and some that are sent again
    assert outcome.counts["wires: connections"] >= 5


def test_the_same_plan_gives_the_same_run() -> None:
    steps = [
        Step(at_ms=500, do="stop_broker", arguments={"node": 2, "how": "unclean"}),
        Step(at_ms=1_500, do="start_broker", arguments={"node": 2}),
    ]
    digests = [over_streams(plan(*steps, seed=seed)).digest for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("seed", SMOKE_SEEDS)
def test_the_laws_hold_for_plans_of_seeds(seed: int) -> None:
    assert simulate(seed, mode="streams").violations == []


def test_clients_go_on_whatever_happens_to_the_cluster() -> None:
    """It is restarted, put back, paused; a client dies and another takes its place."""
    steps = [
        Step(at_ms=300, do="snapshot"),
        Step(at_ms=600, do="pause_broker", arguments={"node": 1}),
        Step(at_ms=900, do="resume_broker", arguments={"node": 1}),
        Step(at_ms=1_200, do="restart"),
        Step(at_ms=1_500, do="crash_client", arguments={"client": "one"}),
        Step(at_ms=1_800, do="restore"),
        Step(at_ms=2_100, do="set_clock", arguments={"advance": "2s"}),
        Step(at_ms=5_000, do="remove_broker", arguments={"node": 3}),
    ]
    outcome = over_streams(plan(*steps, duration_ms=6_000, operations=40))
    assert outcome.violations == []
    done = {name: count for name, count in outcome.counts.items() if name.startswith("step ")}
    assert done == {f"step {step.do}": 1 for step in steps}
    assert outcome.counts["calls disconnected"] > 0


def test_steps_behind_the_end_are_not_performed() -> None:
    late = Step(at_ms=5_000, do="restart")
    assert "step restart" not in over_streams(plan(late, duration_ms=1_000)).counts


def test_rules_meddle_with_the_bytes_of_answers() -> None:
    """Only this mode can: nothing of it is held against the brokers."""
    rule = {
        "match": {"api": "Metadata"},
        "when": {"times": 3},
        "do": {"corrupt_reply": {"how": "garbage"}},
    }
    outcome = over_streams(plan(Step(at_ms=0, do="add_rule", arguments=rule)))
    assert outcome.violations == []
    assert outcome.counts["calls disconnected"] >= 1


def test_an_answer_that_no_broker_may_give_is_a_violation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a rule there is no excuse for it."""
    from mockbroker.server.network.connection import Connection

    framed = Connection.frame

    def frame_for_another(self: Connection, *answer: Any) -> Any:
        parts = framed(self, *answer)
        if not parts:
            return parts
        head, *body = parts
        correlation_id = int.from_bytes(head[4:8], "big") + 1
        return (head[:4] + correlation_id.to_bytes(4, "big") + head[8:], *body)

    monkeypatch.setattr(Connection, "frame", frame_for_another)
    assert stream_run.FITTING in over_streams(plan(operations=2)).laws


def test_what_a_broker_logs_as_an_error_is_a_violation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And only that: clients that break off in the middle are none."""

    def fail(_context: object, _request: object) -> object:
        raise ZeroDivisionError("broken")

    replace_handler(monkeypatch, ApiKey.METADATA, fail)
    outcome = over_streams(plan(duration_ms=500, operations=1))
    assert NO_FAILURES in outcome.laws
    assert "ZeroDivisionError: broken" in outcome.violations[0].message
    logging.getLogger("mockbroker").error("heard again")
    here = [each for each in caplog.records if each.thread == threading.get_ident()]
    assert [each.getMessage() for each in here] == ["heard again"]


def test_a_broker_that_is_silent_without_a_reason_breaks_a_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wait_for_ever(_context: object, _request: object) -> object:
        return Parked()

    replace_handler(monkeypatch, ApiKey.FETCH, wait_for_ever)
    assert "requests are answered in time" in over_streams(plan(operations=1)).laws


@pytest.mark.parametrize("at_ms", [700, 1_000])
def test_requests_may_wait_while_the_clock_is_moved_on(at_ms: int) -> None:
    """A Fetch that waits at the end of the log is answered when the clock has arrived, by which
    time its client has given it up.
    """
    wanted = plan(Step(at_ms=at_ms, do="set_clock", arguments={"advance": 20_000}))
    reader = next(each for each in wanted.clients if each.kind == "reader")
    wanted = msgspec.structs.replace(wanted, clients=[reader])
    outcome = over_streams(wanted)
    assert outcome.counts["calls timed out"]
    assert outcome.violations == []


def test_connections_break_no_more_when_the_faults_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_run, "Troubles", partial(Troubles, break_before_share=1.0))
    outcome = over_streams(plan(duration_ms=500, operations=3))
    assert outcome.counts["wires: break_before"] >= 5
    assert outcome.counts["batches acknowledged"] >= 6
    assert outcome.violations == []


def test_a_run_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_run, "STEPS_MAX", 500)
    outcome = over_streams(plan())
    assert outcome.laws == [TIME_GOES_ON]
    assert "500 steps" in outcome.violations[0].message


def test_a_fault_of_the_core_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is, and not in a group: by a timer, or by a law that cannot judge."""
    from mockbroker.simulation.laws import Laws

    def fail(_laws: Laws) -> None:
        raise ZeroDivisionError("cannot judge")

    monkeypatch.setattr(Laws, "look", fail)
    with pytest.raises(ZeroDivisionError, match="cannot judge"):
        over_streams(plan())
