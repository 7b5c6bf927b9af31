"""The results for people (table, plot) and for programs (JSON)."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.goals import GOALS, OURS, Verdict, judge, ratios
from bench.model import Measure, Peer
from bench.placement import can_separate
from bench.run import Results

WIDTH = 200


def verdicts(results: Results, measures: Sequence[Measure]) -> list[Verdict]:
    """The verdict on each goal whose measure was part of the run."""
    by_name = {measure.name: measure for measure in measures}
    return [
        judge(goal, results, by_name[goal.measure].unit)
        for goal in GOALS
        if goal.measure in by_name
    ]


def print_table(
    results: Results, measures: Sequence[Measure], peers: Sequence[Peer], console: Console
) -> None:
    """Each measure with the peers' medians and spreads, the goals and whether they are met."""
    table = Table(title="median (least … most)", title_justify="left")
    table.add_column("measure")
    for peer in peers:
        table.add_column(peer.title, justify="right")
    table.add_column("goal")
    table.add_column("reached", justify="right")
    table.add_column("")
    judged = verdicts(results, measures)
    for measure in measures:
        figures = [_figure(results, measure, peer.name) for peer in peers]
        ours = [verdict for verdict in judged if verdict.goal.measure == measure.name]
        if not any(figures) and not ours:
            continue
        table.add_row(
            measure.title,
            *figures,
            "\n".join(verdict.goal.words(measure.unit) for verdict in ours),
            "\n".join(_reached(verdict, measure) for verdict in ours),
            "\n".join(_word(verdict) for verdict in ours),
        )
    console.print(table)
    for name, why in results.missing.items():
        console.print(f"{name} is missing: {why}", markup=False)
    for (workload, name), why in results.failures.items():
        console.print(f"{workload} on {name} failed: {why}", markup=False)
    met = sum(verdict.met is True for verdict in judged)
    console.print(f"{met} of {len(judged)} goals met; load now {os.getloadavg()[0]:.1f}")


def _figure(results: Results, measure: Measure, peer: str) -> str:
    values = results.values(measure.name, peer)
    if not values:
        return ""
    unit = measure.unit
    low, high = (f"{f(values) * unit.factor:,.{unit.digits}f}" for f in (min, max))
    return f"{unit.text(statistics.median(values))} ({low} … {high})"


def _reached(verdict: Verdict, measure: Measure) -> str:
    if verdict.value is None:
        return ""
    return f"{verdict.value:.2f}×" if verdict.goal.peers else measure.unit.text(verdict.value)


def _word(verdict: Verdict) -> str:
    return {True: "[green]met[/]", False: "[red]missed[/]", None: "[dim]not measured[/]"}[
        verdict.met
    ]


def write_json(
    path: Path, results: Results, measures: Sequence[Measure], peers: Sequence[Peer], scale: str
) -> None:
    """Every figure, the ratios to each peer and the verdicts; seconds, bytes, bytes per second."""
    document = {
        "machine": {
            "system": platform.platform(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "latencies_on_separate_cores": can_separate(),
        },
        "scale": scale,
        "measures": {
            measure.name: {
                "title": measure.title,
                "better": measure.unit.better,
                "figures": {peer.name: results.values(measure.name, peer.name) for peer in peers},
                "ratios": {
                    peer.name: ratios(results, measure.name, [peer.name], measure.unit.better)
                    for peer in peers
                    if peer.name != OURS
                },
            }
            for measure in measures
        },
        "goals": [
            {
                "measure": verdict.goal.measure,
                "bound": verdict.goal.bound,
                "peers": verdict.goal.peers,
                "value": verdict.value,
                "met": verdict.met,
            }
            for verdict in verdicts(results, measures)
        ],
        "missing": results.missing,
        "failures": {f"{each} on {peer}": why for (each, peer), why in results.failures.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def write_plot(path: Path, results: Results, measures: Sequence[Measure]) -> bool:
    """A bar for each goal: how far mockbroker is beyond the bound, which is the line at 1.

    Returns False without matplotlib.
    """
    try:
        import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    by_name = {measure.name: measure for measure in measures}
    labels, margins = [], []
    for verdict in verdicts(results, measures):
        if verdict.value is None:
            continue
        measure, goal = by_name[verdict.goal.measure], verdict.goal
        higher = measure.unit.better == "higher"
        margins.append(verdict.value / goal.bound if higher else goal.bound / verdict.value)
        labels.append(f"{measure.title}  {goal.words(measure.unit)}")
    figure, axes = plt.subplots(figsize=(10, 0.8 + 0.32 * max(1, len(labels))))
    colours = ["#2a9d5c" if margin >= 1 else "#c8553d" for margin in margins]
    axes.barh(range(len(labels)), [margin - 1 for margin in margins], left=1, color=colours)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(min([0.5, *margins]) * 0.9, max([2.0, *margins]) * 1.3)
    ticks = [0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xlabel("times better than the goal asks (1 = the goal)")
    for row, margin in enumerate(margins):
        text = f" {margin:.2f}" if margin >= 1 else f"{margin:.2f} "
        side = "left" if margin >= 1 else "right"
        axes.annotate(text, (margin, row), va="center", ha=side, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return True
