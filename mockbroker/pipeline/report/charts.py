"""Drawings as SVG. All texts are escaped here; colours are classes of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from mockbroker.pipeline.report.words import at, printable

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 860, 64, 16, 14, 26
COLOURS = 8
POINTS_MAX = 400


class Point(NamedTuple):
    """A value at a time of the cluster's clock; None if it is unknown."""

    virtual_ms: int
    value: float | None


class Interval(NamedTuple):
    """An owner's time, from start to end."""

    owner: str
    from_ms: int
    to_ms: int
    text: str


def lines(series: Mapping[str, Sequence[Point]], *, height: int = 200, dashed: str = "") -> str:
    """Values over time as steps, a line for each name; names in `dashed` have dashed lines."""
    points = [point for line in series.values() for point in line]
    if not points:
        return ""
    span = _Span.of(point.virtual_ms for point in points)
    most = max((point.value or 0 for point in points), default=0) or 1
    low, high = height - BOTTOM, TOP
    parts = [_axes(span, height), _level(most, high), _level(0, low)]
    for number, (name, line) in enumerate(series.items()):
        style = ' stroke-dasharray="4 3"' if dashed and name.endswith(dashed) else ""
        colour = number // (2 if dashed else 1) % COLOURS
        parts += [
            f'<path class="line s{colour}" d="{path}"{style}><title>{_text(name)}</title></path>'
            for path in _steps(line, span, most, low, high)
        ]
    return _svg(height, parts)


def bars(values: Mapping[str, float], *, unit: str = "") -> str:
    """A bar for each name, with its value behind it."""
    if not values:
        return ""
    most = max(values.values()) or 1
    step, label = 22, 220
    parts = []
    for number, (name, value) in enumerate(values.items()):
        y = TOP + number * step
        width = max(1.0, (WIDTH - label - 130) * value / most)
        parts.append(
            f'<text class="axis" x="{label - 8}" y="{y + 12}" text-anchor="end">'
            f"{_text(name, 32)}<title>{_text(name)}</title></text>"
            f'<rect class="bar s{number % COLOURS}" x="{label}" y="{y}" width="{width:.1f}" '
            f'height="{step - 7}" rx="2"/>'
            f'<text class="axis" x="{label + width + 6:.1f}" y="{y + 12}">'
            f"{value:,.10g}{unit}</text>"
        )
    return _svg(TOP + len(values) * step + 6, parts)


def lanes(rows: Mapping[str, Sequence[Interval]], marks: Mapping[str, int] | None = None) -> str:
    """A lane for each name with the intervals on it; an owner has one colour everywhere. `marks`
    are upright lines: text -> time.
    """
    intervals = [interval for row in rows.values() for interval in row]
    if not intervals:
        return ""
    times = [t for interval in intervals for t in (interval.from_ms, interval.to_ms)]
    span = _Span.of([*times, *(marks or {}).values()], left=150)
    owners = {owner: n for n, owner in enumerate(dict.fromkeys(s.owner for s in intervals))}
    step = 22
    height = TOP + len(rows) * step + BOTTOM
    parts = [_axes(span, height, left=150)]
    for number, (name, row) in enumerate(rows.items()):
        y = TOP + number * step
        parts.append(
            f'<text class="axis" x="142" y="{y + 12}" text-anchor="end">{_text(name, 22)}'
            f"<title>{_text(name)}</title></text>"
        )
        for interval in row:
            x, end = span.x(interval.from_ms), span.x(interval.to_ms)
            parts.append(
                f'<rect class="bar s{owners[interval.owner] % COLOURS}" x="{x:.1f}" y="{y}" '
                f'width="{max(1.5, end - x):.1f}" height="{step - 7}" rx="2">'
                f"<title>{_text(interval.text)}</title></rect>"
            )
            if end - x > 60:
                parts.append(
                    f'<text class="inside" x="{x + 4:.1f}" y="{y + 11}">'
                    f"{_text(interval.owner, int((end - x) / 7))}</text>"
                )
    for text, when in (marks or {}).items():
        x = span.x(when)
        parts.append(
            f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - BOTTOM}">'
            f"<title>{_text(text)}</title></line>"
        )
    return _svg(height, parts)


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


def _steps(line: Sequence[Point], span: _Span, most: float, low: int, high: int) -> list[str]:
    """A line as paths: it keeps its value until the next point, and breaks at unknown values."""
    paths: list[str] = []
    path = ""
    last_y = 0.0
    for point in _thinned(line):
        if point.value is None:
            paths += [path] if path else []
            path = ""
            continue
        x, y = span.x(point.virtual_ms), low - (low - high) * point.value / most
        path += f"M{x:.1f} {y:.1f}" if not path else f"L{x:.1f} {last_y:.1f}L{x:.1f} {y:.1f}"
        last_y = y
    return [*paths, path] if path else paths


def _thinned(line: Sequence[Point]) -> list[Point]:
    """At most so many points: of adjacent points the highest and the last are kept."""
    if len(line) <= POINTS_MAX:
        return list(line)
    size = -(-len(line) // (POINTS_MAX // 2))
    kept: list[Point] = []
    for start in range(0, len(line), size):
        few = line[start : start + size]
        highest = max(few, key=lambda point: -1 if point.value is None else point.value)
        kept += [few[-1]] if highest is few[-1] else [highest, few[-1]]
    return kept


def _axes(span: _Span, height: int, left: int = LEFT) -> str:
    y = height - BOTTOM
    return (
        f'<line class="rule" x1="{left}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        f'<text class="axis" x="{left}" y="{height - 8}">{at(span.first_ms)}</text>'
        f'<text class="axis" x="{WIDTH - RIGHT}" y="{height - 8}" text-anchor="end">'
        f"{at(span.last_ms)}</text>"
    )


def _level(value: float, y: int) -> str:
    return f'<text class="axis" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{value:,.10g}</text>'


def _svg(height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" preserveAspectRatio="xMinYMin meet">'
        f"{''.join(parts)}</svg>"
    )


def _text(value: str, most: int = 200) -> str:
    return escape(printable(value, max(most, 1)))
