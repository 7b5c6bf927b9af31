"""The timers that are due next, by name.

A timer has only a callback, because setting one is on the hot path. Its name follows from the
function that runs: `NAMES` has those of the timers that a test waits for, others get the words of
the function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from mockbroker.core.purgatory.delayed_operation import DelayedOperation
from mockbroker.core.timing.domain_timers import DomainTimers
from mockbroker.core.timing.timers import DueTimers

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

# Qualified name of the callback -> what happens.
NAMES: Mapping[str, str] = {
    "GroupShard._on_timer": "a session, join or sync of the group times out",
    "TransactionShard.check_timeout": "the transaction times out",
    "TransactionCoordinator._on_expiry": "unused transactional ids expire",
    "ExpirySchedule._run": "committed offsets expire",
    "SharePartitionManager._locks_due": "acquisition locks time out",
    "MaintenanceSchedule._run": "retention and compaction look at the logs",
    "ClusterServer._close_idle_connections": "idle connections are closed",
    "Heartbeats._expire": "the broker's session with the controller expires",
    "Controller.fence": "the controller fences a broker",
    "LeaderReplication._maybe_shrink_isr": "replicas that lag leave the ISR",
    "LeaderReplication._end_wait": "a follower's fetch ends its wait",
    "LeaderReplication._retry_expand": "the ISR may expand",
    "Network._arrive": "a message between brokers arrives",
    "Event.set": "a delay or hold by a rule ends",
}
# As many timers are looked at for one line.
GROUPED = 20
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])|_+")


class TimerView(msgspec.Struct, frozen=True):
    """Timers that are due at one time and have one name.

    `about` names their subject, such as a group; it is empty without a name. `due_ms` is on the
    cluster's clock, `in_ms` from now; `count` is their number.
    """

    name: str
    about: str
    due_ms: int
    in_ms: int
    count: int


def timer_views(cluster: Cluster, limit: int) -> list[TimerView]:
    """The timers that are due next, the earliest first."""
    now_ms = cluster.runtime.now_ms()
    found: dict[tuple[int, str, str], int] = {}
    for due_ms, callback in _pending(cluster, GROUPED * limit):
        name, about = describe(callback)
        key = due_ms, name, about
        found[key] = found.get(key, 0) + 1
    return [
        TimerView(name, about, due_ms, max(due_ms - now_ms, 0), count)
        for (due_ms, name, about), count in sorted(found.items())[:limit]
    ]


def _pending(cluster: Cluster, limit: int) -> Iterator[tuple[int, Callable[[], None]]]:
    """The next timers of the cluster and of each clock domain, on the cluster's clock."""
    for due_ms, callback in cluster.runtime.timers.pending(limit):
        if not isinstance(getattr(callback, "__self__", None), DomainTimers):
            yield due_ms, callback
    for domain in cluster.clock_domains.all():
        ahead_ms = domain.now_ms() - cluster.runtime.now_ms()
        for due_ms, callback in domain.pending(limit):
            if not isinstance(getattr(callback, "__self__", None), DomainTimers):
                yield due_ms - ahead_ms, callback


def describe(callback: Callable[..., Any]) -> tuple[str, str]:
    """The name of a timer by its callback, and what it is about."""
    about = ""
    if isinstance(callback, partial):
        bound = getattr(callback.func, "__self__", None)
        if isinstance(bound, DueTimers):
            key, callback = callback.args
            about = _text(key)
        else:
            about = ", ".join(filter(None, map(_text, callback.args)))
            callback = callback.func
    bound = getattr(callback, "__self__", None)
    if isinstance(bound, DelayedOperation):
        api = _words(type(bound).__name__.removeprefix("Delayed"))
        return f"the wait of a request ends ({api})", about
    function = getattr(callback, "__qualname__", type(callback).__name__)
    return NAMES.get(function) or _fallback(function), about


def _text(key: object) -> str:
    """A key in words; empty for an object without a short one."""
    if isinstance(key, str | int):
        return str(key)
    node_id = getattr(key, "node_id", None)
    if isinstance(node_id, int):
        return f"broker {node_id}"
    if isinstance(key, tuple):
        return " ".join(filter(None, map(_text, key)))
    return ""


def _fallback(function: str) -> str:
    parts = [part for part in function.split(".") if part not in ("<locals>", "<lambda>")]
    return ": ".join(_words(part) for part in parts[-2:])


def _words(name: str) -> str:
    return " ".join(_WORDS.split(name)).strip().lower()
