"""Drawings as SVG. All texts are escaped here; colours are classes of the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from mockbroker.pipeline.report.words import at, printable

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 860, 70, 16, 14, 28
UNIT = 10  # the height of the unit above the values of an axis
LANES_LEFT = 180
TICKS = 6
COLOURS = 8
POINTS_MAX = 400
_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
# Distances of ticks along the time.
_ROUND_MS = (
    *(n * scale for scale in (1, 10, 100) for n in (1, 2, 5)),
    *(n * _SECOND_MS for n in (1, 2, 5, 10, 15, 30)),
    *(n * _MINUTE_MS for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR_MS for n in (1, 2, 3, 6, 12)),
    *(n * _DAY_MS for n in (1, 2, 7, 30, 365, 3_650, 36_500)),
)


class Point(NamedTuple):
    """A value at a time of the cluster's clock; None if it is unknown."""

    virtual_ms: int
    value: float | None


class Interval(NamedTuple):
    """The time of an owner, from start to end."""

    owner: str
    from_ms: int
    to_ms: int
    text: str


class Series(NamedTuple):
    """A line: its name, its points, its colour and whether it is dashed."""

    name: str
    points: Sequence[Point]
    colour: int
    dashed: bool = False


class Bar(NamedTuple):
    """A value and its name."""

    name: str
    value: float


class Lane(NamedTuple):
    """The intervals on a lane."""

    name: str
    intervals: Sequence[Interval]


class Mark(NamedTuple):
    """An upright line at a time."""

    text: str
    at_ms: int


def lines(series: Sequence[Series], unit: str, *, height: int = 220) -> str:
    """Values over time as steps, with ticks of both axes; `unit` is that of the values."""
    points = [point for line in series for point in line.points]
    if not points:
        return ""
    span = _Span.of(point.virtual_ms for point in points)
    scale = _Scale.of(point.value or 0 for point in points)
    low, high = height - BOTTOM, TOP + UNIT
    parts = [
        _time_axis(span, height),
        f'<text class="axis" x="{LEFT - 8}" y="{TOP}" text-anchor="end">{_text(unit)}</text>',
    ]
    for value in scale.ticks():
        y = low - (low - high) * scale.share(value)
        parts.append(
            f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="axis" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{_number(value)}</text>"
        )
    for line in series:
        dashes = ' stroke-dasharray="4 3"' if line.dashed else ""
        parts += [
            f'<path class="line s{line.colour % COLOURS}" d="{path}"{dashes}>'
            f"<title>{_text(line.name)}</title></path>"
            for path in _steps(line.points, span, scale, low, high)
        ]
    return _svg(height, parts)


def bars(values: Sequence[Bar], unit: str) -> str:
    """A bar for each value: its name, the bar, the value; with a scale in `unit`."""
    if not values:
        return ""
    scale = _Scale.of(bar.value for bar in values)
    step, label, end = 22, 290, WIDTH - 90
    height = TOP + len(values) * step + BOTTOM
    parts = []
    for value in scale.ticks():
        x = label + (end - label) * scale.share(value)
        parts.append(
            f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - BOTTOM}"/>'
            f'<text class="axis" x="{x:.1f}" y="{height - 8}" text-anchor="middle">'
            f"{_number(value)}</text>"
        )
    parts.append(
        f'<text class="axis" x="{WIDTH - RIGHT}" y="{height - 8}" text-anchor="end">'
        f"{_text(unit)}</text>"
    )
    for number, (name, value) in enumerate(values):
        y = TOP + number * step
        width = max(1.0, (end - label) * scale.share(value))
        parts.append(
            f'<text class="axis" x="{label - 8}" y="{y + 12}" text-anchor="end">'
            f"{_text(elided(name, 38))}<title>{_text(name)}</title></text>"
            f'<rect class="bar s0" x="{label}" y="{y}" width="{width:.1f}" '
            f'height="{step - 7}" rx="2"/>'
            f'<text class="axis" x="{label + width + 6:.1f}" y="{y + 12}">{_number(value)}</text>'
        )
    return _svg(height, parts)


def lanes(rows: Sequence[Lane], marks: Sequence[Mark] = ()) -> str:
    """A lane for each name with its intervals; an owner has one colour in all lanes."""
    intervals = [interval for row in rows for interval in row.intervals]
    if not intervals:
        return ""
    times = [t for interval in intervals for t in (interval.from_ms, interval.to_ms)]
    span = _Span.of([*times, *(mark.at_ms for mark in marks)], left=LANES_LEFT)
    colours = owner_colours(rows)
    step = 22
    height = TOP + len(rows) * step + BOTTOM
    parts = [_time_axis(span, height)]
    for number, row in enumerate(rows):
        y = TOP + number * step
        parts.append(
            f'<text class="axis" x="{LANES_LEFT - 8}" y="{y + 12}" text-anchor="end">'
            f"{_text(elided(row.name, 26))}<title>{_text(row.name)}</title></text>"
        )
        for interval in row.intervals:
            x, end = span.x(interval.from_ms), span.x(interval.to_ms)
            parts.append(
                f'<rect class="bar s{colours[interval.owner]}" x="{x:.1f}" y="{y}" '
                f'width="{max(1.5, end - x):.1f}" height="{step - 7}" rx="2">'
                f"<title>{_text(interval.text)}</title></rect>"
            )
    for mark in marks:
        x = span.x(mark.at_ms)
        parts.append(
            f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - BOTTOM}">'
            f"<title>{_text(mark.text)}</title></line>"
        )
    return _svg(height, parts)


