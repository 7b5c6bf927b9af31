"""The base of all laws.

There are two kinds. A *law of the history* checks the answers to clients, and the logs at the end:
it applies to any cluster. A *law of the state* checks the brokers of a simulated cluster after each
change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mockbroker.core.cluster import Cluster
from mockbroker.core.events import Event
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.core.replication.partition import Partition
from mockbroker.core.share.records import SharePartitionKey
from mockbroker.simulation import observe
from mockbroker.simulation.history import History
from mockbroker.simulation.logs import LogView
from mockbroker.simulation.observe import ObservedReplica, ReassignmentView, State
from mockbroker.simulation.plan import Plan, Step

Key = tuple[bytes, int]  # topic id and partition

TIME_GOES_ON = "time goes on"  # violated by an endless loop in which no time passes
NO_FAILURES = "no exception is raised"

VIOLATIONS_MAX = 20  # of one simulation


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


class Span(NamedTuple):
    """A span of the history, in turns."""

    begin: int
    end: int

    def meets(self, sent: int, answered: int) -> bool:
        """Whether a request of these turns may have been answered in it."""
        return self.begin < answered and sent < self.end


class FormerLeader(NamedTuple):
    """A span in which a deposed leader still led a partition by its old image."""

    topic: str
    key: Key
    node_id: int
    span: Span


class Judge:
    """The facts that laws of the history use, and the violations.

    The driver sets `step` during a plan, and `logs` and `unsettled` at its end.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.start_ms = history.now_ms()
        self.step = -1  # the number of the step that was performed last
        self.violations: list[Violation] = []
        self.logs: list[LogView] = []
        self.unsettled: list[str] = []  # a sentence for everything that is not at rest
        # Partitions in which an action has ended a transaction, and in which readers may have seen
        # records that were lost later.
        self.ended_by_action: set[Key] = set()
        self.lossy: set[Key] = set()
        # Topics that were deleted: clients without topic ids may have read either.
        self.recreated: set[str] = set()
        self.deleted: set[bytes] = set()  # the ids of these topics
        self.disrupted_groups: set[str] = set()
        self.transactions_lost = False  # what transaction coordinators knew
        self.groups_with_removals: set[str] = set()  # an action has removed members of them
        # When group coordinators loaded, and deposed leaders with an old image; None if that cannot
        # be observed.
        self.group_loads: list[Span] | None = None
        self.former_leaders: list[FormerLeader] | None = None
        self._reported: set[tuple[str, str]] = set()

    def broken(self, law: str, message: str) -> None:
        """Note a violation, once."""
        if (law, message) in self._reported or len(self.violations) >= VIOLATIONS_MAX:
            return
        self._reported.add((law, message))
        at_ms = self.history.now_ms() - self.start_ms
        self.violations.append(Violation(law, message, self.step, at_ms))

    def is_blind(self, sent: int, answered: int) -> bool:
        """Whether a loading coordinator may have answered a group's request of these turns."""
        loads = self.group_loads
        return loads is None or any(span.meets(sent, answered) for span in loads)

    def has_former_coordinator(self, sent: int, answered: int) -> bool:
        """Whether a deposed coordinator is known that may have answered a group's request of these
        turns, from its memory.
        """
        return any(
            each.topic == GROUP_METADATA_TOPIC and each.span.meets(sent, answered)
            for each in self.former_leaders or ()
        )

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
        """A sentence for everything that is not at rest."""
        ...

    def has_run_since(self, node_id: int, since_ms: int) -> bool:
        """Whether a broker runs, and was not started, stopped, paused or resumed since then."""
        ...


