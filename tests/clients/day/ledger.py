"""What producers were told and consumers got, and what has to come of it.

The rules, for a record of a partition:

- Acknowledged at an offset: it is there, once, unless a leader was elected later whose log ended at
  or before that offset. A clean election does not do that to what acks=all acknowledged; an unclean
  one does, to whatever the new leader had not got (`Fate.LOST`).
- Refused with NOT_ENOUGH_REPLICAS: nothing was appended.
- Anything else, such as a timeout, says nothing: it may be there. Without idempotence a client that
  tries again may store it twice.

Nothing is in a log that nobody sent. All calls take a lock: writers and readers are threads.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.events import Event, LeaderChanged

Partition = tuple[str, int]


class Outcome(Enum):
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused before anything was appended"
    UNKNOWN = "nobody can tell"


class Fate(Enum):
    THERE = "there, once"
    LOST = "acknowledged, and lost in an election"
    ABSENT = "never there"
    OPEN = "there or not"


class Told(NamedTuple):
    """What a writer was told of one record; `elections` had been held when it was told."""

    value: str
    partition: Partition
    acks: str
    idempotent: bool
    outcome: Outcome
    offset: int
    elections: int


class Got(NamedTuple):
    """A record as a reader got it."""

    partition: Partition
    offset: int
    value: str


class Election(NamedTuple):
    """A new leader and where its log ended, which is where its epoch begins."""

    number: int
    partition: Partition
    begin_offset: int
    unclean: bool


class Ledger:
    """The book of one day."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.told: dict[str, Told] = {}
        self.got: dict[str, list[Got]] = defaultdict(list)
        self.elections: list[Election] = []
        self._numbers: dict[str, int] = defaultdict(int)

    # -- writing it --------------------------------------------------------------------------------

    def watch(self, cluster: CoreCluster) -> None:
        """Note the elections of a cluster from now on; to be called in its thread."""

        def note(event: Event) -> None:
            if isinstance(event, LeaderChanged) and event.leader_id >= 0:
                found = cluster.partition(event.topic, event.partition)
                assert found is not None
                self.elected((event.topic, event.partition), found.log_end_offset, event.unclean)

        cluster.runtime.on_event.append(note)

    def elected(self, partition: Partition, begin_offset: int, unclean: bool) -> None:
        with self._lock:
            number = len(self.elections) + 1
            self.elections.append(Election(number, partition, begin_offset, unclean))

    def values(self, writer: str, count: int) -> list[str]:
        """Values that no other record has."""
        with self._lock:
            begin = self._numbers[writer]
            self._numbers[writer] += count
        return [f"{writer}-{number}" for number in range(begin, begin + count)]

    def tell(
        self,
        value: str,
        partition: Partition,
        outcome: Outcome,
        offset: int = -1,
        *,
        acks: str = "all",
        idempotent: bool = True,
    ) -> None:
        with self._lock:
            elections = len(self.elections)
            self.told[value] = Told(value, partition, acks, idempotent, outcome, offset, elections)

    def take(self, reader: str, got: Got) -> None:
        with self._lock:
            self.got[reader].append(got)

    def count(self, reader: str) -> int:
        """How many different records a reader has got."""
        with self._lock:
            return len({(each.partition, each.offset, each.value) for each in self.got[reader]})

    # -- judging -----------------------------------------------------------------------------------

    def fate(self, told: Told) -> Fate:
        """What Kafka's rules give a record."""
        if told.outcome is Outcome.REFUSED:
            return Fate.ABSENT
        if told.outcome is Outcome.UNKNOWN:
            return Fate.OPEN
        return Fate.LOST if self._lost_in(told) else Fate.THERE

    def _lost_in(self, told: Told) -> list[Election]:
        later = self.elections[told.elections :]
        cut = [e for e in later if e.partition == told.partition and e.begin_offset <= told.offset]
        clean = [e for e in cut if not e.unclean]
        assert not (clean and told.acks == "all"), f"a clean election lost {told}: {clean}"
        return cut

    def fates(self) -> dict[Fate, list[Told]]:
        """All records by their fate."""
        found: dict[Fate, list[Told]] = {fate: [] for fate in Fate}
        for told in self.told.values():
            found[self.fate(told)].append(told)
        return found

    def audit(self, log: Iterable[Got]) -> None:
        """Compare what is in the logs now with the fates. Raises AssertionError."""
        copies: dict[str, list[Got]] = defaultdict(list)
        places = set()
        for each in log:
            copies[each.value].append(each)
            assert (each.partition, each.offset) not in places, f"two records at {each}"
            places.add((each.partition, each.offset))
        for value, told in self.told.items():
            self._check(told, copies.pop(value, []))
        assert not copies, f"in the log, and nobody sent it: {list(copies.values())[:5]}"

    def _check(self, told: Told, copies: list[Got]) -> None:
        fate = self.fate(told)
        found = [(each.partition, each.offset) for each in copies]
        assert all(partition == told.partition for partition, _ in found), (told, copies)
        if fate is Fate.THERE:
            assert (told.partition, told.offset) in found, f"missing: {told}, there is {copies}"
        if fate in (Fate.LOST, Fate.ABSENT):
            assert found == [], f"{fate.value}, and yet there: {told}, {copies}"
        if told.idempotent:
            assert len(found) <= 1, f"more than once: {told}, {copies}"

    def audit_reader(self, reader: str, topic: str) -> None:
        """A reader got every record that is there, at its place, and else only what was lost later
        or may be there. Raises AssertionError.
        """
        places: dict[str, set[tuple[Partition, int]]] = defaultdict(set)
        for each in self.got[reader]:
            assert each.value in self.told, f"{reader} got what nobody sent: {each}"
            places[each.value].add((each.partition, each.offset))
        for value, told in self.told.items():
            if told.partition[0] != topic:
                continue
            fate, seen = self.fate(told), places[value]
            where = (told.partition, told.offset)
            if fate is Fate.THERE:
                assert where in seen, f"{reader} never got {told}"
            if fate is Fate.ABSENT:
                assert not seen, f"{reader} got {told}"
            if fate is Fate.LOST or (fate is Fate.THERE and told.idempotent):
                assert seen <= {where}, f"{reader} got {told} at {seen}"
