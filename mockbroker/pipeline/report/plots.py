"""From measurements to drawings and tables of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mockbroker.pipeline.report.charts import (
    COLOURS,
    Bar,
    Interval,
    Lane,
    Mark,
    Point,
    Series,
    bars,
    lanes,
    lines,
    owner_colours,
)
from mockbroker.pipeline.report.model import Report, Row
from mockbroker.pipeline.report.words import at, printable, several

# The maximum number of drawings. The page shows the number of the others.
SERIES_MAX = 6
LANES_MAX = 40
BARS_MAX = 30
ROWS_MAX = 200
READ_COMMITTED = " (read_committed)"
NAME_CHARS_MAX = 1_000
_DURATIONS = {"took_ms", "stopped_ms", "recovery_ms"}
_HEADS: Mapping[str, str] = {
    "times": "times fired",
    "recovered": "requests recovered",
    "recovery_ms": "longest recovery, ms",
    "stopped_ms": "longest stop, ms",
}


class LegendEntry(NamedTuple):
    """The meaning of a colour."""

    name: str
    colour: int
    dashed: bool = False


class Drawing(NamedTuple):
    """A drawing with its caption and its legend."""

    caption: str
    svg: str
    legend: Sequence[LegendEntry] = ()


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    number: bool = False


class Plot(NamedTuple):
    """A section of the page: drawings, each with a caption, and a table."""

    title: str
    intro: str
    drawings: Sequence[Drawing]
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    left_out: str


def plots(report: Report) -> list[Plot]:
    """The sections of the measurements that have rows."""
    made = [
        how(list(report.measures[name]), report)
        for name, how in _PLOTS.items()
        if report.measures.get(name)
    ]
    return [plot for plot in made if plot.drawings or plot.rows]


def _lag(rows: list[Row], report: Report) -> Plot:
    whose = _by(rows, "run", "group", "topic", "partition")
    worst = sorted(whose, key=lambda key: -max((r["lag"] or 0) for r in whose[key]))
    drawings = []
    for run in dict.fromkeys(key[0] for key in worst):
        series: list[Series] = []
        for colour, key in enumerate([key for key in worst if key[0] == run][:SERIES_MAX]):
            name = _name(report, *key)
            for suffix, column in (("", "lag"), (READ_COMMITTED, "lag_read_committed")):
                points = [Point(r["virtual_ms"], r[column]) for r in whose[key]]
                series.append(Series(name + suffix, points, colour, dashed=bool(suffix)))
        legend = [LegendEntry(each.name, each.colour, each.dashed) for each in series]
        caption = "records behind, by the cluster's clock (UTC)"
        drawings.append(Drawing(caption, lines(series, "records"), legend))
    last = [whose[key][-1] for key in sorted(whose, key=str)]
    columns = ("group", "topic", "partition", "committed", "last_stable_offset", "high_watermark",
               "log_end_offset", "lag", "lag_read_committed")  # fmt: skip
    return Plot(
        "Lag",
        "Records behind the high watermark; dashed, behind the last stable offset, where "
        "read_committed consumers stop. The table has the end of the run.",
        drawings[:SERIES_MAX],
        *_table(last, columns, report),
        _left_out(len(worst), SERIES_MAX * len(drawings), "partition of a group", "drawn"),
    )


def _rebalances(rows: list[Row], report: Report) -> Plot:
    columns = ("group", "generation", "cause", "start_ms", "stable_ms", "back_ms", "took_ms",
               "stopped_ms", "members", "partitions", "moved")  # fmt: skip
    return Plot(
        "Rebalances",
        "From PreparingRebalance to the last member back at work, in ms of the cluster's clock. "
        "Stopped is the longest time within that in which no member was answered a Fetch.",
        (),
        *_table(rows, columns, report),
        _left_out(len(rows), ROWS_MAX, "rebalance"),
    )


def _ownership(rows: list[Row], report: Report) -> Plot:
    ends = {run.run: run.ended_virtual_ms for run in report.runs}
    drawings = []
    for (run, group), owned in _by(rows, "run", "group").items():
        end = max([ends.get(run, -1), *(r["to_ms"] or r["from_ms"] for r in owned)])
        of_lane = [
            Lane(f"{topic}-{partition}", [_interval(r, end) for r in mine])
            for (topic, partition), mine in _by(owned, "topic", "partition").items()
        ][:LANES_MAX]
        legend = [
            LegendEntry(_name(report, None, owner), colour)
            for owner, colour in list(owner_colours(of_lane).items())[:COLOURS]
        ]
        caption = f"{_name(report, run, group)}, by the cluster's clock (UTC)"
        drawings.append(Drawing(caption, lanes(of_lane, _marks(report, run, group)), legend))
    return Plot(
        "Who owned which partition",
        "A lane for each partition, a colour for each member; upright lines are rebalances.",
        drawings[:SERIES_MAX],
        (),
        (),
        _left_out(len(drawings), SERIES_MAX, "group"),
    )


def _marks(report: Report, run: str, group: str) -> list[Mark]:
    """The start of each rebalance of a group, and its reason."""
    return [
        Mark(f"rebalance {number}: {r['cause'] or 'no reason given'}", r["start_ms"])
        for number, r in enumerate(report.measures.get("rebalances", ()), 1)
        if (r["run"], r["group"]) == (run, group)
    ]


def _interval(row: Row, end: int) -> Interval:
    to_ms = end if row["to_ms"] is None else row["to_ms"]
    text = f"{row['member']} of generation {row['generation']}, {at(row['from_ms'])} to {at(to_ms)}"
    return Interval(str(row["member"]), row["from_ms"], max(to_ms, row["from_ms"]), text)


def _latency(rows: list[Row], report: Report) -> Plot:
    columns = ("api", "client_id", "requests", "p50_us", "p90_us", "p99_us", "max_us",
               "with_errors", "without_answer")  # fmt: skip
    slowest = sorted(rows, key=lambda r: -(r["p99_us"] or 0))
    values = [
        Bar(_name(report, r["run"], r["api"], r["client_id"]), (r["p99_us"] or 0) / 1000)
        for r in slowest[:BARS_MAX]
    ]
    return Plot(
        "Latency",
        "Of requests, by API and client, in real time, the slowest first; the bars are the 99th "
        "percentile.",
        [Drawing("99th percentile of a request, ms", bars(values, "ms"))],
        *_table(slowest, columns, report),
        _left_out(len(rows), ROWS_MAX, "row"),
    )


def _faults(rows: list[Row], report: Report) -> Plot:
    columns = ("rule", "effects", "times", "requests", "apis", "first_ms", "last_ms", "retries",
               "recovered", "recovery_ms")  # fmt: skip
    rows = [{**row, "rule": row["rule"] or "by hand"} for row in rows]
    longest = sorted(
        (r for r in rows if r["recovery_ms"] is not None), key=lambda r: -r["recovery_ms"]
    )
    values = [Bar(_name(report, r["run"], r["rule"]), r["recovery_ms"]) for r in longest[:BARS_MAX]]
    return Plot(
        "Faults and what they did",
        "Requests that a rule touched, those of them whose client got a good answer later, and the "
        "longest wait for it on the cluster's clock.",
        [Drawing("longest recovery, ms of the cluster's clock", bars(values, "ms"))]
        if values
        else (),
        *_table(rows, columns, report),
        _left_out(len(rows), ROWS_MAX, "rule"),
    )


def _skew(rows: list[Row], report: Report) -> Plot:
    columns = ("topic", "partition", "records", "share", "skew", "keys", "records_of_hottest_key",
               "without_key")  # fmt: skip
    fullest = sorted(rows, key=lambda r: -r["records"])[:BARS_MAX]
    values = [
        Bar(_name(report, r["run"], f"{r['topic']}-{r['partition']}"), r["records"])
        for r in fullest
    ]
    return Plot(
        "Skew",
        "Records of each partition. A skew of 1 is an even share.",
        [Drawing("records of a partition", bars(values, "records"))],
        *_table(rows, columns, report),
        _left_out(len(rows), ROWS_MAX, "partition"),
    )


_PLOTS: Mapping[str, Callable[[list[Row], Report], Plot]] = {
    "lag": _lag,
    "rebalances": _rebalances,
    "ownership": _ownership,
    "latency": _latency,
    "faults": _faults,
    "skew": _skew,
}


def _by(rows: Sequence[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows grouped by the values of these columns, in order of appearance."""
    together: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        together.setdefault(tuple(row[column] for column in columns), []).append(row)
    return together


