"""What a law is, and what it may say.

There are two kinds. A *law of the history* judges what clients were told, and the logs as they are
at the end: it holds for any cluster, whoever runs it. A *law of the state* looks into the brokers
of a simulated cluster while it lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mockbroker.core.cluster import Cluster
from mockbroker.core.events import Event
from mockbroker.core.replication.partition import Partition
from mockbroker.simulation import observe
from mockbroker.simulation.history import History
from mockbroker.simulation.logs import LogView
from mockbroker.simulation.observe import Moving, ReplicaView, State
from mockbroker.simulation.plan import Plan, Step

Key = tuple[bytes, int]  # topic id and partition

TIME_GOES_ON = "time goes on"  # broken by what goes round and round without any time passing
NO_FAILURES = "handlers and the core do not fail"

VIOLATIONS_MAX = 20  # of one simulation; what is broken is rarely broken once


class Violation(NamedTuple):
    """A law that was broken: what was seen, after which step of the plan, and when, in ms since
    the start.
    """

    law: str
    message: str
    step: int
    at_ms: int

    def __str__(self) -> str:
        return f"{self.law}: {self.message} (after step {self.step}, at {self.at_ms} ms)"


class Turns(NamedTuple):
    """A span of the history."""

    begin: int
    end: int


class Judge:
    """What laws of the history judge by, and what they found.

    Whoever runs a plan sets `step` as it goes on, and `logs` and `unsettled` once it is over.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.start_ms = history.now_ms()
        self.step = -1  # the number of the step that was performed last
        self.violations: list[Violation] = []
        self.logs: list[LogView] = []
        self.unsettled: list[str] = []  # what has not come to rest, in a sentence each
        # Partitions in which a transaction was ended by hand, and in which readers may have seen
        # what was lost later.
        self.meddled: set[Key] = set()
        self.torn: set[Key] = set()
        # Topics that were deleted: who goes by names does not know which of them it read.
        self.recreated: set[str] = set()
        self.deleted: set[bytes] = set()  # the ids of these topics
        self.meddled_groups: set[str] = set()
        self.transactions_lost = False  # what transaction coordinators knew
        self.handled_groups: set[str] = set()  # of which an action has sent members away
        # When coordinators of groups loaded, and when a broker that was deposed had not heard of
        # that and still coordinated groups; None where nobody can see that.
        self.group_loads: list[Turns] | None = None
        self.former_coordinators: list[Turns] | None = None
        self._told: set[tuple[str, str]] = set()

    def broken(self, law: str, message: str) -> None:
        """Note a violation, once."""
        if (law, message) in self._told or len(self.violations) >= VIOLATIONS_MAX:
            return
        self._told.add((law, message))
        at_ms = self.history.now_ms() - self.start_ms
        self.violations.append(Violation(law, message, self.step, at_ms))

    def user_logs(self) -> list[LogView]:
        """The logs that clients write, as they were written."""
        return [log for log in self.logs if not log.is_internal and not log.has_holes]


class JudgedWorld(Protocol):
    """A simulated cluster with its clients, as laws of the state look at it (see `World`)."""

    @property
    def plan(self) -> Plan: ...
    @property
    def history(self) -> History: ...
    @property
    def cluster(self) -> Cluster:
        """The cluster as it is now; another object after a restart."""
        ...

    @property
    def performed(self) -> Mapping[str, int]:
        """How many steps of each kind were performed and not refused."""
        ...

    def unsettled(self) -> list[str]:
        """What has not come to rest, in a sentence each."""
        ...


