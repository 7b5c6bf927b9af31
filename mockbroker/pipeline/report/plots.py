"""From measurements to drawings and tables of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mockbroker.pipeline.report.charts import Interval, Point, bars, lanes, lines
from mockbroker.pipeline.report.model import Report, Row
from mockbroker.pipeline.report.words import at, printable, several

# More would be unreadable. The page says how many are left out.
SERIES_MAX = 6
LANES_MAX = 40
BARS_MAX = 30
ROWS_MAX = 200
READ_COMMITTED = " (read_committed)"


class Plot(NamedTuple):
    """A section of the page: drawings, each with a caption, and a table."""

    title: str
    intro: str
    drawings: Sequence[tuple[str, str]]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
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
        series: dict[str, list[Point]] = {}
        for key in [key for key in worst if key[0] == run][:SERIES_MAX]:
            name = _name(report, *key)
            series[name] = [Point(r["virtual_ms"], r["lag"]) for r in whose[key]]
            series[name + READ_COMMITTED] = [
                Point(r["virtual_ms"], r["lag_read_committed"]) for r in whose[key]
            ]
        legend = "; ".join(name for name in series if not name.endswith(READ_COMMITTED))
        drawings.append((legend, lines(series, dashed=READ_COMMITTED)))
    last = [whose[key][-1] for key in sorted(whose, key=str)]
    columns = ("group", "topic", "partition", "committed", "last_stable_offset", "high_watermark",
               "log_end_offset", "lag", "lag_read_committed")  # fmt: skip
    return Plot(
        "Lag",
        "Records behind the high watermark; dashed, behind the last stable offset, which is as far "
        "as read_committed consumers get. The table tells the end.",
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
        of_lane: dict[str, list[Interval]] = {}
        for (topic, partition), mine in _by(owned, "topic", "partition").items():
            of_lane[f"{topic}-{partition}"] = [_interval(r, end) for r in mine]
        shown = dict(list(of_lane.items())[:LANES_MAX])
        drawings.append((_name(report, run, group), lanes(shown, _marks(report, run, group))))
    return Plot(
        "Who owned which partition",
        "A lane for each partition, a colour for each member; upright lines are rebalances.",
        drawings[:SERIES_MAX],
        (),
        (),
        _left_out(len(drawings), SERIES_MAX, "group"),
    )


def _marks(report: Report, run: str, group: str) -> dict[str, int]:
    """The starts of a group's rebalances, with their reasons."""
    return {
        f"rebalance {number}: {r['cause'] or 'no reason given'}": r["start_ms"]
        for number, r in enumerate(report.measures.get("rebalances", ()), 1)
        if (r["run"], r["group"]) == (run, group)
    }


def _interval(row: Row, end: int) -> Interval:
    to_ms = end if row["to_ms"] is None else row["to_ms"]
    text = f"{row['member']} of generation {row['generation']}, {at(row['from_ms'])} to {at(to_ms)}"
    return Interval(str(row["member"]), row["from_ms"], max(to_ms, row["from_ms"]), text)


def _latency(rows: list[Row], report: Report) -> Plot:
    columns = ("api", "client_id", "requests", "p50_us", "p90_us", "p99_us", "max_us",
               "with_errors", "without_answer")  # fmt: skip
    slowest = sorted(rows, key=lambda r: -(r["p99_us"] or 0))[:BARS_MAX]
    values = {
        _name(report, r["run"], r["api"], r["client_id"]): (r["p99_us"] or 0) / 1000
        for r in slowest
    }
    return Plot(
        "Latency",
        "Of requests, by API and client, in real time; the bars are the 99th percentile.",
        [("99th percentile, ms", bars(values, unit=" ms"))],
        *_table(rows, columns, report),
        _left_out(len(rows), ROWS_MAX, "row"),
    )


def _faults(rows: list[Row], report: Report) -> Plot:
    columns = ("rule", "effects", "times", "requests", "apis", "first_ms", "last_ms", "retries",
               "recovered", "recovery_ms")  # fmt: skip
    values = {
        _name(report, r["run"], r["rule"] or "by hand"): r["recovery_ms"]
        for r in rows
        if r["recovery_ms"] is not None
    }
    return Plot(
        "Faults and what they did",
        "Requests hit, clients that got a good answer again, and the longest that one waited for "
        "it on the cluster's clock.",
        [("longest recovery, ms", bars(dict(list(values.items())[:BARS_MAX]), unit=" ms"))]
        if values
        else (),
        *_table(rows, columns, report),
        _left_out(len(rows), ROWS_MAX, "rule"),
    )


def _skew(rows: list[Row], report: Report) -> Plot:
    columns = ("topic", "partition", "records", "share", "skew", "keys", "records_of_hottest_key",
               "without_key")  # fmt: skip
    fullest = sorted(rows, key=lambda r: -r["records"])[:BARS_MAX]
    values = {
        _name(report, r["run"], f"{r['topic']}-{r['partition']}"): r["records"] for r in fullest
    }
    return Plot(
        "Skew",
        "Records of each partition. A skew of 1 is an even share.",
        [("records", bars(values))],
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
    """A name for a line or bar, with the run if there are several."""
    shown = [printable(word, 60) for word in words if word is not None]
    return " ".join([printable(run, 60), *shown] if len(report.runs) > 1 else shown)


def _table(
    rows: Sequence[Row], columns: Sequence[str], report: Report
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    names = ("run", *columns) if len(report.runs) > 1 else columns
    heads = [name.removesuffix("_ms").replace("_", " ") for name in names]
    return heads, [[_cell(name, row.get(name)) for name in names] for row in rows[:ROWS_MAX]]


def _cell(column: str, value: object) -> str:
    if value is None:
        return ""
    if column.endswith("_ms") and column not in {"took_ms", "stopped_ms", "recovery_ms"}:
        return at(int(str(value)))
    if isinstance(value, int):
        return f"{value:,}"
    return printable(value)


def _left_out(count: int, most: int, one: str, done: str = "shown") -> str:
    return f"{several(count - most, one)} more, not {done}" if count > most else ""
