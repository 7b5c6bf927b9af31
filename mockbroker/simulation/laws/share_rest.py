"""The law of share groups at rest."""

from __future__ import annotations

from mockbroker.core.replication.partition import Partition
from mockbroker.core.share.records import SharePartitionKey
from mockbroker.simulation import observe, observe_shares
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.laws.base import Key, name_of
from mockbroker.simulation.laws.shares import ShareLaw
from mockbroker.simulation.observe_shares import StoredState
from mockbroker.simulation.script import Call
from mockbroker_protocol import ApiKey


class RecordsAreDecided(ShareLaw):
    """Once the faults have ended, each record of a share group is delivered until it is accepted,
    rejected or archived: a last member gets no more records, and none is left below the last stable
    offset. Exceptions: a gap in the state below the log start offset (see *available records are
    delivered*), a group whose offsets were altered or deleted, whose leaders may keep what they had
    read before, and coordinators that have lost records by an unclean election or an action: the
    epochs of a group that begins anew are below those of its share state, and fenced.
    """

    name = "share groups come to rest"

    def reset(self) -> None:
        # The last stable offset of each partition when the last member fetched last.
        self._ends: dict[Key, int] = {}

    def fetches_or_acknowledges(self, client: SimulatedClient, call: Call) -> None:
        if client.is_awaited or call.api_key is not ApiKey.SHARE_FETCH:
            return
        for partition in observe.partitions(self.laws.cluster):
            if partition.leader_id == call.node_id:
                self._ends[partition.key] = partition.last_stable_offset

    def conclude(self) -> None:
        states = self._states()
        for group in self.laws.history.draining:
            if not self._coordinators_lost_records():
                self.broken(f"group {group}: its last member still gets records or errors")
        for group, partitions in self.laws.history.drained:
            for topic_id, index in partitions:
                partition = observe.partition_of(self.laws.cluster, topic_id, index)
                state = states.get(SharePartitionKey(group, topic_id, index))
                if group in self.laws.reset_groups:
                    continue  # a leader keeps what it has read of a state that begins anew
                if partition is None or state is None or state.start_offset < 0:
                    continue  # without a start offset nothing was acknowledged
                self._judge(group, partition, state)

    def _coordinators_lost_records(self) -> bool:
        """Whether records of share states or of groups are lost. A share coordinator answers with
        errors then, as Kafka's.
        """
        laws = self.laws
        lost = {
            partition.topic.name
            for partition in observe.partitions(laws.cluster)
            if partition.key in laws.lossy
        }
        logs = {observe.SHARES, observe.GROUPS}
        return laws.share_records_deleted or not logs.isdisjoint(lost | laws.recreated)

    def _states(self) -> dict[SharePartitionKey, StoredState]:
        topic = self.laws.cluster.topics.get(observe.SHARES)
        found: dict[SharePartitionKey, StoredState] = {}
        for partition in topic.partitions if topic is not None else ():
            found.update(observe_shares.stored_states(self.laws.cluster, partition) or {})
        return found

    def _judge(self, group: str, partition: Partition, state: StoredState) -> None:
        undecided = observe_shares.first_undecided(state, partition.log_start_offset)
        if undecided is not None and undecided < self._ends.get(partition.key, 0):
            self.broken(
                f"group {group}, {name_of(partition)}: offset {undecided} is neither accepted nor "
                f"rejected nor archived, and nobody gets it. {state}"
            )