class StateJudge(Judge):
    """What laws of the state judge by, beside the history."""

    def __init__(self, world: JudgedWorld) -> None:
        super().__init__(world.history)
        self.world = world
        self.cluster = world.cluster  # as it is now; another object after a restart
        # Partitions that have changed since the laws looked last.
        self.changed: dict[Partition, None] = {}
        # The last state of each partition but one, with the partition epoch.
        self.former: dict[Key, tuple[int, State, Moving]] = {}
        self.unclean: set[tuple[str, int]] = set()
        self.held: set[Key] = set()  # where an action holds the last stable offset
        self.restoring = False  # what is told now is of a cluster on its way
        self.is_disturbed = False  # whether some follower may be unable to fetch, at this look
        # What laws want to look at once more, and since when.
        self.again: dict[tuple[Law, Key], int] = {}

    def look_later(self, law: Law, partition: Partition) -> None:
        """Let a law look at a partition again once time has passed."""
        self.again.setdefault((law, key_of(partition)), self.history.now_ms())

    def forgive(self, partition: Partition) -> None:
        """Nobody may rely any more on what a partition had."""
        key = key_of(partition)
        for sent in self.history.sent:  # what is on its way back to its client among it
            if (sent.topic_id, sent.partition) == key:
                sent.voided = sent.voided or "disk lost"
        self.tear(partition)

    def tear(self, partition: Partition) -> None:
        """A partition may have lost what readers and coordinators have seen there."""
        self.torn.add(key_of(partition))
        if observe.is_coordinator_log(partition.topic.name):
            self.forget_coordination(partition.topic.name)

    def forget_coordination(self, topic: str) -> None:
        """What coordinators knew may be lost: groups begin anew, and transactions stay undecided.

        A producer whose transactional id is not known any more gets an id of its own, and nobody
        ends what it had open.
        """
        self.transactions_lost |= topic == observe.TRANSACTIONS
        self.void_commits(None)
        self.meddled_groups.update(client.group for client in self.world.plan.clients)
        for transaction in self.history.transactions:
            for sent in transaction.batches:
                self.meddled.add((sent.topic_id, sent.partition))

    def void_commits(self, topic: str | None) -> None:
        """What was committed for a topic, or for all with None, may be lost."""
        for commit in self.history.commits:
            if topic is None or commit.topic == topic:
                commit.voided = True

    def may_hang(self, partition: Partition) -> bool:
        """Whether a transaction may stay open here for good: its marker was lost, or nobody knows
        any more that there is one to write.
        """
        return self.transactions_lost or key_of(partition) in self.torn


class HistoryLaw:
    """One law of the history. Its docstring is the law in a sentence, `name` the law in a few
    words.
    """

    name = ""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.begin()

    def begin(self) -> None:
        """Make what the law remembers."""

    def broken(self, message: str) -> None:
        """Say that the law does not hold."""
        self.judge.broken(self.name, message)

    def forget(self) -> None:
        """The cluster was put back to what it was: nothing follows from the past."""

    def conclude(self) -> None:
        """Everything is over and at rest."""


class Law(HistoryLaw):
    """One law of the state. It hears of the kinds of events that it names in `hears`."""

    hears: tuple[type[Event], ...] = ()
    # Whether it looks at no more than what the controller has written of a partition and what lives
    # the brokers have: it need not look where neither has changed.
    of_controller = False
    # Whether it compares replicas: it need not look where all share one log.
    of_replicas = False
    # The topics that it looks at; None for all.
    topics: frozenset[str] | None = None

    def __init__(self, laws: StateJudge) -> None:
        self.laws = laws
        super().__init__(laws)

    def look(self, partition: Partition, views: list[ReplicaView]) -> None:
        """A partition has changed; `views` are its replicas."""

    def look_again(self, partition: Partition) -> None:
        """Time has passed since the law asked for another look (`StateJudge.look_later`)."""

    def gone(self, partition: Partition) -> None:
        """No image has this object any more."""

    def happened(self, event: Event) -> None:
        """Something of a kind in `hears` was told."""

    def before(self, step: Step) -> None:
        """A step of the plan is about to be performed."""

    def after(self, step: Step) -> None:
        """A step of the plan was performed, or refused."""


def name_of(partition: Partition) -> str:
    """The partition as people write it."""
    return f"{partition.topic.name}-{partition.index}"


def key_of(partition: Partition) -> Key:
    """The partition, whatever its topic is called."""
    return partition.key
