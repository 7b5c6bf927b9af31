"""The engine: the rules in force, and their decisions on each request.

A rule that fires yields a `Decision`. Rules are evaluated by priority, the highest first, then in
the order in which they were added. A rule whose effect ends the request (`FINAL`) is the last.
`cluster.faults` is the engine while there are rules or plans, and None otherwise, so that a cluster
without rules pays one test for each request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from mockbroker.core.actions import ACTIONS
from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.faults.active import ActiveRule, RuleExplanation
from mockbroker.core.faults.buckets import Bucket
from mockbroker.core.faults.errors import NameTakenError, UnknownNameError
from mockbroker.core.faults.facts import ExchangeContext, Facts
from mockbroker.core.faults.holds import Held
from mockbroker.core.faults.partial import Selection
from mockbroker.core.faults.rules import FaultPlan, TimelineEntry
from mockbroker.core.faults.when import state_condition_of
from mockbroker.core.validation import ValidationError, nearest

__all__ = [
    "ActiveRule",
    "Decision",
    "FaultEngine",
    "Fired",
    "RuleExplanation",
    "RuledCluster",
    "engine_of",
]

if TYPE_CHECKING:
    from mockbroker.core.actions.registry import Action
    from mockbroker.core.faults.states import ClusterStates
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.timing.timers import Timer


class Decision(NamedTuple):
    """One rule that fires for one request: its effects by name, and the selected part."""

    rule: ActiveRule
    effects: Mapping[str, msgspec.Struct]
    selection: Selection


class Fired(NamedTuple):
    """A request's facts, the rules that fire for it, and those that its answer decides."""

    facts: Facts
    decisions: tuple[Decision, ...]
    awaiting: tuple[ActiveRule, ...] = ()


class RuledCluster(Protocol):
    """A cluster whose state rules can read, and which actions can change."""

    fault_engine: FaultEngine | None
    faults: FaultEngine | None  # the engine, while it has rules for requests or connections

    @property
    def runtime(self) -> Runtime: ...
    @property
    def live_states(self) -> ClusterStates:
        """The present states of the cluster."""
        ...

    def perform(
        self, action: Action[Any, Any], arguments: msgspec.Struct, cause: str | None = None
    ) -> Any:
        """Carry out an action on behalf of `cause`."""
        ...

    def intercept_hops(self) -> None:
        """Intercept hops while rules or the journal need them."""
        ...


