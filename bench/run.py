"""The run: which workload meets which peer when, and what came of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from bench.model import Figures, Peer, Running, Scale, UnavailableError, Workload

# What a turn may die of without ending the run: a peer that is missing or gives up, a client
# that fails or is refused, a connection that breaks.
_TURN_ERRORS = (UnavailableError, RuntimeError, OSError)


Start = Callable[[], AbstractContextManager[Running]]


@dataclass
class Results:
    """Every figure of a run, and what could not be measured."""

    figures: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)
    """(measure, peer) → round → figure."""
    missing: dict[str, str] = field(default_factory=dict)
    """Peer or workload → why it is not there."""
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    """(workload, peer) → why its turn failed."""

    def add(self, round_number: int, peer: str, figures: Figures) -> None:
        for measure, figure in figures.items():
            self.figures.setdefault((measure, peer), {})[round_number] = figure

    def values(self, measure: str, peer: str) -> list[float]:
        """The peer's figures, one for each round it took."""
        return list(self.figures.get((measure, peer), {}).values())

    def rounds(self, measure: str) -> list[dict[str, float]]:
        """For each round the figures by peer."""
        found: dict[int, dict[str, float]] = {}
        for (name, peer), figures in self.figures.items():
            if name == measure:
                for number, figure in figures.items():
                    found.setdefault(number, {})[peer] = figure
        return [found[number] for number in sorted(found)]


def run(
    workloads: Sequence[Workload],
    peers: Sequence[Peer],
    scale: Scale,
    say: Callable[[str], None],
) -> Results:
    """Take every workload through its rounds; what is missing or fails is in the results.

    A KeyboardInterrupt ends the run early, with what has been measured so far.
    """
    results = Results()
    try:
        _run(workloads, peers, scale, results, say)
    except KeyboardInterrupt:
        say("interrupted: the results are those of the rounds that were done")
    return results


def _run(
    workloads: Sequence[Workload],
    peers: Sequence[Peer],
    scale: Scale,
    results: Results,
    say: Callable[[str], None],
) -> None:
    available = [peer for peer in peers if _prepared(peer.name, peer.prepare, results, say)]
    ready = [each for each in workloads if _prepared(each.name, each.prepare, results, say)]
    for workload in ready:
        if workload.fresh:
            _rounds(workload, [(peer, peer.start) for peer in available], scale, results, say)
    shared = [workload for workload in ready if not workload.fresh]
    if shared:
        with contextlib.ExitStack() as stack:
            turns: list[tuple[Peer, Start]] = []
            for peer in available:
                try:
                    running = stack.enter_context(peer.start())
                except _TURN_ERRORS as error:
                    results.missing[peer.name] = str(error)
                    say(f"{peer.name}: {error}")
                else:
                    turns.append((peer, _again(running)))
            for workload in shared:
                _rounds(workload, turns, scale, results, say)


def _again(running: Running) -> Start:
    """What gives every turn the same running peer."""
    return lambda: contextlib.nullcontext(running)


def _prepared(
    name: str, prepare: Callable[[], None], results: Results, say: Callable[[str], None]
) -> bool:
    try:
        prepare()
    except _TURN_ERRORS as error:
        results.missing[name] = str(error)
        say(f"{name}: {error}")
        return False
    return True


def _rounds(
    workload: Workload,
    peers: Iterable[tuple[Peer, Start]],
    scale: Scale,
    results: Results,
    say: Callable[[str], None],
) -> None:
    """One round to warm up (JVMs compile, files are read), then those that count."""
    turns = [turn for turn in peers if turn[0].name not in workload.excluded]
    for number in range(scale.rounds + 1):
        # Back and forth, so that nobody always comes first.
        for peer, start in turns if number % 2 == 0 else turns[::-1]:
            if (workload.name, peer.name) in results.failures:
                continue
            try:
                with start() as running:
                    figures = workload.run(running, scale)
            except _TURN_ERRORS as error:
                results.failures[workload.name, peer.name] = str(error)
                say(f"{workload.name} on {peer.name} failed: {error}")
                continue
            if number > 0:
                results.add(number, peer.name, figures)
        say(f"{workload.name}: " + (f"round {number} of {scale.rounds}" if number else "warm"))
