"""Shrinking: a smaller plan that violates the same law.

Steps are removed first (delta debugging, ddmin), then clients, then settings, repeatedly while the
plan becomes smaller. The result is not necessarily the smallest plan, but no single part of it can
be removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from mockbroker.simulation.plan import Plan
from mockbroker.simulation.running import Mode, PlanResult, run

T = TypeVar("T")

RUNS_MAX = 400
OPERATIONS_MIN = 3


class Shrunk(NamedTuple):
    """The outcome of the smaller plan, the law, and the number of runs."""

    outcome: PlanResult
    law: str
    runs: int


class NotReproducedError(Exception):
    """A second run of the plan did not violate the law; it does not depend on the plan alone."""


def shrink(plan: Plan, law: str, runs_max: int = RUNS_MAX, *, mode: Mode = "fast") -> Shrunk:
    """A smaller plan that violates the same law. Raises NotReproducedError."""
    return _Shrinking(law, runs_max, mode).shrunk(plan)


class _Shrinking:
    """One search. `_best` is the smallest plan so far that violates the law."""

    def __init__(self, law: str, runs_max: int, mode: Mode) -> None:
        self._law = law
        self._mode: Mode = mode
        self._runs_max = runs_max
        self._runs = 0
        self._best: PlanResult | None = None

    def shrunk(self, plan: Plan) -> Shrunk:
        if not self._fails(plan):
            raise NotReproducedError(
                f"a second run of the plan of seed {plan.seed} does not break the law "
                f"{self._law!r}: something in it does not come from the plan"
            )
        size = -1
        while size != self._size() and self._runs < self._runs_max:
            size = self._size()
            self._less_steps()
            self._less_clients()
            self._less_settings()
        assert self._best is not None
        return Shrunk(self._best, self._law, self._runs)

    @property
    def _plan(self) -> Plan:
        assert self._best is not None
        return self._best.plan

    def _size(self) -> int:
        return len(msgspec.json.encode(self._plan))

    def _fails(self, plan: Plan) -> bool:
        """Whether a plan violates the law; if so it becomes `_best`."""
        if self._runs >= self._runs_max:
            return False
        self._runs += 1
        outcome = run(plan, self._mode)
        if self._law not in outcome.laws:
            return False
        self._best = outcome
        return True

    def _with(self, **changes: object) -> bool:
        return self._fails(msgspec.structs.replace(self._plan, **changes))

    def _less_steps(self) -> None:
        ddmin(self._plan.steps, lambda steps: self._with(steps=steps))

    def _less_clients(self) -> None:
        names = [client.name for client in self._plan.clients]
        for name in names:
            clients = [client for client in self._plan.clients if client.name != name]
            steps = [s for s in self._plan.steps if s.arguments.get("client") != name]
            self._with(clients=clients, steps=steps)
        for number in range(len(self._plan.clients)):
            self._fewer_operations(number)

    def _fewer_operations(self, number: int) -> None:
        while True:
            clients = list(self._plan.clients)
            operations = clients[number].operations // 2
            if operations < OPERATIONS_MIN:
                return
            clients[number] = msgspec.structs.replace(clients[number], operations=operations)
            if not self._with(clients=clients):
                return

    def _less_settings(self) -> None:
        for settings in self._simpler_settings():
            self._with(settings=settings)

    def _simpler_settings(self) -> Iterator[object]:
        """The present settings with one thing less, one after the other."""
        for name in list(self._plan.settings.configs):
            configs = {k: v for k, v in self._plan.settings.configs.items() if k != name}
            yield msgspec.structs.replace(self._plan.settings, configs=configs)
        used = {topic for client in self._plan.clients for topic in (*client.topics, client.input)}
        for topic in list(self._plan.settings.topics):
            if topic.name not in used:
                topics = [each for each in self._plan.settings.topics if each.name != topic.name]
                yield msgspec.structs.replace(self._plan.settings, topics=topics)
        for number, topic in enumerate(self._plan.settings.topics):
            if topic.partitions > 1:
                topics = list(self._plan.settings.topics)
                topics[number] = msgspec.structs.replace(topic, partitions=1)
                yield msgspec.structs.replace(self._plan.settings, topics=topics)
        yield msgspec.structs.replace(self._plan.settings, latency_ms=(0, 0))


def ddmin(items: list[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """The items without those that are not needed for failing (Zeller's ddmin)."""
    if items and fails([]):
        return []
    parts = 2
    while len(items) >= 2:
        size = -(-len(items) // parts)
        for begin in range(0, len(items), size):
            rest = items[:begin] + items[begin + size :]
            if fails(rest):
                items = rest
                parts = max(parts - 1, 2)
                break
        else:
            if parts >= len(items):
                return items
            parts = min(len(items), parts * 2)
    return items
