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
    offset. Exception: a gap in the state below the log start offset (see *available records are
    delivered*).
    """

    name = "share groups come to rest"

    def reset(self) -> None:
        # The last stable offset of each partition when the last member fetched last.
        self._ends: dict[Key, int] = {}

    def asked(self, client: SimulatedClient, call: Call) -> None:
        if client.is_awaited or call.api_key is not ApiKey.SHARE_FETCH:
            return
        for partition in observe.partitions(self.laws.cluster):
            if partition.leader_id == call.node_id:
                self._ends[partition.key] = partition.last_stable_offset

    def conclude(self) -> None:
        states = self._states()
        for group, partitions in self.laws.history.drained:
            if partitions is None:
                self.broken(f"group {group}: its last member has not come to an end")
                continue
            for topic_id, index in partitions:
                partition = observe.partition_of(self.laws.cluster, topic_id, index)
                state = states.get(SharePartitionKey(group, topic_id, index))
                if self.is_excused((group, topic_id, index)):
                    continue  # a leader keeps what it has read of a state that begins anew
                if partition is None or state is None or state.start_offset < 0:
                    continue  # without a start offset nothing was acknowledged
                self._judge(group, partition, state)

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
