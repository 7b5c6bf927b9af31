"""The law of share groups at rest."""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.core.replication.partition import Partition
from mockbroker.core.share.records import SharePartitionKey
from mockbroker.simulation import observe, observe_shares
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.clients.drainer import QUIET_MS
from mockbroker.simulation.laws.base import Key, name_of
from mockbroker.simulation.laws.shares import ShareLaw
from mockbroker.simulation.observe_shares import StoredState
from mockbroker.simulation.script import Call
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.share_fetch import ShareFetchResponse


class RecordsAreDecided(ShareLaw):
    """Once the faults have ended, each record of a share group is delivered until it is accepted,
    rejected or archived: a last member gets no more records, and none is left below the last stable
    offset. Exceptions: a gap in the state below the log start offset (see *available records are
    delivered*), a group whose offsets were altered or deleted, whose leaders may keep what they had
    read before, and coordinators that have lost records by an unclean election or an action: the
    epochs of a group that begins anew are below those of its share state, and fenced.

    A leader may get another leader epoch and go on as the leader, as by a reassignment that takes a
    replica away. Its share partitions keep the epoch that they began with. Once the log start
    offset has passed the next fetch offset, each fetch is answered with FENCED_LEADER_EPOCH until
    the last member closes its connection, as in Kafka: ShareFetchUtils.offsetForEarliestTimestamp
    is refused, and the error does not fence the share partition (SharePartitionManager). The last
    member may be answered so for ever, but not with records or with another error.

    A persister may repeat a deletion of offsets for so long that a member joins and initializes the
    states again before they are deleted. The group coordinator still takes them for initialized
    (GroupMetadataManager.completeDeleteShareGroupOffsets), and leaders can never read them.
    """

    name = "share groups come to rest"

    def reset(self) -> None:
        # The last stable offset of each partition when the last member fetched last.
        self._ends: dict[Key, int] = {}
        # By group, when its last member was first and last refused for the former leader epoch of
        # a share partition, without records or another error in between.
        self._refused_ms: dict[str, tuple[int, int]] = {}

    def fetches_or_acknowledges(self, client: SimulatedClient, call: Call) -> None:
        if client.is_awaited or call.api_key is not ApiKey.SHARE_FETCH:
            return
        for partition in observe.partitions(self.laws.cluster):
            if partition.leader_id == call.node_id:
                self._ends[partition.key] = partition.last_stable_offset

    def on_received(self, call: Call, response: ShareFetchResponse) -> None:
        """The last member of a group has got an answer."""
        group = call.request.group_id
        refusals = {
            data.error_code == ErrorCode.FENCED_LEADER_EPOCH
            and observe_shares.keeps_former_epoch(
                self.laws.cluster, call.node_id, group, topic.topic_id, data.partition_index
            )
            for topic in response.responses
            for data in topic.partitions
            if data.error_code or data.acquired_records
        }
        if response.error_code or False in refusals:
            self._refused_ms.pop(group, None)
        elif refusals:
            now_ms = self.laws.history.now_ms()
            since_ms, _ = self._refused_ms.get(group, (now_ms, now_ms))
            self._refused_ms[group] = since_ms, now_ms

    def _is_refused_only(self, group: str) -> bool:
        """Whether the last member would have found its end without these refusals."""
        since_ms, until_ms = self._refused_ms.get(group, (0, 0))
        return until_ms - since_ms >= QUIET_MS

    def conclude(self) -> None:
        states = self._states()
        for group in self.laws.history.draining:
            if not (
                self._coordinators_lost_records()
                or self._is_refused_only(group)
                or self._has_deleted_states(group, states)
            ):
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

    def _has_deleted_states(
        self, group: str, states: Mapping[SharePartitionKey, StoredState]
    ) -> bool:
        """Whether states that a request has deleted are initialized for the group's coordinator."""
        return group in self.laws.reset_groups and any(
            key not in states
            for key in observe_shares.initialized_partitions(self.laws.cluster, group)
        )

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
