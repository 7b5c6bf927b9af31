"""Bugs of Fetch: what is read, what is told of it, sessions, waiting."""

from __future__ import annotations

from mockbroker.core.fetching import fetch_session
from mockbroker.core.fetching.fetch_session import FetchSession, FetchSessionCache
from mockbroker.core.purgatory.delayed_operation import DelayedOperation
from mockbroker.handlers import fetch_read
from mockbroker.handlers.fetch import DelayedFetch
from mockbroker.handlers.fetch_read import FetchReader
from tests.simulation.planted.planting import Planting, planted, rewritten


@planted("Readers of committed records are given what is not decided yet.")
def read_committed_reads_all() -> Planting:
    return rewritten(
        FetchReader._upper_offset,
        "return stable if self._read_committed else high_watermark",
        "return high_watermark",
    )


@planted("Consumers are given what is above the high watermark.")
def consumers_read_to_the_log_end() -> Planting:
    return rewritten(
        FetchReader._upper_offset,
        "return stable if self._read_committed else high_watermark",
        "return stable if self._read_committed else log_end",
    )


@planted("An answer lists aborted transactions only as far as its first batch.")
def aborts_of_the_first_batch_only() -> Planting:
    return rewritten(fetch_read._aborted, "log.offset_after(offset, size)", "offset + 1")


@planted("A consumer whose history diverges from the log gets no diverging epoch.")
def divergence_is_not_reported() -> Planting:
    return rewritten(
        FetchReader._read_one,
        "if found < request.last_fetched_epoch or end < offset:",
        "if found < request.last_fetched_epoch and end < offset:",
    )


@planted("A broker with a copy of its own answers with the watermarks of the leader's.")
def leader_offsets_for_followers() -> Planting:
    return rewritten(
        FetchReader._read_one,
        "log, high_watermark = replica.log, replica.high_watermark",
        "log = replica.log",
    )


@planted("A Fetch that waits goes on to watch after it was answered.")
def answered_fetches_go_on() -> Planting:
    return rewritten(
        DelayedOperation.force_complete,
        "self.is_completed = True\n    for key in self._keys:\n        key.unwatch(self)",
        "pass",
    )


@planted("A Fetch that waits is not answered when its time is up.")
def waiting_fetch_has_no_timeout() -> Planting:
    return rewritten(
        DelayedFetch.start,
        "self._ctx.now_ms + self._request.max_wait_ms",
        "self._ctx.now_ms + self._request.max_wait_ms + 10**9",
    )


@planted("A session that goes on forgets none of its partitions.")
def sessions_forget_nothing() -> Planting:
    return rewritten(
        FetchSession.change,
        "gone = targets.pop((topic_key, index), None)",
        "gone = targets.get((topic_key, index))",
    )


@planted("A session goes on with the offsets that it began with.")
def sessions_keep_first_offsets() -> Planting:
    return rewritten(fetch_session._add, "known.request = partition", "pass")


@planted("A session takes any epoch.")
def session_epochs_do_not_count() -> Planting:
    return rewritten(
        FetchSessionCache.open_context,
        "if session.epoch != request.session_epoch:",
        "if session.epoch < request.session_epoch:",
    )


@planted("A session does not tell of a partition that has an error.")
def sessions_hide_errors() -> Planting:
    return rewritten(fetch_read._has_news, "or data.error_code != 0", "")
