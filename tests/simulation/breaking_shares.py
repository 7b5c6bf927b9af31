"""Violations of the laws of share groups and streams groups, made by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mockbroker.core.groups.streams.group import StreamsGroup, StreamsSettings
from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.tasks import OwnedTasks
from mockbroker.core.metadata.topic import SHARE_GROUP_STATE_TOPIC
from mockbroker.core.share.in_flight import InFlightBatch, InFlightState
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.records import SharePartitionKey, ShareState
from mockbroker.core.share.sessions import ShareTarget
from mockbroker.core.share.shard import Entry
from mockbroker.core.share.states import RecordState, SharePartitionState
from mockbroker.simulation import ClientSettings
from mockbroker.simulation.clients.drainer import ShareDrainer
from mockbroker.simulation.clients.share import ShareMember
from mockbroker.simulation.history import Drained
from mockbroker.simulation.laws.share_rest import RecordsAreDecided
from mockbroker.simulation.script import Call
from mockbroker.simulation.world import World
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages import share_acknowledge as acknowledging
from mockbroker_protocol.messages import share_fetch as fetching
from mockbroker_protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from tests.simulation.meddling import append, batch_of, coordinated, partition_of

RELEASE = 2

Range = tuple[int, int, int]  # first and last offset, delivery count


class Sharing:
    """Share group "g" at the leader of the partition, and answers that its members get."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.partition = partition_of(world)
        self.broker = world.cluster.processes[self.partition.leader_id]
        target = ShareTarget(self.partition.topic.topic_id, 0, "orders")
        self.share: SharePartition = self.broker.share_partitions.get_or_create("g", target)
        self.share.state = SharePartitionState.ACTIVE
        self.broker.share_partitions.sessions.open_context(
            ("g", "m"), 0, [target], [], acknowledges=False, connection_id=7
        )

    def member(self, name: str) -> ShareMember:
        settings = ClientSettings(kind="share", name=name)
        return ShareMember(settings, "4.3", [1, 2, 3], self.world.history)

    def on_response(self, api: ApiKey, request: Any, answer: Any) -> None:
        call = Call(self.partition.leader_id, api, 1, request, 5_000)
        client = self.member(request.member_id)
        self.world.laws.on_request(client, call)
        self.world.laws.on_response(client, call, answer, since_ms=self.world.clock.now_ms)

    def fetches(self, member_id: str, *ranges: Range) -> None:
        """A ShareFetch is answered with these acquired records."""
        rows: list[fetching.ShareFetchableTopicResponse] = []
        if ranges:
            rows = [self._row(ErrorCode.NONE, ranges)]
        request = fetching.ShareFetchRequest("g", member_id, 1, max_records=5)
        self.on_response(ApiKey.SHARE_FETCH, request, fetching.ShareFetchResponse(responses=rows))

    def last_member_hears(self, error: ErrorCode, *ranges: Range) -> None:
        """A ShareFetch of the last member is answered with an error, or with records."""
        request = fetching.ShareFetchRequest("g", "d", 1, max_records=5)
        call = Call(self.partition.leader_id, ApiKey.SHARE_FETCH, 1, request, 5_000)
        answer = fetching.ShareFetchResponse(responses=[self._row(error, ranges)])
        self.world.laws.on_received(_last_member(self.world), call, answer)

    def _row(
        self, error: ErrorCode, ranges: Sequence[Range]
    ) -> fetching.ShareFetchableTopicResponse:
        acquired = [fetching.AcquiredRecords(*each) for each in ranges]
        records = b"some" if ranges else b""
        data = fetching.PartitionData(0, error, records=records, acquired_records=acquired)
        return fetching.ShareFetchableTopicResponse(self.share.key[1], [data])

    def releases_and_gets(self, member_id: str, offset: int, delivery_count: int) -> None:
        """A ShareFetch releases a record, and its answer gives it to the member once more."""
        batch = fetching.AcknowledgementBatch(offset, offset, [RELEASE])
        topic_id = self.share.key[1]
        asked = [
            fetching.FetchTopic(
                topic_id, [fetching.FetchPartition(0, acknowledgement_batches=[batch])]
            )
        ]
        request = fetching.ShareFetchRequest("g", member_id, 1, max_records=5, topics=asked)
        row = self._row(ErrorCode.NONE, [(offset, offset, delivery_count)])
        answer = fetching.ShareFetchResponse(responses=[row])
        self.on_response(ApiKey.SHARE_FETCH, request, answer)

    def acknowledges(self, member_id: str, first: int, last: int, types: Sequence[int]) -> None:
        """A ShareAcknowledge is answered without an error."""
        batch = acknowledging.AcknowledgementBatch(first, last, list(types))
        row = acknowledging.AcknowledgeTopic(
            self.share.key[1], [acknowledging.AcknowledgePartition(0, [batch])]
        )
        request = acknowledging.ShareAcknowledgeRequest("g", member_id, 2, topics=[row])
        done = acknowledging.ShareAcknowledgeTopicResponse(
            self.share.key[1], [acknowledging.PartitionData(0)]
        )
        answer = acknowledging.ShareAcknowledgeResponse(responses=[done])
        self.on_response(ApiKey.SHARE_ACKNOWLEDGE, request, answer)

    def in_flight(self, state: RecordState, lock_deadline_ms: int = 0) -> None:
        """The first record is in flight in this state."""
        append(self.partition, batch_of())
        self.share.batches.add(InFlightBatch(0, 0, InFlightState(state, 1, "m", lock_deadline_ms)))


def a_record_that_two_members_have(world: World) -> None:
    group = Sharing(world)
    group.fetches("m", (0, 3, 1))
    group.fetches("n", (2, 2, 2))


