"""State diagrams as SVG: boxes at their places, one arrow for each pair of states."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from html import escape
from typing import TypeVar

S = TypeVar("S", bound=Enum)

BOX_WIDTH, BOX_HEIGHT = 170, 44
Place = tuple[int, int]


def draw(
    title: str,
    places: Mapping[S, Place],
    edges: Mapping[tuple[S, S], Sequence[str]],
    size: tuple[int, int],
    *,
    dashed: Collection[S] = (),
) -> str:
    """`edges` gives each pair of states the names of what leads from one to the other.

    Arrows to a state of `dashed` are thin and without names.
    """
    width, height = size
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#557"/></marker></defs>',
    ]
    for (before, after), names in edges.items():
        if before is after:
            parts += loop(places[before], ", ".join(names))
        else:
            parts += arrow(
                places[before],
                places[after],
                ", ".join(names),
                both=(after, before) in edges,
                thin=after in dashed,
            )
    for state, (x, y) in places.items():
        parts += [
            f'<rect x="{x - BOX_WIDTH // 2}" y="{y - BOX_HEIGHT // 2}" width="{BOX_WIDTH}" '
            f'height="{BOX_HEIGHT}" rx="8" fill="#eef1f8" stroke="#557"/>',
            f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="#223">'
            f"{escape(str(state.value))}</text>",
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def arrow(before: Place, after: Place, label: str, *, both: bool, thin: bool) -> list[str]:
    """A line from border to border; of a pair, each keeps to its right, and so does its label."""
    (x1, y1), (x2, y2) = before, after
    length = math.hypot(x2 - x1, y2 - y1)
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    aside = 9 if both else 0
    start, end = border(dx, dy), length - border(dx, dy)

    def place(along: float, right: float) -> Place:
        return round(x1 + dx * along - dy * right), round(y1 + dy * along + dx * right)

    (ax, ay), (bx, by) = place(start, aside), place(end, aside)
    style = 'stroke="#aab" stroke-dasharray="4 3"' if thin else 'stroke="#557"'
    parts = [f'<line x1="{ax}" y1="{ay}" x2="{bx}" y2="{by}" {style} marker-end="url(#tip)"/>']
    if not thin:
        tx, ty = place((start + end) / 2, aside + 12 if both else -8)
        anchor = "middle" if abs(dx) > 0.9 else ("start" if (dy < 0) == both else "end")
        parts.append(
            f'<text x="{tx}" y="{ty + 4}" text-anchor="{anchor}" fill="#446">{escape(label)}</text>'
        )
    return parts


def loop(place: Place, label: str) -> list[str]:
    """An arrow from a box back to itself, above it."""
    x, top = place[0], place[1] - BOX_HEIGHT // 2
    path = f"M{x - 30} {top} C{x - 30} {top - 34} {x + 30} {top - 34} {x + 30} {top}"
    return [
        f'<path d="{path}" fill="none" stroke="#557" marker-end="url(#tip)"/>',
        f'<text x="{x}" y="{top - 30}" text-anchor="middle" fill="#446">{escape(label)}</text>',
    ]


def border(dx: float, dy: float) -> float:
    """How far the border of a box is from its middle in a direction."""
    sides = [BOX_WIDTH / 2 / abs(dx)] if dx else []
    sides += [BOX_HEIGHT / 2 / abs(dy)] if dy else []
    return min(sides)
