"""Which of the requests that match a rule it fires for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mockbroker.core.broker import Broker
from mockbroker.core.faults.facts import Facts
from mockbroker.core.faults.matching import Matcher
from mockbroker.core.faults.partial import ALL, Target
from mockbroker.core.faults.rules import Barrier, Plan, Rule, State, Step, When
from mockbroker.core.faults.states import group_state, transaction_state
from mockbroker.core.ids import IdSource
from mockbroker.core.partition import Partition

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.faults.engine import FaultEngine

START = "start"


class Gate:
    """A rule's `when`, with its counts. `stopped` says how often each part said no."""

    __slots__ = (
        "_added_ms",
        "_barrier",
        "_cluster",
        "_engine",
        "_first_offsets",
        "_gates",
        "_matcher",
        "_nth",
        "_scenario",
        "_step",
        "_stream",
        "_when",
        "passed",
        "stopped",
    )

    def __init__(
        self,
        rule: Rule,
        plan: Plan,
        matcher: Matcher,
        stream: IdSource,
        cluster: Cluster,
        engine: FaultEngine,
    ) -> None:
        when = rule.when
        self._when = when
        self._matcher = matcher
        self._stream = stream
        self._cluster = cluster
        self._engine = engine
        self._added_ms = cluster.now_ms()
        self._nth = frozenset(
            when.nth if isinstance(when.nth, list) else () if when.nth is None else (when.nth,)
        )
        self._barrier = (
            Barrier(rule=when.barrier) if isinstance(when.barrier, str) else when.barrier
        )
        self._step = Step(at=when.step) if isinstance(when.step, str) else when.step
        self._scenario = (self._step.scenario if self._step is not None else "") or plan.name
        self._first_offsets: dict[tuple[bytes, int], int] = {}
        if when.after_records is not None:
            self._note_offsets()
        self.passed = 0
        self.stopped: dict[str, int] = {}
        self._gates = self._open_questions(when)

    def lets_through(self, facts: Facts, hits: int) -> bool:
        """Whether the rule fires for a request that matches, after so many hits."""
        reason = self._reason(facts, hits)
        if reason is None:
            self._advance_step()
            return True
        self.stopped[reason] = self.stopped.get(reason, 0) + 1
        return False

    def _reason(self, facts: Facts, hits: int) -> str | None:
        for name, is_open in self._gates:
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

    # -- gates -------------------------------------------------------------------------------------

    def _open_questions(self, when: When) -> list[tuple[str, Callable[[Facts], bool]]]:
        gates: list[tuple[str, Callable[[Facts], bool]]] = []
        if when.from_ is not None:
            from_ms = self._added_ms + when.from_
            gates.append(("from", lambda _: self._cluster.now_ms() >= from_ms))
        if when.until is not None:
            until_ms = self._added_ms + when.until
            gates.append(("until", lambda _: self._cluster.now_ms() < until_ms))
        if when.after_offset is not None:
            offset = when.after_offset
            gates.append(("after_offset", lambda facts: self._reached(facts, offset)))
        if when.after_records is not None:
            records = when.after_records
            gates.append(("after_records", lambda facts: self._appended(facts) >= records))
        if when.state is not None:
            state = when.state
            gates.append(("state", lambda _: self._is_in(state)))
        if self._barrier is not None:
            barrier = self._barrier
            gates.append(("barrier", lambda _: self._is_up(barrier)))
        if self._step is not None and self._step.at is not None:
            step = self._step.at
            gates.append(("step", lambda _: self._current_step() == step))
        return gates

    def _partitions(self, facts: Facts) -> list[Partition]:
        """The partitions that the rule is for, of those that the request is about."""
        found: dict[tuple[bytes, int], Partition] = {}
        for target in self._matcher.selection(facts).targets:
            for partition in self._of_target(target):
                found[partition.topic.topic_id, partition.index] = partition
        return list(found.values())

    def _of_target(self, target: Target) -> list[Partition]:
        topic = self._cluster.topics.get(target.topic)
        if topic is None:
            return []
        if target.partition == ALL:
            return topic.partitions
        return topic.partitions[target.partition : target.partition + 1]

    def _reached(self, facts: Facts, offset: int) -> bool:
        return any(each.log_end_offset >= offset for each in self._partitions(facts))

    def _note_offsets(self) -> None:
        for topic in self._cluster.topics.values():
            for each in topic.partitions:
                self._first_offsets[topic.topic_id, each.index] = each.log_end_offset

    def _appended(self, facts: Facts) -> int:
        """How many records the partitions got since the rule was added."""
        first = self._first_offsets
        return sum(
            each.log_end_offset - first.get((each.topic.topic_id, each.index), 0)
            for each in self._partitions(facts)
        )

    def _is_in(self, state: State) -> bool:
        cluster = self._cluster
        if state.group is not None and group_state(cluster, state.group.id) != state.group.state:
            return False
        txn = state.transaction
        if txn is not None and transaction_state(cluster, txn.id) != txn.state:
            return False
        if state.broker is not None:
            broker = cluster.processes.get(state.broker.node)
            return broker is not None and _broker_is(broker, state.broker.state)
        return True

    def _is_up(self, barrier: Barrier) -> bool:
        engine = self._engine
        if barrier.hits is None:
            return engine.holds(barrier.rule)
        other = engine.rules.get(barrier.rule)
        return other is not None and other.hits >= barrier.hits

    # -- scenarios ---------------------------------------------------------------------------------

    def _current_step(self) -> str:
        return self._engine.steps.get(self._scenario, START)

    def _advance_step(self) -> None:
        if self._step is not None and self._step.then is not None:
            self._engine.steps[self._scenario] = self._step.then


def _broker_is(broker: Broker, state: str) -> bool:
    return broker.fenced if state == "fenced" else broker.state == state