class FaultEngine:
    """The rules of one cluster. It belongs to the cluster's thread.

    `runtime` provides time and timers. `cluster` is the cluster if it is in this process. Without
    it, rules apply to requests and connections, not to the cluster itself.
    """

    def __init__(self, runtime: Runtime, cluster: RuledCluster | None = None) -> None:
        self._runtime = runtime
        self._cluster = cluster
        self._states = None if cluster is None else cluster.live_states
        self._plans: dict[str, FaultPlan] = {}
        self._rules: dict[str, ActiveRule] = {}
        self._order = 0
        self._buckets: dict[int, Bucket] = {}
        self.evaluated: dict[int, int] = {}  # evaluations by API
        self.hops_evaluated: dict[int, int] = {}  # the same for hops
        self._hop_rules: tuple[ActiveRule, ...] = ()  # in order of evaluation
        self.has_client_rules = False  # rules for requests or connections
        self._timers: dict[str, list[Timer]] = {}
        self._held_ids = 0
        self.steps: dict[str, str] = {}  # the step of each scenario; "start" at first
        self.held: dict[int, Held] = {}
        # Called for each hold, action, hit: ("hit" | "held" | "action" | "failed action", details).
        self.on_fault: list[Callable[[str, str, object], None]] = []

    # -- plans -------------------------------------------------------------------------------------

    def add(self, plan: FaultPlan) -> list[ActiveRule]:
        """Put a plan in force, as a whole or not at all.

        Raises NameTakenError, and ValidationError for anything that needs a cluster where there is
        none.
        """
        self._check_names(plan)
        if self._cluster is None:
            _check_without_cluster(plan)
        added = []
        for rule in plan.rules:
            self._order += 1
            added.append(ActiveRule(rule, plan, self._order, self, self._runtime, self._states))
        self._plans[plan.name] = plan
        for active in added:
            self._rules[active.name] = active
        self._forget_buckets()
        self._start_timeline(plan)
        self._attach()
        return added

    def _check_names(self, plan: FaultPlan) -> None:
        if plan.name in self._plans:
            raise NameTakenError(f"there is a plan {plan.name!r} already")
        for rule in plan.rules:
            if rule.name in self._rules:
                raise NameTakenError(f"there is a rule {rule.name!r} already")

    def free_name(self) -> str:
        """A name for a plan without one: `fault-1`, `fault-2` and so on."""
        number = 1
        while f"fault-{number}" in self._plans or f"fault-{number}" in self._rules:
            number += 1
        return f"fault-{number}"

    def remove(self, name: str) -> None:
        """Remove a plan or one rule, and release its held requests. Raises UnknownNameError."""
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
            self._forget_empty(active.plan_name)
        for held in [held for held in self.held.values() if held.rule in names]:
            held.release()
        self._attach()

    def _forget_empty(self, plan_name: str) -> None:
        """Remove a plan without rules or a timeline."""
        plan = self._plans.get(plan_name)
        if plan is None or plan.timeline:
            return
        if all(rule.plan_name != plan_name for rule in self._rules.values()):
            del self._plans[plan_name]

    def clear(self) -> None:
        """Remove everything, and release all held requests."""
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
        self._attach()

    def _forget_buckets(self) -> None:
        for bucket in self._buckets.values():
            bucket.add_failures()
        self._buckets.clear()

    def _attach(self) -> None:
        """Attach the engine to the cluster and to its network, as its rules require."""
        rules = sorted(self._rules.values(), key=ActiveRule.order_key)
        hop_rules = tuple(rule for rule in rules if rule.scope == "hop")
        self.has_client_rules = len(hop_rules) < len(rules)
        cluster = self._cluster
        if cluster is None:
            return
        cluster.faults = self if self.has_client_rules else None
        if hop_rules != self._hop_rules:
            self._hop_rules = hop_rules
            cluster.intercept_hops()

    # -- reading -----------------------------------------------------------------------------------

    @property
    def plans(self) -> dict[str, FaultPlan]:
        """The plans in force, by name."""
        return dict(self._plans)

    @property
    def rules(self) -> dict[str, ActiveRule]:
        """The rules in force, by name."""
        return dict(self._rules)

    def rule(self, name: str) -> ActiveRule:
        """The rule of this name, or the only rule of the plan of this name. Raises
        UnknownNameError.
        """
        found = self._rules.get(name)
        if found is None:
            plan = self._plans.get(name)
            if plan is None or len(plan.rules) != 1 or plan.rules[0].name not in self._rules:
                raise self._unknown(name)
            found = self._rules[plan.rules[0].name]
        return found

    def hits(self, rule: str) -> int:
        """How often a rule in force has fired; 0 for any other name."""
        found = self._rules.get(rule)
        return 0 if found is None else found.hits

    def explain(self, name: str) -> RuleExplanation:
        """Why a rule fired or did not. Raises UnknownNameError."""
        return self.explain_rule(self.rule(name))

    def explain_rule(self, active: ActiveRule) -> RuleExplanation:
        """As `explain`, also for a removed rule."""
        for bucket in self._buckets.values():
            bucket.add_failures()
        failed = dict(active.failed)
        seen = active.matched + sum(failed.values())
        since = {
            key: n - active.since.get(key, 0) for key, n in self.evaluations_of(active).items()
        }
        evaluated = seen if active.is_removed else sum(since.values())
        in_reach = sum(n for key, n in since.items() if self._reaches(active, key))
        if not active.is_removed:
            # A rule is not evaluated for other APIs, nor for requests that an earlier rule ended.
            for reason, count in (
                ("api", evaluated - in_reach),
                ("an earlier rule", in_reach - seen),
            ):
                if count > 0:
                    failed[reason] = failed.get(reason, 0) + count
        stopped = dict(active.trigger.stopped)
        return RuleExplanation(active.name, evaluated, active.matched, active.hits, failed, stopped)

    @staticmethod
    def _reaches(rule: ActiveRule, api_key: int) -> bool:
        """Whether a rule can be for an API."""
        if rule.scope != "hop" and (rule.scope == "connection") is not (api_key < 0):
            return False
        return not rule.api_keys or api_key in rule.api_keys

    def evaluations_of(self, rule: ActiveRule) -> Mapping[int, int]:
        """The number of evaluations in the scope of this rule, by API."""
        return self.hops_evaluated if rule.scope == "hop" else self.evaluated

    def _unknown(self, name: str) -> UnknownNameError:
        known = nearest(name, {*self._plans, *self._rules}) or "; there is none"
        return UnknownNameError(f"there is no rule or plan {name!r}{known}")

    # -- evaluation --------------------------------------------------------------------------------

    def evaluate(self, context: ExchangeContext, request: Any) -> Fired | None:
        """The rules that fire for a request, in order, with its facts; None without any."""
        api_key = context.header.api_key
        self.evaluated[api_key] = self.evaluated.get(api_key, 0) + 1
        bucket = self._buckets.get(api_key)
        if bucket is None:
            bucket = self._fill(api_key)
        rules = bucket.rules_for(context, request)
        if not rules:
            return None
        facts = Facts(context, request)
        awaiting = tuple(rule for rule in rules if rule.matcher.needs_answer)
        if awaiting:
            rules = [rule for rule in rules if not rule.matcher.needs_answer]
        decisions = self._decisions(rules, facts)
        return Fired(facts, decisions, awaiting) if decisions or awaiting else None

    def evaluate_answer(self, fired: Fired, response: Any) -> tuple[Decision, ...]:
        """The rules that fire because of the answer, in order; `response` is None without one."""
        decisions: tuple[Decision, ...] = ()
        for rule in fired.awaiting:
            selection = None
            if response is not None and not rule.is_removed:
                selection = rule.matcher.selection_of_answer(fired.facts, response)
            if selection is None:
                rule.failed["delivery_count"] = rule.failed.get("delivery_count", 0) + 1
            elif self._fires(rule, fired.facts):
                decisions += (Decision(rule, rule.effects, selection),)
        return decisions

    def evaluate_accept(self, facts: Facts) -> tuple[Decision, ...]:
        """The rules that fire for an accepted connection, in order."""
        rules = sorted(self._rules.values(), key=ActiveRule.order_key)
        accepting = [rule for rule in rules if rule.scope == "connection"]
        return self._evaluate_each(accepting, facts, self.evaluated)

    @property
    def hop_rules(self) -> tuple[ActiveRule, ...]:
        """The rules in force for hops."""
        return self._hop_rules

    def evaluate_hop(self, facts: Facts) -> tuple[Decision, ...]:
        """The rules that fire for a hop, in order."""
        return self._evaluate_each(self._hop_rules, facts, self.hops_evaluated)

    def _evaluate_each(
        self, rules: Iterable[ActiveRule], facts: Facts, evaluated: dict[int, int]
    ) -> tuple[Decision, ...]:
        evaluated[facts.api_key] = evaluated.get(facts.api_key, 0) + 1
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
        reached = [r for r in rules if r.scope != "hop" and self._reaches(r, api_key)]
        bucket = self._buckets[api_key] = Bucket(reached)
        return bucket

    def _fires(self, rule: ActiveRule, facts: Facts) -> bool:
        failed = rule.matcher.failed_live(facts)
        if failed is not None:
            rule.failed[failed] = rule.failed.get(failed, 0) + 1
            return False
        rule.matched += 1
        if not rule.trigger.fires(facts, rule.hits):
            return False
        rule.fired(facts, self._runtime.now_ms())
        self._notify("hit", rule.name, facts)
        return True

    # -- holding -----------------------------------------------------------------------------------

    def hold(self, rule: str, phase: str, facts: Facts, request: object, response: object) -> Held:
        """Register an exchange as held, until `forget_held`."""
        self._held_ids += 1
        now_ms = self._runtime.now_ms()
        held = Held(self._held_ids, rule, phase, facts, request, response, now_ms)
        self.held[held.id] = held
        self._notify("held", rule, held)
        return held

    def forget_held(self, held: Held) -> None:
        self.held.pop(held.id, None)

    def holds(self, rule: str) -> bool:
        """Whether a rule holds a request at present."""
        return any(held.rule == rule for held in self.held.values())

    # -- actions -----------------------------------------------------------------------------------

    def act(self, actions: Mapping[str, msgspec.Struct], cause: str) -> None:
        """Perform actions on the cluster; observers get each one that failed."""
        assert self._cluster is not None  # `add` refuses such rules and plans
        for name, arguments in actions.items():
            try:
                self._cluster.perform(ACTIONS[name], arguments, cause)
            except (ActionError, ApiError) as error:
                self._notify("failed action", cause, (name, arguments, str(error)))
            else:
                self._notify("action", cause, (name, arguments))

    def _start_timeline(self, plan: FaultPlan) -> None:
        for entry in plan.timeline:
            if entry.after:
                rule = self._rules[entry.after]
                rule.when_hit(1, lambda entry=entry: self._schedule(plan, entry))  # type: ignore[misc]
            else:
                self._schedule(plan, entry)

    def _schedule(self, plan: FaultPlan, entry: TimelineEntry) -> None:
        if plan.name not in self._plans:
            return
        timers = self._runtime.timers
        due_ms = self._runtime.now_ms() + entry.at_ms
        timer = timers.call_at(due_ms, lambda: self.act(entry.do, plan.name))
        self._timers.setdefault(plan.name, []).append(timer)

    def _notify(self, what: str, cause: str, details: object) -> None:
        for observer in self.on_fault:
            observer(what, cause, details)


def _check_without_cluster(plan: FaultPlan) -> None:
    """Raise ValidationError for anything that needs a cluster in this process."""
    for number, rule in enumerate(plan.rules):
        path = f"rules[{number}]"
        if rule.match.is_for_hops:
            raise ValidationError(f"{path}.match", "rules for hops need a cluster in this process")
        field = state_condition_of(rule.when)
        if field is not None:
            raise ValidationError(f"{path}.when.{field}", "it needs a cluster in this process")
        for name in rule.do:
            if name in ACTIONS:
                raise ValidationError(f"{path}.do.{name}", "actions need a cluster in this process")
    if plan.timeline:
        raise ValidationError("timeline", "actions need a cluster in this process")


def engine_of(cluster: RuledCluster) -> FaultEngine:
    """The cluster's engine, made by the first call."""
    if cluster.fault_engine is None:
        from mockbroker.core.journal.faults import fault_observer

        cluster.fault_engine = FaultEngine(cluster.runtime, cluster)
        cluster.fault_engine.on_fault.append(fault_observer(cluster.runtime))
    return cluster.fault_engine
