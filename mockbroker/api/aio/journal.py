"""The journal: look back, wait, and assert.

    kafka.journal.exactly(1, api="Produce", kind="request", topic="orders")
    kafka.journal.wait(kind="group", group="billing", state="Stable")
    kafka.journal.in_order({"kind": "append"}, {"kind": "deliver"})

The conditions are those of `mockbroker.core.journal.filters.Filter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

import msgspec

from mockbroker.api.aio.handle import AsyncHandle
from mockbroker.api.types import EventFilter
from mockbroker.core.journal.events import JournalEvent
from mockbroker.core.journal.verify import VerificationResult, explain

if TYPE_CHECKING:
    from mockbroker.admin.v1.journal_entry import EntryView, RelatedEntriesView
    from mockbroker.admin.v1.past import PastStateView
    from mockbroker.core.journal.timeline import TimelineView
    from mockbroker.pipeline.store import RunManifest

# The limit of `wait`, in real time.
WAIT_TIMEOUT_S = 30.0
PAGE_EVENTS = 10_000


class AsyncJournal(AsyncHandle):
    """The journal of a cluster. Made by `kafka.journal`."""

    # -- looking -----------------------------------------------------------------------------------

    @property
    async def last_seq(self) -> int:
        """The number of the newest entry: a mark for `after_seq`."""
        return int((await self._ask("GET", "/v1/journal/last")).last_seq)

    async def events(self, **conditions: Unpack[EventFilter]) -> list[JournalEvent]:
        """The events that meet all conditions, oldest first; a gap is always among them.

        Raises ValidationError for an unknown condition or a wrong value.
        """
        found: list[JournalEvent] = []
        after = 0
        while True:
            page = await self._ask(
                "POST",
                "/v1/journal/search",
                body={"match": _given(conditions), "after": after, "limit": PAGE_EVENTS},
            )
            found += page.events
            if page.next >= page.last_seq or len(page.events) < PAGE_EVENTS:
                return found
            after = page.next

    async def entry(self, seq: int) -> EntryView:
        """One entry: its events, and its bytes field by field. Raises UnknownNameError."""
        at = {"seq": seq}
        found: EntryView = await self._ask("GET", "/v1/journal/entries/{seq}", at=at)
        return found

    async def links(self, seq: int) -> RelatedEntriesView:
        """The causes and effects of an entry; for a request also why each rule fired or did not.

        Raises UnknownNameError.
        """
        at = {"seq": seq}
        found: RelatedEntriesView = await self._ask("GET", "/v1/journal/entries/{seq}/links", at=at)
        return found

    async def state(
        self,
        seq: int | None = None,
        *,
        parts: list[str] | None = None,
        topic: str | None = None,
        group: str | None = None,
    ) -> PastStateView:
        """The cluster right after entry `seq`, by default the newest one; None is unknown.

        `parts` are "cluster", "topics", "groups", "transactions", by default all. Raises
        UnknownNameError if the journal does not have the entry.
        """
        given = {"seq": seq, "parts": parts, "topic": topic, "group": group}
        query = {name: value for name, value in given.items() if value is not None}
        found: PastStateView = await self._ask("GET", "/v1/journal/state", query=query)
        return found

    async def timeline(
        self,
        after: int | None = None,
        *,
        limit: int = 2_000,
        **conditions: Unpack[EventFilter],
    ) -> TimelineView:
        """The requests behind entry `after`, by default of the newest 20,000 entries, that meet the
        conditions, with their answers. Above the `limit` they are sampled.
        """
        query = {"after": after, "limit": limit, **_given(conditions)}
        found: TimelineView = await self._ask("GET", "/v1/journal/timeline", query=query)
        return found

    async def clear(self) -> None:
        """Remove all entries. The numbers continue."""
        await self._ask("DELETE", "/v1/journal")

    async def save(self, path: Path | str, **conditions: Unpack[EventFilter]) -> int:
        """Write the events to a file, one JSON object per line; returns their number."""
        return _write(Path(path), await self.events(**conditions))

    async def save_entries(self, path: Path | str) -> int:
        """Write the entries to a file for `mockbroker console FILE`; returns its size in bytes."""
        data: bytes = await self._ask("GET", "/v1/journal/entries")
        return _write_bytes(Path(path), data)

    async def export(self, directory: Path | str, run: str = "") -> RunManifest:
        """Write the present entries of the journal as tables into a directory, as a run of its own.

        Returns the run's manifest. The default name consists of the cluster and the newest entry.
        Raises StoreError without the extra `pipeline`, or if the directory has a run of that name.
        """
        from mockbroker.pipeline.convert.run import convert_export

        entries: bytes = await self._ask("GET", "/v1/journal/entries")
        return convert_export(entries, Path(directory), run or None)

    # -- waiting -----------------------------------------------------------------------------------

    async def wait(
        self,
        count: int = 1,
        *,
        timeout_s: float = WAIT_TIMEOUT_S,
        **conditions: Unpack[EventFilter],
    ) -> list[JournalEvent]:
        """Wait until `count` events, past ones included, meet the conditions; returns them.

        Raises AssertionError, with near misses, after `timeout_s` of real time.
        """
        __tracebackhide__ = True
        match = _given(conditions)
        try:
            found: list[JournalEvent] = await self._ask(
                "POST",
                "/v1/journal/wait",
                body={"match": match, "count": count, "timeout_ms": round(timeout_s * 1000)},
                wait_s=timeout_s,
            )
        except TimeoutError:
            after_seq = conditions.get("after_seq") or 0
            return await self._assert(
                {"match": match, "at_least": count, "after_seq": after_seq},
                f" after {timeout_s:g} s",
            )
        return found

    # -- assertions --------------------------------------------------------------------------------

    async def exactly(self, count: int, **conditions: Unpack[EventFilter]) -> list[JournalEvent]:
        """The events that meet the conditions, if they are `count`; else AssertionError."""
        __tracebackhide__ = True
        return await self._counted("exactly", count, conditions)

    async def at_least(self, count: int, **conditions: Unpack[EventFilter]) -> list[JournalEvent]:
        """The events that meet the conditions, if they are `count` or more."""
        __tracebackhide__ = True
        return await self._counted("at_least", count, conditions)

    async def at_most(self, count: int, **conditions: Unpack[EventFilter]) -> list[JournalEvent]:
        """The events that meet the conditions, if they are `count` or fewer."""
        __tracebackhide__ = True
        return await self._counted("at_most", count, conditions)

    async def never(self, **conditions: Unpack[EventFilter]) -> None:
        """AssertionError if any event meets the conditions."""
        __tracebackhide__ = True
        await self._counted("exactly", 0, conditions)

    async def in_order(
        self,
        *conditions: EventFilter,
        within_ms: int | str | None = None,
        after_seq: int = 0,
    ) -> list[JournalEvent]:
        """The first events that meet the conditions in this order, at most `within_ms` apart on the
        cluster's clock from first to last; else AssertionError.
        """
        __tracebackhide__ = True
        body: dict[str, object] = {
            "in_order": [_given(each) for each in conditions],
            "after_seq": after_seq,
        }
        if within_ms is not None:
            body["within_ms"] = within_ms
        return await self._assert(body)

    async def _counted(self, how: str, count: int, conditions: EventFilter) -> list[JournalEvent]:
        __tracebackhide__ = True
        after_seq = conditions.get("after_seq") or 0
        return await self._assert({"match": _given(conditions), how: count, "after_seq": after_seq})

    async def _assert(self, wanted: Mapping[str, object], waited: str = "") -> list[JournalEvent]:
        """Raises JournalGapError if the journal has dropped entries of the expectation."""
        __tracebackhide__ = True
        verdict: VerificationResult = await self._ask("POST", "/v1/verify", body=wanted)
        if not verdict.holds:
            raise AssertionError(explain(verdict, waited))
        return list(verdict.found)


def _write(path: Path, events: list[JournalEvent]) -> int:
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        file.writelines(encoder.encode(event) + b"\n" for event in events)
    return len(events)


def _write_bytes(path: Path, data: bytes) -> int:
    return path.write_bytes(data)


def _given(conditions: EventFilter) -> dict[str, object]:
    """Conditions as data, without those of None."""
    named = cast("Mapping[str, object]", conditions)
    return {name: value for name, value in named.items() if value is not None}
