"""`mockbroker scenario run FILE [-- COMMAND]`: a cluster, steps and checks.

The command runs beside the steps, with the cluster's addresses in `MOCKBROKER_BOOTSTRAP` and
`MOCKBROKER_ADMIN`. The checks follow the last step and the end of the command.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import click
import msgspec
import trio

from mockbroker.cli.admin_client import read_data
from mockbroker.cli.own_cluster import addresses_of
from mockbroker.cli.scenario_file import Scenario, ScenarioStep, Wait, parse_scenario
from mockbroker.core.actions import ACTIONS
from mockbroker.core.errors import ActionError, ApiError, ConfigError, first_error
from mockbroker.core.faults.engine import engine_of
from mockbroker.core.faults.errors import NameTakenError
from mockbroker.core.faults.rules import FaultPlan
from mockbroker.core.journal.filters import EventMatcher
from mockbroker.core.journal.reader import JournalReader
from mockbroker.core.journal.verify import Expectation, JournalGapError, explain, one_line, verify
from mockbroker.core.journal.waiting import Waiter
from mockbroker.core.quiescence import QuiescenceWatch, unsettled
from mockbroker.core.validation import ValidationError
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from mockbroker.server.cluster_server import ClusterServer, open_server
from mockbroker.server.config import ServerError

BAD_USAGE = 2
# The events of the journal that are printed after a failure.
TIMELINE = ("fault", "action", "clock", "broker", "election", "group", "transaction", "commit")
TIMELINE_EVENTS_MAX = 40


class ScenarioFailedError(Exception):
    """A step, a check or the command failed."""


class Run:
    """One run of a scenario, in the cluster's trio run, with a method for each kind of step."""

    def __init__(self, server: ClusterServer) -> None:
        self._server = server
        self._cluster = server.cluster
        journal = server.cluster.runtime.journal
        assert journal is not None  # the default
        self._journal = journal
        self._reader = JournalReader(journal, server.cluster.topic_name)

    async def step(self, step: ScenarioStep) -> None:
        """Carry out a step. Raises ScenarioFailedError."""
        try:
            await getattr(self, step.kind)(step.value)
        except (ActionError, ApiError, NameTakenError, ValueError) as error:
            raise ScenarioFailedError(str(error)) from None

    async def wait(self, wait: Wait) -> None:
        matcher = EventMatcher(wait.match, self._cluster.runtime.now_ms())
        enough = threading.Event()
        waiter = Waiter(self._journal, self._reader, matcher, wait.count, enough.set)
        try:
            # Waiting is in real time, whatever the cluster's clock does.
            await trio.to_thread.run_sync(enough.wait, wait.timeout / 1000, abandon_on_cancel=True)
        finally:
            waiter.stop()
        if not enough.is_set():
            raise ScenarioFailedError(
                f"{len(waiter.found)} events match after {wait.timeout} ms of real time, "
                f"not {wait.count}"
            )

    async def settle(self, timeout_ms: int) -> None:
        settled = threading.Event()
        watch = QuiescenceWatch(self._cluster, settled.set)
        try:
            await trio.to_thread.run_sync(settled.wait, timeout_ms / 1000, abandon_on_cancel=True)
        finally:
            watch.stop()
        if not settled.is_set():
            raise ScenarioFailedError("; ".join(unsettled(self._cluster)))

    async def action(self, value: tuple[str, msgspec.Struct]) -> None:
        name, arguments = value
        self._cluster.perform(ACTIONS[name], arguments)

    async def faults(self, plan: FaultPlan) -> None:
        engine_of(self._cluster).add(plan)

    async def clear_faults(self, value: bool) -> None:
        if value:
            engine_of(self._cluster).clear()

    async def advance(self, milliseconds: int) -> None:
        await self._server.advance_clock(milliseconds)

    async def freeze(self, value: bool) -> None:
        self._server.set_clock_rate(0.0 if value else 1.0)

    async def verify(self, wanted: Expectation) -> None:
        try:
            events = self._reader.events(wanted.after_seq)
            verdict = verify(wanted, events, self._cluster.runtime.now_ms())
        except JournalGapError as error:
            raise ScenarioFailedError(str(error)) from None
        if not verdict.holds:
            raise ScenarioFailedError(explain(verdict))

    def timeline(self) -> Iterator[str]:
        """The last events of the kinds that explain a failure."""
        events = self._reader.events(messages=False)
        found = [event for event in events if event.kind in TIMELINE]
        for event in found[-TIMELINE_EVENTS_MAX:]:
            yield f"{_clock_time(event.virtual_ms)} {one_line(event)}"

    def now(self) -> str:
        return _clock_time(self._cluster.runtime.now_ms())


def _clock_time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


async def play(scenario: Scenario, command: tuple[str, ...]) -> None:
    """Run it. Raises ScenarioFailedError, after the timeline was printed."""
    async with open_server(scenario.config) as server:
        run = Run(server)
        try:
            if scenario.plan is not None:
                await run.step(ScenarioStep("faults", "", scenario.plan))
            with addresses_of(server) as addresses:
                async with trio.open_nursery() as nursery:
                    if command:
                        nursery.start_soon(_run_command, command, addresses)
                    await _steps(run, scenario.steps)
            for number, check in enumerate(scenario.checks):
                await run.step(ScenarioStep("verify", "", check))
                click.echo(f"{run.now()} checks[{number}] holds")
        except* ScenarioFailedError as failures:
            for line in run.timeline():
                click.echo(f"  {line}")
            raise ScenarioFailedError(str(first_error(failures))) from None


async def _steps(run: Run, steps: tuple[ScenarioStep, ...]) -> None:
    for number, step in enumerate(steps):
        click.echo(f"{run.now()} steps[{number}] {step.kind} {step.words}")
        try:
            await run.step(step)
        except ScenarioFailedError as error:
            raise ScenarioFailedError(f"steps[{number}].{step.kind}: {error}") from None


async def _run_command(command: tuple[str, ...], addresses: Mapping[str, str]) -> None:
    try:
        done = await trio.run_process(list(command), env=os.environ | addresses, check=False)
    except OSError as error:
        raise ScenarioFailedError(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise ScenarioFailedError(f"{command[0]} ended with {done.returncode}")


@click.group(no_args_is_help=True)
def scenario() -> None:
    """Play scenarios: a cluster, faults, steps and checks in one file."""


@scenario.command(context_settings={"ignore_unknown_options": True})
@click.argument("file")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
def run(file: str, command: tuple[str, ...]) -> None:
    """Play FILE (- is standard input), with COMMAND beside it; exit with 1 if anything failed."""
    data = read_data(file)
    try:
        wanted = parse_scenario(data)
    except (ValidationError, ServerError) as error:
        raise click.UsageError(f"{file}: {error}") from None
    try:
        trio.run(play, wanted, command, clock=AdjustableClock())
    except* ScenarioFailedError as failures:
        click.echo(f"failed: {first_error(failures)}", err=True)
        sys.exit(1)
    except* (ServerError, ConfigError) as errors:
        click.echo(f"mockbroker: {file}: {first_error(errors)}", err=True)
        sys.exit(BAD_USAGE)
    click.echo("ok")
