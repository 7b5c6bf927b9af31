"""Expectations of the journal: events exactly n times, at least, at most, never, in this order.

A gap has no verdict, because the missing events are unknown. Cleared entries are no gap: after a
clear or a reset an expectation is about later entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from mockbroker.core.journal.entries import CLEARED
from mockbroker.core.journal.events import JournalEvent, one_line
from mockbroker.core.journal.filters import EventMatcher, Filter
from mockbroker.core.validation import Count, Ms, ValidationError, convert

NEAR_MISSES_SHOWN = 3


class Expectation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Expected events: `match` a number of times, or events `in_order`.

    Without a number it is at least once. `after_seq` leaves out earlier entries. `within_ms` bounds
    the time from the first event to the last, on the cluster's clock.
    """

    match: Filter | None = None
    exactly: Count | None = None
    at_least: Count | None = None
    at_most: Count | None = None
    in_order: list[Filter] | None = None
    within_ms: Ms | None = None
    after_seq: Count = 0


class NearMiss(msgspec.Struct, frozen=True):
    """An event that met all conditions but `failed`: condition -> the event's value."""

    event: JournalEvent
    failed: dict[str, object]


class VerificationResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether an expectation holds, with the evidence.

    `misses` counts, for each condition, the events that met all conditions before it and failed it.
    """

    holds: bool
    reason: str
    found: tuple[JournalEvent, ...] = ()
    near: tuple[NearMiss, ...] = ()
    misses: dict[str, int] = {}


class JournalGapError(Exception):
    """Entries that an expectation is about have left the journal."""


def parse_expectation(data: object, path: str = "") -> Expectation:
    """An expectation from plain data. Raises ValidationError that names the field."""
    wanted = convert(data, Expectation, path)
    counts = (wanted.exactly, wanted.at_least, wanted.at_most)
    if wanted.in_order is not None:
        if wanted.match is not None or any(count is not None for count in counts):
            raise ValidationError(path, "in_order stands alone, without match and counts")
        if len(wanted.in_order) < 2:
            raise ValidationError(
                f"{path}.in_order".lstrip("."), "an order has at least two events"
            )
    elif wanted.match is None:
        raise ValidationError(path, "an expectation has match or in_order")
    elif wanted.exactly is not None and counts != (wanted.exactly, None, None):
        raise ValidationError(path, "exactly stands alone, without at_least and at_most")
    return wanted


def verify(wanted: Expectation, events: Iterable[JournalEvent], now_ms: int) -> VerificationResult:
    """Whether the events meet an expectation.

    `now_ms` is the cluster's clock, from which `within_ms` of a filter counts back. Raises
    JournalGapError if events are missing.
    """
    seen = [event for event in events if event.seq > wanted.after_seq]
    for event in seen:
        if event.kind == "gap" and event.reason != CLEARED:
            raise JournalGapError(
                f"entries {event.first_seq} to {event.last_seq} are forgotten: verify earlier, "
                "after a later entry, or with a larger journal"
            )
    if wanted.in_order is not None:
        return _in_order(wanted, wanted.in_order, seen, now_ms)
    assert wanted.match is not None
    return _counted(wanted, EventMatcher(wanted.match, now_ms, "match"), seen)


def _counted(
    wanted: Expectation, matcher: EventMatcher, seen: Sequence[JournalEvent]
) -> VerificationResult:
    found = tuple(filter(matcher, seen))
    at_least, at_most = _bounds(wanted)
    expected = _bounds_text(at_least, at_most)
    if len(found) < at_least:
        near, misses = near_misses(matcher, seen)
        reason = f"{len(found)} events match, {expected} were expected"
        return VerificationResult(False, reason, found, near, misses)
    if at_most is not None and len(found) > at_most:
        return VerificationResult(
            False, f"{len(found)} events match, {expected} were expected", found
        )
    return _in_time(wanted, found, f"{len(found)} events match, as expected ({expected})")


def _bounds(wanted: Expectation) -> tuple[int, int | None]:
    if wanted.exactly is not None:
        return wanted.exactly, wanted.exactly
    if wanted.at_least is None and wanted.at_most is None:
        return 1, None
    return wanted.at_least or 0, wanted.at_most


def _bounds_text(at_least: int, at_most: int | None) -> str:
    if at_most is None:
        return f"at least {at_least}"
    if at_least == at_most:
        return "none" if at_most == 0 else f"exactly {at_least}"
    return f"at most {at_most}" if at_least == 0 else f"{at_least} to {at_most}"


def _in_order(
    wanted: Expectation, order: Sequence[Filter], seen: Sequence[JournalEvent], now_ms: int
) -> VerificationResult:
    """The first match of each filter behind the match of the one before."""
    found: list[JournalEvent] = []
    start = 0
    for number, match in enumerate(order):
        matcher = EventMatcher(match, now_ms, f"in_order[{number}]")
        position = next((i for i in range(start, len(seen)) if matcher(seen[i])), None)
        if position is None:
            near, misses = near_misses(matcher, seen[start:])
            before = any(map(matcher, seen[:start]))
            reason = f"in_order[{number}] did not happen" + (
                f" behind in_order[{number - 1}], only before it" if before else ""
            )
            return VerificationResult(False, reason, tuple(found), near, misses)
        found.append(seen[position])
        start = position + 1
    return _in_time(wanted, tuple(found), f"all {len(order)} happened in this order")


def _in_time(wanted: Expectation, found: tuple[JournalEvent, ...], good: str) -> VerificationResult:
    if wanted.within_ms is not None and found:
        took_ms = found[-1].virtual_ms - found[0].virtual_ms
        if took_ms > wanted.within_ms:
            reason = f"from the first to the last {took_ms} ms passed, not {wanted.within_ms}"
            return VerificationResult(False, reason, found)
    return VerificationResult(True, good, found)


def near_misses(
    matcher: EventMatcher, seen: Iterable[JournalEvent]
) -> tuple[tuple[NearMiss, ...], dict[str, int]]:
    """The events that fail the fewest conditions, and how often each condition failed first.

    Events of another kind or API than the filter's are not near.
    """
    misses: dict[str, int] = {}
    near: list[tuple[int, NearMiss]] = []
    for event in seen:
        failed = matcher.failed(event)
        if not failed:
            continue
        misses[failed[0].name] = misses.get(failed[0].name, 0) + 1
        if failed[0].name not in ("kind", "api"):
            shown = {condition.name: condition.shown(event) for condition in failed}
            near.append((len(failed), NearMiss(event, shown)))
    near.sort(key=lambda item: item[0])
    return tuple(miss for _, miss in near[:NEAR_MISSES_SHOWN]), misses


def explain(verdict: VerificationResult, waited: str = "") -> str:
    """A verdict as a few lines of text; `waited` ends the first one."""
    lines = [verdict.reason + waited]
    lines.extend(f"  found  {one_line(event)}" for event in verdict.found[:NEAR_MISSES_SHOWN])
    for miss in verdict.near:
        lines.append(f"  near   {one_line(miss.event)}")
        lines.extend(f"         but {name} was {shown!r}" for name, shown in miss.failed.items())
    if verdict.misses and not verdict.near:
        first = ", ".join(f"{name} ({count})" for name, count in verdict.misses.items())
        lines.append(f"  nothing came near; events failed first on: {first}")
    return "\n".join(lines)
