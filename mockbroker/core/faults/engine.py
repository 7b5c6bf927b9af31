"""The engine: the rules that are there now, and what they say about each request.

A rule that fires yields a `Decision`. Rules are asked by priority, the highest first, then in the
order in which they were added; one whose effect decides the fate of the request (`FINAL`) is the
last one asked. `cluster.faults` is the engine while it has anything to do, and None otherwise, so
that a cluster without rules pays one test for each request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.faults.actions import perform
from mockbroker.core.faults.active import ActiveRule, Explanation
from mockbroker.core.faults.buckets import Bucket
from mockbroker.core.faults.errors import NameTakenError, UnknownNameError
from mockbroker.core.faults.facts import Facts, Surroundings
from mockbroker.core.faults.holds import Held
from mockbroker.core.faults.partial import Selection
from mockbroker.core.faults.rules import Entry, Plan

__all__ = ["ActiveRule", "Asked", "Decision", "Explanation", "FaultEngine", "engine_of"]

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.timers import Timer


class Decision(NamedTuple):
    """One rule that fires for one request: its effects by name, and what it is for."""

    rule: ActiveRule
    effects: Mapping[str, msgspec.Struct]
    selection: Selection


Asked: TypeAlias = "tuple[Facts, tuple[Decision, ...]]"
"""A request's facts, and the rules that fire for it."""


