"""`when` of a rule: the matching requests for which it fires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mockbroker.core.faults.facts import Facts
from mockbroker.core.faults.matching import Matcher
from mockbroker.core.faults.rules import (
    Barrier,
    FaultPlan,
    Rule,
    ScenarioStep,
    StateCondition,
    When,
)
from mockbroker.core.faults.states import ClusterStates
from mockbroker.core.ids import IdSource

if TYPE_CHECKING:
    from mockbroker.core.faults.engine import FaultEngine
    from mockbroker.core.runtime import Runtime

START = "start"


class RuleTrigger:
    """A rule's `when`, with its counts: `stopped` counts by the part that did not hold."""

    __slots__ = (
        "_barrier",
        "_conditions",
        "_engine",
        "_first_offsets",
        "_matcher",
        "_now_ms",
        "_nth",
        "_scenario",
        "_step",
        "_stream",
        "_when",
        "added_ms",
        "passed",
        "stopped",
    )

    def __init__(
        self,
        rule: Rule,
        plan: FaultPlan,
        matcher: Matcher,
        stream: IdSource,
        runtime: Runtime,
        states: ClusterStates | None,
        engine: FaultEngine,
    ) -> None:
        """Without `states`, `state_condition_of(rule.when)` must be None."""
        when = rule.when
        self._when = when
        self._matcher = matcher
        self._stream = stream
        self._engine = engine
        self._now_ms = runtime.now_ms
        self.added_ms = runtime.now_ms()
        self._nth = frozenset(
            when.nth if isinstance(when.nth, list) else () if when.nth is None else (when.nth,)
        )
        self._barrier = (
            Barrier(rule=when.barrier) if isinstance(when.barrier, str) else when.barrier
        )
        self._step = ScenarioStep(at=when.step) if isinstance(when.step, str) else when.step
        self._scenario = (self._step.scenario if self._step is not None else "") or plan.name
        self._first_offsets: dict[tuple[bytes, int], int] = {}
        if when.after_records is not None and states is not None:
            self._first_offsets = states.all_log_ends()
        self.passed = 0
        self.stopped: dict[str, int] = {}
        self._conditions = self._conditions_of(when, states)

    def fires(self, facts: Facts, hits: int) -> bool:
        """Whether the rule fires for a matching request, after so many hits."""
        reason = self._reason(facts, hits)
        if reason is None:
            self._advance_step()
            return True
        self.stopped[reason] = self.stopped.get(reason, 0) + 1
        return False

    def _reason(self, facts: Facts, hits: int) -> str | None:
        for name, is_open in self._conditions:
            if not is_open(facts):
                return name
        self.passed += 1
        when = self._when
        number = self.passed - when.skip
        if number <= 0:
            return "skip"
        if when.times is not None and hits >= when.times:
            return "times"
        if self._nth and number not in self._nth:
            return "nth"
        if when.every is not None and number % when.every:
            return "every"
        if when.probability is not None and not self._drawn(when.probability):
            return "probability"
        return None

    def _drawn(self, probability: float) -> bool:
        return (self._stream.bits64() >> 11) / 2**53 < probability

    # -- conditions --------------------------------------------------------------------------------

    def _conditions_of(
        self, when: When, states: ClusterStates | None
    ) -> list[tuple[str, Callable[[Facts], bool]]]:
        conditions: list[tuple[str, Callable[[Facts], bool]]] = []
        if when.from_ is not None:
            from_ms = self.added_ms + when.from_
            conditions.append(("from", lambda _: self._now_ms() >= from_ms))
        if when.until is not None:
            until_ms = self.added_ms + when.until
            conditions.append(("until", lambda _: self._now_ms() < until_ms))
        if states is not None:
            conditions += self._state_conditions(when, states)
        if self._barrier is not None:
            barrier = self._barrier
            conditions.append(("barrier", lambda _: self._is_reached(barrier)))
        if self._step is not None and self._step.at is not None:
            step = self._step.at
            conditions.append(("step", lambda _: self._current_step() == step))
        return conditions

    def _state_conditions(
        self, when: When, states: ClusterStates
    ) -> Iterator[tuple[str, Callable[[Facts], bool]]]:
        """The conditions on the state of the cluster."""
        if when.after_offset is not None:
            offset = when.after_offset
            yield (
                "after_offset",
                lambda facts: any(end >= offset for end in self._log_ends(states, facts).values()),
            )
        if when.after_records is not None:
            records = when.after_records
            yield "after_records", lambda facts: self._appended(states, facts) >= records
        if when.state is not None:
            state = when.state
            yield "state", lambda _: _is_in(states, state)

    def _log_ends(self, states: ClusterStates, facts: Facts) -> dict[tuple[bytes, int], int]:
        """The log ends of the selected partitions of the request."""
        return states.log_ends(self._matcher.selection(facts).targets)

    def _appended(self, states: ClusterStates, facts: Facts) -> int:
        """The records appended to the partitions since the rule was added."""
        first = self._first_offsets
        return sum(
            end - first.get(partition, 0)
            for partition, end in self._log_ends(states, facts).items()
        )

    def _is_reached(self, barrier: Barrier) -> bool:
        engine = self._engine
        if barrier.hits is None:
            return engine.holds(barrier.rule)
        return engine.hits(barrier.rule) >= barrier.hits

    # -- scenarios ---------------------------------------------------------------------------------

    def _current_step(self) -> str:
        return self._engine.steps.get(self._scenario, START)

    def _advance_step(self) -> None:
        if self._step is not None and self._step.then is not None:
            self._engine.steps[self._scenario] = self._step.then


def _is_in(states: ClusterStates, state: StateCondition) -> bool:
    if state.group is not None and states.group(state.group.id) != state.group.state:
        return False
    txn = state.transaction
    if txn is not None and states.transaction(txn.id) != txn.state:
        return False
    broker = state.broker
    return broker is None or states.broker_is(broker.node, broker.state)


def state_condition_of(when: When) -> str | None:
    """The first field of a `when` that needs the state of a cluster; None without one."""
    for name in ("after_offset", "after_records", "state"):
        if getattr(when, name) is not None:
            return name
    return None
