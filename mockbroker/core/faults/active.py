"""A rule in force, with its hits and the reasons why it did not fire."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from mockbroker.core.actions import ACTIONS
from mockbroker.core.faults.checks import effective_api_keys
from mockbroker.core.faults.effects.connections import is_at_accept
from mockbroker.core.faults.facts import Facts
from mockbroker.core.faults.matching import Matcher
from mockbroker.core.faults.rules import FaultPlan, Rule, api_name
from mockbroker.core.faults.when import RuleTrigger
from mockbroker.core.ids import IdSource

if TYPE_CHECKING:
    from mockbroker.core.faults.engine import FaultEngine
    from mockbroker.core.faults.states import ClusterStates
    from mockbroker.core.runtime import Runtime

# Effects that end a request: it is not evaluated for later rules.
FINAL = frozenset(("error", "drop_request", "record_errors"))


# The scope of a rule: clients' requests, accepted connections, or hops.
RuleScope = Literal["request", "connection", "hop"]


class Hit(NamedTuple):
    """The time of a hit, in ms since the epoch, and its request."""

    at_ms: int
    connection: int
    client_id: str
    api: str
    broker: int


class RuleExplanation(NamedTuple):
    """The reason why a rule fired or did not: the numbers of evaluated and of matching requests,
    and how often each condition of `match` and each part of `when` was the first to fail.
    """

    rule: str
    evaluated: int
    matched: int
    hits: int
    failed: dict[str, int]
    stopped: dict[str, int]

    def __str__(self) -> str:
        if self.hits:
            return f"{self.rule} fired {self.hits} times, of {self.matched} requests that matched"
        if not self.evaluated:
            return f"{self.rule} has not been evaluated for any request"
        if not self.matched:
            reasons = ", ".join(f"{name} ({n})" for name, n in _most(self.failed))
            seen = f"{self.rule} matched none of {self.evaluated} requests"
            return f"{seen}: first to fail were {reasons}"
        reasons = ", ".join(f"{name} ({n})" for name, n in _most(self.stopped))
        return f"{self.rule} matched {self.matched} requests, but was held back by: {reasons}"


def _most(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: -item[1])


class ActiveRule:
    """A rule in force."""

    __slots__ = (
        "_waiters",
        "actions",
        "api_keys",
        "effects",
        "failed",
        "final",
        "hits",
        "is_removed",
        "last",
        "matched",
        "matcher",
        "order",
        "plan_name",
        "removal",
        "rule",
        "scope",
        "since",
        "stream",
        "trigger",
    )

    def __init__(
        self,
        rule: Rule,
        plan: FaultPlan,
        order: int,
        engine: FaultEngine,
        runtime: Runtime,
        states: ClusterStates | None,
    ) -> None:
        self.rule = rule
        self.plan_name = plan.name
        self.order = order
        self.matcher = Matcher(rule.match)
        if "fail_reauthentication" in rule.do:
            self.matcher.add("re-authentication", _renews)
        self.api_keys = effective_api_keys(rule)
        self.stream = stream_of(plan.seed, rule.name)
        self.actions = {name: each for name, each in rule.do.items() if name in ACTIONS}
        self.effects = {name: each for name, each in rule.do.items() if name not in ACTIONS}
        self.scope: RuleScope = "request"
        if rule.match.is_for_hops:
            self.scope = "hop"
        elif any(map(is_at_accept, self.effects.values())):
            self.scope = "connection"
        self.final = not FINAL.isdisjoint(self.effects)
        self.trigger = RuleTrigger(rule, plan, self.matcher, self.stream, runtime, states, engine)
        self.hits = 0
        self.matched = 0
        self.last: Hit | None = None
        self.failed: dict[str, int] = {}
        self.since = dict(
            engine.evaluations_of(self)
        )  # evaluations by API before the rule was added
        self._waiters: list[tuple[int, Callable[[], None]]] = []
        self.is_removed = False
        self.removal: dict[object, Callable[[], None]] = {}  # called at the removal

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def left(self) -> int | None:
        """The number of hits left; None without a limit."""
        times = self.rule.when.times
        return None if times is None else max(0, times - self.hits)

    def when_hit(self, hits: int, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` once, when the rule has fired `hits` times in all. Returns a function that
        withdraws the call.
        """
        waiter = (hits, call)
        if self.hits >= hits:
            call()
        else:
            self._waiters.append(waiter)

        def withdraw() -> None:
            self._waiters = [each for each in self._waiters if each is not waiter]

        return withdraw

    def when_removed(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` once, when the rule is removed. Returns a function that withdraws it."""
        waiter = object()
        if self.is_removed:
            call()
        else:
            self.removal[waiter] = call

        def withdraw() -> None:
            self.removal.pop(waiter, None)

        return withdraw

    def removed(self) -> None:
        """The rule is no longer in force."""
        self.is_removed = True
        while self.removal:
            self.removal.pop(next(iter(self.removal)))()

    def fired(self, facts: Facts, now_ms: int) -> None:
        """Count a hit, and call the callbacks that are due."""
        self.hits += 1
        api = api_name(facts.api_key) if facts.api_key >= 0 else "connection"
        client = facts.client_id
        self.last = Hit(now_ms, facts.connection.id, client, api, facts.broker.node_id)
        if self._waiters:
            due = [call for hits, call in self._waiters if hits <= self.hits]
            self._waiters = [each for each in self._waiters if each[0] > self.hits]
            for call in due:
                call()

    def order_key(self) -> tuple[int, int]:
        """Sorts rules by the order of evaluation."""
        return (-self.rule.priority, self.order)


def _renews(facts: Facts) -> bool:
    """Whether the connection has been authenticated before (KIP-368)."""
    sasl = getattr(facts.connection, "sasl", None)
    return sasl is not None and bool(sasl.is_reauthenticating)


def stream_of(seed: int, name: str) -> IdSource:
    """A rule's own stream of random numbers."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return IdSource(int.from_bytes(digest[:8], "big"))