def owner_colours(rows: Sequence[Lane]) -> dict[str, int]:
    """The colour of each owner."""
    owners = dict.fromkeys(interval.owner for row in rows for interval in row.intervals)
    return {owner: number % COLOURS for number, owner in enumerate(owners)}


def elided(name: str, most: int) -> str:
    """A name of at most `most` characters. The middle is left out: names of clients differ at the
    end.
    """
    if len(name) <= most:
        return name
    tail = most * 3 // 5
    return f"{name[: most - tail - 1]}…{name[-tail:]}"


class _Scale(NamedTuple):
    """Values from 0 to a round number, and the distance of the ticks."""

    most: float
    step: float

    @classmethod
    def of(cls, values: Iterable[float]) -> _Scale:
        highest = max(values, default=0) or 1
        step = 10.0 ** math.floor(math.log10(highest / TICKS))
        step = next(step * m for m in (1, 2, 5, 10) if step * m * TICKS >= highest)
        return cls(step * math.ceil(highest / step - 1e-9), step)

    def ticks(self) -> list[float]:
        return [self.step * n for n in range(round(self.most / self.step) + 1)]

    def share(self, value: float) -> float:
        return value / self.most


class _Span(NamedTuple):
    """Times along the width of a drawing."""

    first_ms: int
    last_ms: int
    left: int

    @classmethod
    def of(cls, times: Iterable[int], left: int = LEFT) -> _Span:
        found = sorted(times)
        return cls(found[0], max(found[-1], found[0] + 1), left)

    def x(self, virtual_ms: int) -> float:
        share = (virtual_ms - self.first_ms) / (self.last_ms - self.first_ms)
        return self.left + share * (WIDTH - RIGHT - self.left)


def _steps(line: Sequence[Point], span: _Span, scale: _Scale, low: int, high: int) -> list[str]:
    """A line as paths: it keeps its value until the next point, and breaks at unknown values."""
    paths: list[str] = []
    path = ""
    last_y = 0.0
    for point in _downsampled(line):
        if point.value is None:
            paths += [path] if path else []
            path = ""
            continue
        x, y = span.x(point.virtual_ms), low - (low - high) * scale.share(point.value)
        path += f"M{x:.1f} {y:.1f}" if not path else f"L{x:.1f} {last_y:.1f}L{x:.1f} {y:.1f}"
        last_y = y
    return [*paths, path] if path else paths


def _downsampled(line: Sequence[Point]) -> list[Point]:
    """At most POINTS_MAX points: of adjacent points the highest and the last are kept."""
    if len(line) <= POINTS_MAX:
        return list(line)
    size = -(-len(line) // (POINTS_MAX // 2))
    kept: list[Point] = []
    for start in range(0, len(line), size):
        few = line[start : start + size]
        highest = max(few, key=lambda point: -1 if point.value is None else point.value)
        kept += [few[-1]] if highest is few[-1] else [highest, few[-1]]
    return kept


def _time_axis(span: _Span, height: int) -> str:
    """Ticks at round times of the cluster's clock."""
    y = height - BOTTOM
    length = span.last_ms - span.first_ms
    step = next((each for each in _ROUND_MS if length / each <= TICKS), _ROUND_MS[-1])
    parts = [f'<line class="rule" x1="{span.left}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>']
    for at_ms in range(-(-span.first_ms // step) * step, span.last_ms + 1, step):
        x = min(max(span.x(at_ms), span.left + 36), WIDTH - RIGHT - 36)
        parts.append(
            f'<line class="rule" x1="{span.x(at_ms):.1f}" x2="{span.x(at_ms):.1f}" y1="{y}" '
            f'y2="{y + 4}"/><text class="axis" x="{x:.1f}" y="{height - 8}" text-anchor="middle">'
            f"{at(at_ms)}</text>"
        )
    return "".join(parts)


def _number(value: float) -> str:
    return f"{value:,.4g}" if value < 1_000 else f"{value:,.0f}"


def _svg(height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" preserveAspectRatio="xMinYMin meet">'
        f"{''.join(parts)}</svg>"
    )


def _text(value: str, most: int = 200) -> str:
    return escape(printable(value, max(most, 1)))