def _name(report: Report, run: object, *words: object) -> str:
    """A name for a line or bar, uncut, with the run if there are several."""
    shown = [printable(word, NAME_CHARS_MAX) for word in words if word is not None]
    named = len(report.runs) > 1 and run is not None
    return " ".join([printable(run, NAME_CHARS_MAX), *shown] if named else shown)


def _table(
    rows: Sequence[Row], columns: Sequence[str], report: Report
) -> tuple[Sequence[str], Sequence[Sequence[Cell]]]:
    names = ("run", *columns) if len(report.runs) > 1 else columns
    return [_head(name) for name in names], [
        [_cell(name, row.get(name)) for name in names] for row in rows[:ROWS_MAX]
    ]


def _head(column: str) -> str:
    """A column's name, with the unit of a duration."""
    if column in _HEADS:
        return _HEADS[column]
    if column.endswith("_us"):
        return f"{column.removesuffix('_us')}, µs"
    if column in _DURATIONS:
        return f"{column.removesuffix('_ms')}, ms"
    return column.removesuffix("_ms").replace("_", " ")


def _cell(column: str, value: object) -> Cell:
    if value is None:
        return Cell("")
    if column.endswith("_ms") and column not in _DURATIONS:
        return Cell(at(int(str(value))), number=True)
    if isinstance(value, int):
        return Cell(f"{value:,}", number=True)
    return Cell(printable(value), number=isinstance(value, float))


def _left_out(count: int, most: int, one: str, done: str = "shown") -> str:
    return f"{several(count - most, one)} more, not {done}" if count > most else ""