class StateJudge(Judge):
    """The facts that laws of the state use beside the history."""

    def __init__(self, world: JudgedWorld) -> None:
        super().__init__(world.history)
        self.world = world
        self.cluster = world.cluster  # as it is now; another object after a restart
        # Partitions that have changed since the laws looked last.
        self.changed: dict[Partition, None] = {}
        # The last state of each partition but one, with the partition epoch.
        self.former: dict[Key, tuple[int, State, ReassignmentView]] = {}
        self.unclean: set[tuple[str, int]] = set()
        self.held: set[Key] = set()  # where an action holds the last stable offset
        self.restoring = False  # events are of a cluster that is being restored
        # How often share coordinators may have lost states, and the groups whose start offsets a
        # request has altered or deleted, or whose records in flight an action has changed.
        self.share_losses = 0
        self.reset_groups: set[str] = set()
        self.share_records_deleted = False  # an action has deleted records of share coordinators
        # The start offsets of writes that may be stored after a later write.
        self.late_starts: set[tuple[SharePartitionKey, int]] = set()
        # The state epochs of initializations that were on their way when an earlier one was stored.
        self.second_epochs: set[tuple[SharePartitionKey, int]] = set()
        self.is_disturbed = False  # whether some follower may be unable to fetch, at this look
        # The partitions that laws check once more, and since when.
        self.again: dict[tuple[Law, Key], int] = {}

    def look_later(self, law: Law, partition: Partition) -> None:
        """Let a law look at a partition again once time has passed."""
        self.again.setdefault((law, key_of(partition)), self.history.now_ms())

    def excuse(self, partition: Partition) -> None:
        """Excuse every loss of a partition's records so far."""
        key = key_of(partition)
        for sent in self.history.sent:  # also with an answer in flight
            if (sent.topic_id, sent.partition) == key:
                sent.voided = sent.voided or "disk lost"
        self.mark_lossy(partition)

    def mark_lossy(self, partition: Partition) -> None:
        """A partition may have lost records that readers and coordinators have seen."""
        self.lossy.add(key_of(partition))
        if observe.is_coordinator_log(partition.topic.name):
            self.forget_coordination(partition.topic.name)

    def forget_coordination(self, topic: str) -> None:
        """Coordinators may have lost their state: groups begin anew, and transactions stay open.

        A producer with a lost transactional id gets another producer id, and no coordinator ends
        its open transaction.
        """
        if topic == observe.SHARES:
            self.share_losses += 1
            return
        self.transactions_lost |= topic == observe.TRANSACTIONS
        self.void_commits(None)
        self.disrupted_groups.update(client.group for client in self.world.plan.clients)
        for transaction in self.history.transactions:
            for sent in transaction.batches:
                self.ended_by_action.add((sent.topic_id, sent.partition))

    def void_commits(self, topic: str | None) -> None:
        """The offsets committed for a topic, or for all with None, may be lost."""
        for commit in self.history.commits:
            if topic is None or commit.topic == topic:
                commit.voided = True

    def may_hang(self, partition: Partition) -> bool:
        """Whether a transaction may stay open: its marker or its coordinator's record was lost."""
        return self.transactions_lost or key_of(partition) in self.lossy


class HistoryLaw:
    """One law of the history. Its docstring is the law in a sentence, `name` the law in a few
    words.
    """

    name = ""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.begin()

    def begin(self) -> None:
        """Initialize the state of the law."""

    def broken(self, message: str) -> None:
        """Note a violation of this law."""
        self.judge.broken(self.name, message)

    def forget(self) -> None:
        """A snapshot was restored: forget the past."""

    def conclude(self) -> None:
        """The run is over, and everything is at rest."""


class Law(HistoryLaw):
    """One law of the state. It takes the events of the types in `events`."""

    events: tuple[type[Event], ...] = ()
    # Whether it depends only on the controller's state of a partition and on the liveness of
    # brokers: it is not checked if neither has changed.
    of_controller = False
    # Whether it compares replicas: it need not look where all share one log.
    of_replicas = False
    # The topics that it looks at; None for all.
    topics: frozenset[str] | None = None

    def __init__(self, laws: StateJudge) -> None:
        self.laws = laws
        super().__init__(laws)

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        """A partition has changed; `views` are its replicas."""

    def look_again(self, partition: Partition) -> None:
        """Time has passed since the law called `StateJudge.look_later`."""

    def gone(self, partition: Partition) -> None:
        """No image has this object any more."""

    def on_event(self, event: Event) -> None:
        """An event of a type in `events` was emitted."""

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
