"""Two periodic tasks of the controller: preferred leader elections, and unclean elections.

Every `leader.imbalance.check.interval.seconds` the preferred replica of each partition is elected,
where it does not lead and is eligible, if `auto.leader.rebalance.enable` is on. KRaft moves all
such partitions. Earlier releases moved a broker's partitions only if others led more than a tenth
of those that prefer it.

Every `unclean.leader.election.interval.ms` a leader is elected for each leaderless partition whose
topic allows unclean elections.

No timer runs without such a partition.

Source: QuorumController, ReplicationControlManager.maybeBalancePartitionLeaders; before KRaft,
KafkaController.checkAndTriggerAutoLeaderRebalance.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mockbroker.core.events import UNCLEAN_ELECTION, PreferredElectionFailed
from mockbroker.core.replication.elections import Election, PartitionChange
from mockbroker.core.replication.partition import NO_LEADER, Partition

if TYPE_CHECKING:
    from mockbroker.core.metadata.image import MetadataImage
    from mockbroker.core.replication.replication_control import ReplicationControl
    from mockbroker.core.timing.timers import Timer

# The default of leader.imbalance.per.broker.percentage, which was removed with ZooKeeper.
IMBALANCE_MAX = 0.1


def imbalance(image: MetadataImage) -> dict[int, tuple[int, int]]:
    """By broker: the number of partitions that prefer it and have another leader, and the number of
    all that prefer it.
    """
    preferred: Counter[int] = Counter()
    missing: Counter[int] = Counter()
    for partition in image.partitions():
        node_id = partition.replicas[0]
        preferred[node_id] += 1
        missing[node_id] += partition.leader_id != node_id
    return {node_id: (missing[node_id], count) for node_id, count in sorted(preferred.items())}


class LeaderBalance:
    """The two tasks, on the cluster's timers."""

    __slots__ = ("_control", "_preferred", "_unclean")

    def __init__(self, control: ReplicationControl) -> None:
        self._control = control
        self._preferred: Timer | None = None
        self._unclean: Timer | None = None

    def leader_changed(self, partition: Partition) -> None:
        """Schedule the tasks that a partition's new leader requires."""
        control = self._control
        if partition.leader_id == NO_LEADER and self._unclean is None:
            after_ms = control.configs.get_int("unclean.leader.election.interval.ms")
            self._unclean = control.runtime.timers.call_at(
                control.runtime.now_ms() + after_ms, self._elect_unclean
            )
        if partition.leader_id != partition.replicas[0] and self._preferred is None:
            after_ms = control.configs.get_int("leader.imbalance.check.interval.seconds") * 1000
            self._preferred = control.runtime.timers.call_at(
                control.runtime.now_ms() + after_ms, self._balance
            )

    def _balance(self) -> None:
        self._preferred = None
        control = self._control
        if control.configs.get("auto.leader.rebalance.enable"):
            eligible = self._imbalanced_brokers()
            for partition in control.image.partitions():
                if partition.replicas[0] in eligible:
                    self._elect_preferred(partition)
        for partition in control.image.partitions():
            if partition.leader_id != partition.replicas[0]:
                self.leader_changed(partition)
                return

    def _imbalanced_brokers(self) -> set[int]:
        """The brokers whose preferred partitions move back."""
        shares = imbalance(self._control.image)
        if self._control.profile.has_kraft:
            return {node_id for node_id, (missing, _) in shares.items() if missing}
        return {
            node_id for node_id, (missing, of) in shares.items() if missing / of > IMBALANCE_MAX
        }

    def _elect_preferred(self, partition: Partition) -> None:
        preferred = partition.replicas[0]
        if partition.leader_id == preferred:
            return
        change = PartitionChange(self._control, partition)
        change.election = Election.PREFERRED
        change.apply("preferred_election")
        if partition.leader_id != preferred:
            self._control.runtime.emit(
                PreferredElectionFailed(
                    self._control.runtime.now_ms(),
                    partition.topic.name,
                    partition.index,
                    preferred,
                    partition.leader_id,
                )
            )

    def _elect_unclean(self) -> None:
        self._unclean = None
        leaderless = [p for p in self._control.image.partitions() if p.leader_id == NO_LEADER]
        for partition in leaderless:
            if partition.topic.configs.unclean_leader_election_enable:
                change = PartitionChange(self._control, partition)
                change.election = Election.UNCLEAN
                change.apply(UNCLEAN_ELECTION)
        for partition in leaderless:
            if partition.leader_id == NO_LEADER:
                self.leader_changed(partition)
                return
