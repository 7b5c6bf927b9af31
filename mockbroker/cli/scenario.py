"""`mockbroker scenario run FILE [-- COMMAND]`: a cluster, steps and checks.

The command runs beside the steps, with the cluster's addresses in `MOCKBROKER_BOOTSTRAP` and
`MOCKBROKER_ADMIN`. The checks follow the last step and the end of the command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import click
import msgspec
import trio

from mockbroker.cli.admin_client import read_data
from mockbroker.cli.admin_options import LOCAL_ADMIN
from mockbroker.cli.programs import run_program
from mockbroker.cli.scenario_file import ParsedStep, Scenario, Wait, parse_scenario
from mockbroker.cli.serving import serving
from mockbroker.core.actions import ACTIONS
from mockbroker.core.errors import ActionError, ApiError, ConfigError, first_error
from mockbroker.core.faults.engine import engine_of
from mockbroker.core.faults.errors import NameTakenError
from mockbroker.core.faults.rules import FaultPlan
from mockbroker.core.journal.events import one_line
from mockbroker.core.journal.filters import EventMatcher
from mockbroker.core.journal.reader import JournalReader
from mockbroker.core.journal.verify import Expectation, JournalGapError, explain, verify
from mockbroker.core.journal.waiting import Waiter
from mockbroker.core.quiescence import QuiescenceWatch, unsettled
from mockbroker.core.validation import ValidationError
from mockbroker.server.clock import real_time
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from mockbroker.server.cluster_server import ClusterServer
from mockbroker.server.config import ServerError

BAD_USAGE = 2
# The events of the journal that are printed after a failure.
TIMELINE = ("fault", "action", "clock", "broker", "election", "group", "transaction", "commit")
TIMELINE_EVENTS_MAX = 40


class ScenarioFailedError(Exception):
    """A step, a check or the command failed. `status` is the exit code for it."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class Run:
    """One run of a scenario, in the cluster's trio run, with a method for each kind of step.

    `command_ended` is set when the command that runs beside the steps has ended.
    """

    def __init__(self, server: ClusterServer) -> None:
        self.command_ended = trio.Event()
        self._server = server
        self._cluster = server.cluster
        journal = server.cluster.runtime.journal
        assert journal is not None  # the default
        self._journal = journal
        self._reader = JournalReader(journal, server.cluster.topic_name)

    async def step(self, step: ParsedStep) -> None:
        """Carry out a step. Raises ScenarioFailedError."""
        try:
            await getattr(self, step.kind)(step.value)
        except (ActionError, ApiError, NameTakenError, ValueError) as error:
            raise ScenarioFailedError(str(error)) from None

    async def wait(self, wait: Wait) -> None:
        matcher = EventMatcher(wait.match, self._cluster.runtime.now_ms())
        enough = trio.Event()
        waiter = Waiter(self._journal, self._reader, matcher, wait.count, enough.set)
        try:
            with real_time.move_on_after(wait.timeout / 1000):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._cancel_after_command, nursery.cancel_scope)
                    await enough.wait()
                    nursery.cancel_scope.cancel()
        finally:
            waiter.stop()
        if not enough.is_set():
            when = (
                "when the command has ended"
                if self.command_ended.is_set()
                else f"after {wait.timeout} ms of real time"
            )
            raise ScenarioFailedError(f"{len(waiter.found)} events match {when}, not {wait.count}")

    async def _cancel_after_command(self, scope: trio.CancelScope) -> None:
        """Cancel once the command has ended and the cluster is at rest after it."""
        await self.command_ended.wait()
        await self._settled()
        scope.cancel()

    async def settle(self, timeout_ms: int) -> None:
        with real_time.move_on_after(timeout_ms / 1000) as scope:
            await self._settled()
        if scope.cancelled_caught:
            raise ScenarioFailedError("; ".join(unsettled(self._cluster)))

    async def _settled(self) -> None:
        """Wait until the cluster is at rest."""
        settled = trio.Event()
        watch = QuiescenceWatch(self._cluster, settled.set)
        try:
            await settled.wait()
        finally:
            watch.stop()

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
    """Run it. Raises ScenarioFailedError after printing the timeline."""
    async with serving(scenario.config, LOCAL_ADMIN) as cluster:
        run = Run(cluster.server)
        try:
            if scenario.plan is not None:
                await run.step(ParsedStep("faults", "", scenario.plan))
            await cluster.start_admin()
            async with trio.open_nursery() as nursery:
                if command:
                    nursery.start_soon(_run_command, run, command, cluster.environment())
                await _steps(run, scenario.steps)
            for number, check in enumerate(scenario.checks):
                await run.step(ParsedStep("verify", "", check))
                click.echo(f"{run.now()} checks[{number}] holds")
        except* ScenarioFailedError as failures:
            for line in run.timeline():
                click.echo(f"  {line}")
            first = first_error(failures)
            assert isinstance(first, ScenarioFailedError)
            raise ScenarioFailedError(str(first), first.status) from None


async def _steps(run: Run, steps: tuple[ParsedStep, ...]) -> None:
    for number, step in enumerate(steps):
        click.echo(f"{run.now()} steps[{number}] {step.kind} {step.words}")
        try:
            await run.step(step)
        except ScenarioFailedError as error:
            raise ScenarioFailedError(f"steps[{number}].{step.kind}: {error}") from None


async def _run_command(run: Run, command: tuple[str, ...], addresses: Mapping[str, str]) -> None:
    try:
        status = await run_program(command, os.environ | addresses)
    except OSError as error:
        raise ScenarioFailedError(f"{command[0]}: {error.strerror}") from None
    if status != 0:
        raise ScenarioFailedError(f"{command[0]} ended with {status}", status)
    run.command_ended.set()


@click.group(no_args_is_help=True)
def scenario() -> None:
    """Play scenarios: a cluster, faults, steps and checks in one file."""


@scenario.command(context_settings={"ignore_unknown_options": True})
@click.argument("file")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
def run(file: str, command: tuple[str, ...]) -> None:
    """Play FILE (- is standard input), with COMMAND beside it.

    The exit code is COMMAND's if that failed, and 1 if a step or a check did. A step that waits for
    an event ends when COMMAND has ended and the cluster is at rest.
    """
    data = read_data(file)
    try:
        wanted = parse_scenario(data)
    except (ValidationError, ServerError) as error:
        raise click.UsageError(f"{file}: {error}") from None
    try:
        trio.run(play, wanted, command, clock=AdjustableClock())
    except* ScenarioFailedError as failures:
        first = first_error(failures)
        assert isinstance(first, ScenarioFailedError)
        click.echo(f"failed: {first}", err=True)
        sys.exit(first.status)
    except* (ServerError, ConfigError) as errors:
        click.echo(f"mockbroker: {file}: {first_error(errors)}", err=True)
        sys.exit(BAD_USAGE)
    click.echo("ok")
