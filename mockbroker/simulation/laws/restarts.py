"""Laws of restarts and of restored snapshots."""

from __future__ import annotations

from mockbroker.core.brokers.broker_life import RUNNING
from mockbroker.core.replication.partition import NO_LEADER
from mockbroker.simulation import observe
from mockbroker.simulation import plan as plans
from mockbroker.simulation.laws.base import Law
from mockbroker.simulation.observe import PartitionPicture, Picture
from mockbroker.simulation.plan import Step


class RestartsKeep(Law):
    """A restart, or the restore of a snapshot, keeps the sessions and failed directories of
    brokers, and the replicas, ISR, ELR, reassignment, epochs and logs of every partition. All links
    are up afterwards and running brokers unfenced, so that a partition without a leader may get
    one.
    """

    name = "restarts and restores keep the state"

    def begin(self) -> None:
        self._taken: Picture | None = None
        self._wanted: Picture | None = None
        self._count = 0

    def before(self, step: Step) -> None:
        self._count = self.laws.world.performed[step.do]
        match step.do:
            case plans.SNAPSHOT:
                self._taken = observe.picture(self.laws.cluster)
            case plans.RESTART:
                self._wanted = observe.picture(self.laws.cluster)
            case plans.RESTORE:
                self._wanted = self._taken
            case _:
                pass

    def after(self, step: Step) -> None:
        wanted, self._wanted = self._wanted, None
        if wanted is not None and self.laws.world.performed[step.do] > self._count:
            self._compare(wanted, observe.picture(self.laws.cluster), step.do)

    def _compare(self, wanted: Picture, found: Picture, how: str) -> None:
        unfenced = False
        for node_id, was in wanted.brokers.items():
            broker = was
            if was.state == RUNNING:  # the network is whole again
                unfenced |= was.fenced
                broker = was._replace(fenced=False, fence_at_ms=None)
            if found.brokers.get(node_id) != broker:
                self.broken(
                    f"{how}: broker {node_id} was {broker}, and is {found.brokers[node_id]}"
                )
        for key, each in wanted.partitions.items():
            now = found.partitions.get(key)
            if now is None:
                self.broken(f"{how}: {each.name} is gone")
            elif each.state.leader_id != NO_LEADER or not unfenced:
                self._compare_partition(each, now, how)

    def _compare_partition(self, was: PartitionPicture, now: PartitionPicture, how: str) -> None:
        """Clients that saw the partition later find a higher leader epoch."""
        epoch = now.state.leader_epoch
        if how == plans.RESTORE and epoch > was.state.leader_epoch:
            was = was._replace(state=was.state._replace(leader_epoch=epoch))
        if was != now:
            self.broken(f"{how}: {was} is {now}")

    def forget(self) -> None:
        """Keep the snapshot, which may be restored again."""