def a_delivery_count_above_the_limit(world: World) -> None:
    Sharing(world).fetches("m", (0, 0, 6))


def a_delivery_count_that_stays(world: World) -> None:
    group = Sharing(world)
    group.fetches("m", (0, 0, 1))
    group.acknowledges("m", 0, 0, [2])
    group.fetches("n", (0, 0, 1))


def an_accepted_record_that_is_delivered_again(world: World) -> None:
    group = Sharing(world)
    group.fetches("m", (0, 1, 1))
    group.acknowledges("m", 0, 1, [1])
    group.fetches("n", (1, 1, 2))


def a_rejected_record_that_is_delivered_again(world: World) -> None:
    group = Sharing(world)
    group.fetches("m", (0, 1, 1))
    group.acknowledges("m", 0, 1, [1, 3])
    group.fetches("n", (1, 1, 2))


def a_record_below_the_start_offset(world: World) -> None:
    group = Sharing(world)
    group.share.start_offset = 4
    group.fetches("m", (5, 5, 1))
    group.fetches("m", (3, 3, 1))


def a_start_offset_in_memory_that_goes_back(world: World) -> None:
    group = Sharing(world)
    group.share.start_offset = 4
    group.fetches("m", (5, 5, 1))
    group.share.start_offset = 3
    group.fetches("m", (6, 6, 1))


def an_available_record_that_nobody_is_given(world: World) -> None:
    group = Sharing(world)
    group.in_flight(RecordState.AVAILABLE)
    group.fetches("m")


def a_lock_that_does_not_end(world: World) -> None:
    group = Sharing(world)
    group.in_flight(RecordState.ACQUIRED, world.clock.now_ms + 10)
    for _ in range(2):
        world.clock.now_ms += 20
        group.fetches("m")


def written(world: World, *states: ShareState) -> None:
    """A share coordinator has one state of a share partition after the other."""
    topic = world.cluster.ensure_internal_topic(SHARE_GROUP_STATE_TOPIC)
    partition = topic.partitions[0]
    broker = world.cluster.processes[partition.leader_id]
    shard = broker.share_coordinator._start_load(partition, 0, at_once=True)
    key = SharePartitionKey("g", partition_of(world).topic.topic_id, 0)
    for state in states:
        shard.entries[key] = Entry(state, state.leader_epoch, state.state_epoch, 0, 0)
        partition.notify()
        world.look()


def a_written_start_offset_that_goes_back(world: World) -> None:
    written(world, ShareState(0, 5, 0), ShareState(1, 4, 0))


def a_written_leader_epoch_that_goes_back(world: World) -> None:
    written(world, ShareState(0, 5, 0, leader_epoch=3), ShareState(1, 5, 0, leader_epoch=2))


def _last_member(world: World) -> ShareDrainer:
    return ShareDrainer(ClientSettings(kind="drainer", name="d"), "4.3", [1], world.history)


def last_member_of(world: World, *partitions: tuple[bytes, int]) -> None:
    """The last member has got nothing more from these partitions; without any, it goes on."""
    client = _last_member(world)
    call = Call(partition_of(world).leader_id, ApiKey.SHARE_FETCH, 2, None, 5_000)
    for law in world.laws._share_laws:
        if isinstance(law, RecordsAreDecided):
            law.on_request(client, call)
    if partitions:
        world.history.drained.append(Drained("g", partitions))
    else:
        world.history.draining.add("g")
    world.laws.conclude()


def a_record_that_is_left(world: World) -> None:
    append(partition_of(world), batch_of())
    written(world, ShareState(0, 0, 0))
    last_member_of(world, partition_of(world).key)


def records_for_ever(world: World) -> None:
    last_member_of(world)


def a_task_that_two_members_have(world: World) -> None:
    shard = coordinated(world)
    group = StreamsGroup("g", StreamsSettings(), shard.coordinator.topics)
    for member_id in ("a", "b"):
        group.members[member_id] = StreamsMember(
            member_id=member_id, epoch=2, assigned=OwnedTasks({"0": {1: 2}})
        )
    shard.put_group(group)
    request = StreamsGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=2)
    call = Call(shard.coordinator.broker_id, ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request, 5_000)
    answer = StreamsGroupHeartbeatResponse(member_id="a", member_epoch=2)
    settings = ClientSettings(kind="share", name="a")
    client = ShareMember(settings, "4.3", [1, 2, 3], world.history)
    world.laws.on_response(client, call, answer, since_ms=world.clock.now_ms)


BREAKERS: tuple[tuple[str, Callable[[World], None]], ...] = (
    ("records are acquired by one member", a_record_that_two_members_have),
    ("delivery counts rise to their limit", a_delivery_count_above_the_limit),
    ("delivery counts rise to their limit", a_delivery_count_that_stays),
    ("acknowledged records are not delivered again", an_accepted_record_that_is_delivered_again),
    ("acknowledged records are not delivered again", a_rejected_record_that_is_delivered_again),
    ("nothing below the start offset is delivered", a_record_below_the_start_offset),
    ("nothing below the start offset is delivered", a_start_offset_in_memory_that_goes_back),
    ("available records are delivered", an_available_record_that_nobody_is_given),
    ("available records are delivered", a_lock_that_does_not_end),
    ("share partitions' states rise", a_written_start_offset_that_goes_back),
    ("share partitions' states rise", a_written_leader_epoch_that_goes_back),
    ("share groups come to rest", a_record_that_is_left),
    ("share groups come to rest", records_for_ever),
    ("tasks are active once", a_task_that_two_members_have),
)