class FaultEngine:
    """The rules of one cluster. Belongs to the cluster's thread, like everything in the core."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._plans: dict[str, Plan] = {}
        self._rules: dict[str, ActiveRule] = {}
        self._order = 0
        self._buckets: dict[int, Bucket] = {}
        self.asked: dict[int, int] = {}  # requests that were asked about, by API
        self._timers: dict[str, list[Timer]] = {}
        self._held_ids = 0
        self.steps: dict[str, str] = {}  # where each scenario is; "start" unless told otherwise
        self.held: dict[int, Held] = {}
        # Told of each hold, action and hit: ("hit" | "held" | "action" | "failed action", details).
        self.on_fault: list[Callable[[str, str, object], None]] = []

    # -- sets --------------------------------------------------------------------------------------

    def add(self, plan: Plan) -> list[ActiveRule]:
        """Put a set in force, whole or not at all. Raises NameTakenError."""
        self._check_names(plan)
        added = []
        for rule in plan.rules:
            self._order += 1
            added.append(ActiveRule(rule, plan, self._order, self, self._cluster))
        self._plans[plan.name] = plan
        for active in added:
            self._rules[active.name] = active
        self._forget_buckets()
        self._start_timeline(plan)
        self._seat()
        return added

    def _check_names(self, plan: Plan) -> None:
        if plan.name in self._plans:
            raise NameTakenError(f"there is a set {plan.name!r} already")
        for rule in plan.rules:
            if rule.name in self._rules:
                raise NameTakenError(f"there is a rule {rule.name!r} already")

    def free_name(self) -> str:
        """A name for a set that was given none: `fault-1`, `fault-2` and so on."""
        number = 1
        while f"fault-{number}" in self._plans or f"fault-{number}" in self._rules:
            number += 1
        return f"fault-{number}"

    def remove(self, name: str) -> None:
        """Take away a set, or one rule; what is held by it goes on. Raises UnknownNameError."""
        plan = self._plans.pop(name, None)
        if plan is not None:
            names = [rule.name for rule in plan.rules]
            for timer in self._timers.pop(name, ()):
                timer.cancel()
        elif name in self._rules:
            names = [name]
        else:
            raise self._unknown(name)
        gone = [self._rules.pop(each) for each in names if each in self._rules]
        self._forget_buckets()
        for active in gone:
            active.removed()
            self._forget_empty(active.set_name)
        for held in [held for held in self.held.values() if held.rule in names]:
            held.release()
        self._seat()

    def _forget_empty(self, set_name: str) -> None:
        """A set that has neither rules nor a timeline any more is gone."""
        plan = self._plans.get(set_name)
        if plan is None or plan.timeline:
            return
        if all(rule.set_name != set_name for rule in self._rules.values()):
            del self._plans[set_name]

    def clear(self) -> None:
        """Take away everything; what is held goes on."""
        for timers in self._timers.values():
            for timer in timers:
                timer.cancel()
        gone = list(self._rules.values())
        self._plans.clear()
        self._rules.clear()
        self._timers.clear()
        self._forget_buckets()
        self.steps.clear()
        for active in gone:
            active.removed()
        for held in list(self.held.values()):
            held.release()
        self._seat()

    def _forget_buckets(self) -> None:
        for bucket in self._buckets.values():
            bucket.settle()
        self._buckets.clear()

    def _seat(self) -> None:
        self._cluster.faults = self if self._rules else None

    # -- reading -----------------------------------------------------------------------------------

    @property
    def plans(self) -> dict[str, Plan]:
        """The sets in force, by name."""
        return dict(self._plans)

    @property
    def rules(self) -> dict[str, ActiveRule]:
        """The rules in force, by name."""
        return dict(self._rules)

    def rule(self, name: str) -> ActiveRule:
        """The rule of this name, or the only one of a set of this name. Raises UnknownNameError."""
        found = self._rules.get(name)
        if found is None:
            plan = self._plans.get(name)
            if plan is None or len(plan.rules) != 1 or plan.rules[0].name not in self._rules:
                raise self._unknown(name)
            found = self._rules[plan.rules[0].name]
        return found

    def explain(self, name: str) -> Explanation:
        """Why a rule fired or did not. Raises UnknownNameError."""
        return self.explain_rule(self.rule(name))

    def explain_rule(self, active: ActiveRule) -> Explanation:
        """The same, of a rule that need not be in force any more."""
        for bucket in self._buckets.values():
            bucket.settle()
        failed = dict(active.failed)
        seen = active.matched + sum(failed.values())
        since = {key: n - active.since.get(key, 0) for key, n in self.asked.items()}
        asked = seen if active.is_removed else sum(since.values())
        in_reach = sum(n for key, n in since.items() if self._reaches(active, key))
        if not active.is_removed:
            # Other APIs are kept from a rule, and so is what a rule of higher rank has taken.
            for reason, count in (("api", asked - in_reach), ("an earlier rule", in_reach - seen)):
                if count > 0:
                    failed[reason] = failed.get(reason, 0) + count
        stopped = dict(active.gate.stopped)
        return Explanation(active.name, asked, active.matched, active.hits, failed, stopped)

    @staticmethod
    def _reaches(rule: ActiveRule, api_key: int) -> bool:
        return rule.at_accept is (api_key < 0) and (not rule.api_keys or api_key in rule.api_keys)

    def _unknown(self, name: str) -> UnknownNameError:
        known = ", ".join(sorted({*self._plans, *self._rules})) or "none"
        return UnknownNameError(f"there is no rule or set {name!r}; there are: {known}")

    # -- asking ------------------------------------------------------------------------------------

    def ask(self, cluster: Cluster, context: Surroundings, request: Any) -> Asked | None:
        """The rules that fire for a request, in order, with its facts; None if there is none."""
        api_key = context.header.api_key
        self.asked[api_key] = self.asked.get(api_key, 0) + 1
        bucket = self._buckets.get(api_key)
        if bucket is None:
            bucket = self._fill(api_key)
        rules = bucket.rules_for(cluster, context, request)
        if not rules:
            return None
        facts = Facts(cluster, context, request)
        decisions = self._decisions(rules, facts)
        return (facts, decisions) if decisions else None

    def ask_at_accept(self, facts: Facts) -> tuple[Decision, ...]:
        """The rules that fire for a connection that is being accepted, in order."""
        self.asked[facts.api_key] = self.asked.get(facts.api_key, 0) + 1
        rules = sorted(self._rules.values(), key=ActiveRule.order_key)
        left = []
        for rule in rules:
            if self._reaches(rule, facts.api_key):
                failed = rule.matcher.failed_of(facts, (), within=False)
                if failed is None:
                    left.append(rule)
                else:
                    rule.failed[failed] = rule.failed.get(failed, 0) + 1
        return self._decisions(left, facts)

    def _decisions(self, rules: Iterable[ActiveRule], facts: Facts) -> tuple[Decision, ...]:
        decisions: tuple[Decision, ...] = ()
        for rule in rules:
            if not self._fires(rule, facts):
                continue
            decisions += (Decision(rule, rule.effects, rule.matcher.selection(facts)),)
            if rule.final:
                break
        return decisions

    def _fill(self, api_key: int) -> Bucket:
        rules = sorted(self._rules.values(), key=ActiveRule.order_key)
        reached = [rule for rule in rules if self._reaches(rule, api_key)]
        bucket = self._buckets[api_key] = Bucket(reached)
        return bucket

    def _fires(self, rule: ActiveRule, facts: Facts) -> bool:
        failed = rule.matcher.failed_live(facts)
        if failed is not None:
            rule.failed[failed] = rule.failed.get(failed, 0) + 1
            return False
        rule.matched += 1
        if not rule.gate.lets_through(facts, rule.hits):
            return False
        rule.fired(facts, self._cluster.now_ms())
        self._tell("hit", rule.name, facts)
        return True

    # -- holding -----------------------------------------------------------------------------------

    def hold(self, rule: str, phase: str, facts: Facts, request: object, response: object) -> Held:
        """Note that an exchange is held; whoever waits for it takes it away with `let_go`."""
        self._held_ids += 1
        now_ms = self._cluster.now_ms()
        held = Held(self._held_ids, rule, phase, facts, request, response, now_ms)
        self.held[held.id] = held
        self._tell("held", rule, held)
        return held

    def let_go(self, held: Held) -> None:
        self.held.pop(held.id, None)

    def holds(self, rule: str) -> bool:
        """Whether a rule holds anything just now."""
        return any(held.rule == rule for held in self.held.values())

    # -- actions -----------------------------------------------------------------------------------

    def act(self, actions: Mapping[str, msgspec.Struct], cause: str) -> None:
        """Carry out actions on the cluster; one that cannot be done is told, and no more."""
        for name, arguments in actions.items():
            try:
                perform(self._cluster, name, arguments, cause)
            except (ActionError, ApiError) as error:
                self._tell("failed action", cause, (name, arguments, str(error)))
            else:
                self._tell("action", cause, (name, arguments))

    def _start_timeline(self, plan: Plan) -> None:
        for entry in plan.timeline:
            if entry.after:
                rule = self._rules[entry.after]
                rule.when_hit(1, lambda entry=entry: self._schedule(plan, entry))  # type: ignore[misc]
            else:
                self._schedule(plan, entry)

    def _schedule(self, plan: Plan, entry: Entry) -> None:
        if plan.name not in self._plans:
            return
        timers = self._cluster.timers
        due_ms = self._cluster.now_ms() + entry.at_ms
        timer = timers.call_at(due_ms, lambda: self.act(entry.do, plan.name))
        self._timers.setdefault(plan.name, []).append(timer)

    def _tell(self, what: str, cause: str, details: object) -> None:
        for observer in self.on_fault:
            observer(what, cause, details)


def engine_of(cluster: Cluster) -> FaultEngine:
    """The cluster's engine, made when it is first asked for."""
    if cluster.fault_engine is None:
        from mockbroker.core.journal.faults import fault_observer

        cluster.fault_engine = FaultEngine(cluster)
        cluster.fault_engine.on_fault.append(fault_observer(cluster))
    return cluster.fault_engine
