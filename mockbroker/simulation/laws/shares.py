"""Laws of share groups: records that members acquire, and the states that share coordinators keep.

The laws of deliveries look at requests when a broker gets them, and at its responses when they are
made (`on_response`). A response to a request with acknowledgements may be made long after it has
acquired its records; the laws leave it out. They also leave out responses of a deposed leader: it
may deliver again what its successor has delivered, as in Kafka. After an unclean election the
deposed share coordinator, alone in its ISR, goes on until it has the image with its successor. Its
writes are lost, and the laws do not note the acknowledgements that are answered meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mockbroker.core.events import Event, ShareStartMoved
from mockbroker.core.ids import uuid_from_text
from mockbroker.core.replication.partition import Partition
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.records import SharePartitionKey
from mockbroker.core.share.sessions import ShareSession
from mockbroker.core.share.states import ACKNOWLEDGE_TYPES, RecordEvent, RecordState
from mockbroker.simulation import observe, observe_shares
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.laws.base import Key, Law, name_of
from mockbroker.simulation.observe import ObservedReplica
from mockbroker.simulation.observe_shares import StoredState
from mockbroker.simulation.plan import Step
from mockbroker.simulation.script import Call
from mockbroker_protocol import ApiKey

SHARE_APIS = frozenset(
    (
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_GROUPS,
    )
)
SHARE_RESETS = SHARE_APIS - {ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE}
_FINAL = frozenset((RecordEvent.ACCEPT, RecordEvent.REJECT, RecordEvent.GAP))

ShareKey = tuple[str, bytes, int]  # group id, topic id and partition


class Delivery(NamedTuple):
    """Records that an answer gives to a member, and the share partition that they are from."""

    key: ShareKey
    share: SharePartition
    first_offset: int
    last_offset: int
    delivery_count: int


class Acknowledgement(NamedTuple):
    """The acknowledge type of one offset, in a request."""

    key: ShareKey
    offset: int
    event: RecordEvent | None


def acknowledgements_of(request: Any) -> Iterator[Acknowledgement]:
    """What a ShareFetch or ShareAcknowledge acknowledges."""
    for topic in request.topics:
        for partition in topic.partitions:
            key = (request.group_id, topic.topic_id, partition.partition_index)
            for batch in partition.acknowledgement_batches:
                types = batch.acknowledge_types
                for number in range(batch.last_offset - batch.first_offset + 1):
                    type_ = types[0] if len(types) == 1 else types[number]
                    event = ACKNOWLEDGE_TYPES.get(type_)
                    yield Acknowledgement(key, batch.first_offset + number, event)


def acknowledged_in(call: Call, response: Any) -> Iterator[Acknowledgement]:
    """The acknowledgements that an answer says to be done."""
    if response.error_code and call.api_key is ApiKey.SHARE_ACKNOWLEDGE:
        return
    is_fetch = call.api_key is ApiKey.SHARE_FETCH
    done = {
        (call.request.group_id, topic.topic_id, data.partition_index)
        for topic in response.responses
        for data in topic.partitions
        if not (data.acknowledge_error_code if is_fetch else data.error_code)
    }
    for each in acknowledgements_of(call.request):
        if each.key in done:
            yield each


class ShareLaw(Law):
    """A law of deliveries. It forgets everything when share coordinators may have lost states."""

    def begin(self) -> None:
        self._losses = self.laws.share_losses
        self.reset()

    def begin_after_losses(self) -> None:
        """Forget everything if states may have been lost."""
        if self._losses != self.laws.share_losses:
            self.begin()

    def reset(self) -> None:
        """Forget the past."""

    def forget(self) -> None:
        self.begin()

    def name_of(self, key: ShareKey) -> str:
        """A share partition, as people read it."""
        partition = observe.partition_of(self.laws.cluster, key[1], key[2])
        where = key[1].hex() if partition is None else name_of(partition)
        return f"group {key[0]}, {where}"

    def on_request(self, client: SimulatedClient, call: Call) -> None:
        """A broker has got a request of `SHARE_APIS`."""
        if call.api_key not in SHARE_RESETS:
            self.fetches_or_acknowledges(client, call)

    def fetches_or_acknowledges(self, client: SimulatedClient, call: Call) -> None:
        """A broker has got a ShareFetch or ShareAcknowledge."""

    def on_response(
        self, client: SimulatedClient, call: Call, response: Any, *, late: bool
    ) -> None:
        """A broker has answered a ShareFetch or ShareAcknowledge."""
        self.begin_after_losses()
        if call.api_key is ApiKey.SHARE_FETCH:
            acknowledges = next(acknowledgements_of(call.request), None) is not None
            if not (late and acknowledges):
                for delivery in self._deliveries(call, response):
                    self.delivered(client, call, delivery)
                self.fetched(call, response, acknowledges=acknowledges)
        if self._may_lose_writes():
            return
        for each in acknowledged_in(call, response):
            if not self.is_excused(each.key):
                self.acknowledged(call, each)

    def _deliveries(self, call: Call, response: Any) -> Iterator[Delivery]:
        for topic in response.responses:
            for data in topic.partitions:
                if not data.acquired_records:
                    continue
                key = (call.request.group_id, topic.topic_id, data.partition_index)
                share = observe_shares.share_partition(self.laws.cluster, call.node_id, *key)
                if share is None or self.is_excused(key):
                    continue
                for each in data.acquired_records:
                    yield Delivery(
                        key, share, each.first_offset, each.last_offset, each.delivery_count
                    )

    def _may_lose_writes(self) -> bool:
        """Whether a share coordinator that an unclean election has deposed does not know it yet."""
        if not self.laws.lossy:
            return False
        topic = self.laws.cluster.topics.get(observe.SHARES)
        return topic is not None and any(
            partition.key in self.laws.lossy
            and observe_shares.has_deposed_coordinator(self.laws.cluster, partition)
            for partition in topic.partitions
        )

    def is_excused(self, key: ShareKey) -> bool:
        """Whether offsets may name other records now, or their states were reset."""
        return (key[1], key[2]) in self.laws.lossy or self.may_begin_anew(key[0])

    def may_begin_anew(self, group_id: str) -> bool:
        """Whether the states of a group may be initialized again or are no longer its members': a
        request has altered or deleted its offsets, an action has changed records in flight, or its
        coordinator has lost the group.
        """
        return group_id in self.laws.reset_groups or group_id in self.laws.disrupted_groups

    def delivered(self, client: SimulatedClient, call: Call, delivery: Delivery) -> None:
        """An answer has records."""

    def fetched(self, call: Call, response: Any, *, acknowledges: bool) -> None:
        """A ShareFetch was answered; its deliveries are known."""

    def acknowledged(self, call: Call, each: Acknowledgement) -> None:
        """An answer says that an acknowledgement is done."""


class _Holder:
    """The member that has acquired a record, until its lock ends."""

    __slots__ = ("client", "deadline_ms", "gave_up", "member_id", "session")

    def __init__(
        self, client: str, member_id: str, session: ShareSession | None, deadline_ms: int
    ) -> None:
        self.client = client
        self.member_id = member_id
        self.session = session
        self.deadline_ms = deadline_ms
        self.gave_up = False


class AcquiredOnce(ShareLaw):
    """A record that a member of a share group has acquired is not delivered again by the same share
    partition before its acquisition lock ends, unless the member has acknowledged it or has lost
    its share session.
    """

    name = "records are acquired by one member"

    def reset(self) -> None:
        self._holders: dict[SharePartition, dict[int, _Holder]] = {}
        self._asked_ms: dict[str, int] = {}

    def fetches_or_acknowledges(self, client: SimulatedClient, call: Call) -> None:
        now_ms = observe_shares.lock_time_ms(self.laws.cluster, call.node_id)
        self._asked_ms[client.name] = now_ms
        for each in acknowledgements_of(call.request):
            for share, holders in self._holders.items():
                holder = holders.get(each.offset)
                if (
                    share.key == each.key
                    and holder is not None
                    and holder.member_id == call.request.member_id
                    and each.event is not RecordEvent.RENEW
                ):
                    holder.gave_up = True

    def delivered(self, client: SimulatedClient, call: Call, delivery: Delivery) -> None:
        share, member_id = delivery.share, call.request.member_id
        cluster, group_id = self.laws.cluster, delivery.key[0]
        now_ms = observe_shares.lock_time_ms(cluster, call.node_id)
        for other in [each for each in self._holders if not each.is_active]:
            del self._holders[other]
        holders = self._holders.setdefault(share, {})
        session = observe_shares.session_of(cluster, call.node_id, group_id, member_id)
        deadline_ms = self._asked_ms.get(client.name, now_ms) + share.configs.lock_duration_ms
        for offset in range(delivery.first_offset, delivery.last_offset + 1):
            holder = holders.get(offset)
            if (
                holder is not None
                and not holder.gave_up
                and now_ms < holder.deadline_ms
                and holder.session is not None
                and holder.session
                is observe_shares.session_of(cluster, call.node_id, group_id, holder.member_id)
            ):
                self.broken(
                    f"{self.name_of(delivery.key)}: {client.name} was given offset {offset}, which "
                    f"{holder.client} has for {holder.deadline_ms - now_ms} ms more"
                )
            holders[offset] = _Holder(client.name, member_id, session, deadline_ms)

    def after(self, step: Step) -> None:
        """An action may have changed the clock, or locks."""
        del step
        self._holders.clear()


class DeliveriesCounted(ShareLaw):
    """The delivery count of a record is between 1 and `share.delivery.count.limit`. It rises with
    each delivery of a share partition, and a new leader goes on from the count that was written
    with the last release.
    """

    name = "delivery counts rise to their limit"

    def reset(self) -> None:
        self._counts: dict[SharePartition, dict[int, int]] = {}
        self._released: dict[ShareKey, dict[int, int]] = {}
        # By member, the counts of what its last request releases. The answer may give the same
        # records to it once more, with the next count, which is not written then.
        self._releasing: dict[str, dict[tuple[ShareKey, int], int]] = {}

    def fetches_or_acknowledges(self, client: SimulatedClient, call: Call) -> None:
        del client
        counts = self._releasing[call.request.member_id] = {}
        for each in acknowledgements_of(call.request):
            share = observe_shares.share_partition(self.laws.cluster, call.node_id, *each.key)
            if share is not None and each.event is RecordEvent.RELEASE:
                counts[each.key, each.offset] = self._counts.get(share, {}).get(each.offset, 0)

    def delivered(self, client: SimulatedClient, call: Call, delivery: Delivery) -> None:
        del call
        share, count, name = delivery.share, delivery.delivery_count, self.name_of(delivery.key)
        limit = share.configs.delivery_count_limit
        if not 1 <= count <= limit:
            self.broken(
                f"{name}: {client.name} was given offset {delivery.first_offset} with the delivery "
                f"count {count}, and the limit is {limit}"
            )
        for other in [each for each in self._counts if not each.is_active]:
            del self._counts[other]
        counts = self._counts.setdefault(share, {})
        released = self._released.setdefault(delivery.key, {})
        for offset in range(delivery.first_offset, delivery.last_offset + 1):
            before = max(counts.get(offset, 0), released.get(offset, 0))
            if count <= before:
                self.broken(
                    f"{name}: {client.name} was given offset {offset} with the delivery count "
                    f"{count}, after the count {before}"
                )
            counts[offset] = count

    def acknowledged(self, call: Call, each: Acknowledgement) -> None:
        if each.event is not RecordEvent.RELEASE:
            return
        count = self._releasing.get(call.request.member_id, {}).get((each.key, each.offset), 0)
        if count:
            released = self._released.setdefault(each.key, {})
            released[each.offset] = max(count, released.get(each.offset, 0))


class AcknowledgedOnce(ShareLaw):
    """A record whose acceptance or rejection was answered is not delivered again, whatever leader
    or share coordinator follows. Exception: a write that the share partition of before has on its
    way, with a higher delivery count; the share coordinator prefers it, as Kafka's
    (PersisterStateBatchCombiner).
    """

    name = "acknowledged records are not delivered again"

    def reset(self) -> None:
        self._over: dict[ShareKey, dict[int, str]] = {}  # offset: who acknowledged it, and how
        self._outdone: dict[str, set[tuple[ShareKey, int]]] = {}  # by member

    def fetches_or_acknowledges(self, client: SimulatedClient, call: Call) -> None:
        del client
        self._outdone[call.request.member_id] = {
            (each.key, each.offset)
            for each in acknowledgements_of(call.request)
            if self._is_outdone(call.node_id, each)
        }

    def _is_outdone(self, node_id: int, each: Acknowledgement) -> bool:
        cluster = self.laws.cluster
        count = observe_shares.count_on_its_way(
            cluster, node_id, SharePartitionKey(*each.key), each.offset
        )
        share = observe_shares.share_partition(cluster, node_id, *each.key) if count else None
        return share is not None and any(
            record.first_offset <= each.offset <= record.last_offset
            and record.delivery_count < count
            for record in observe_shares.records_in_flight(share)
        )

    def acknowledged(self, call: Call, each: Acknowledgement) -> None:
        if (each.key, each.offset) in self._outdone.get(call.request.member_id, ()):
            return
        if each.event in _FINAL:
            at_ms = self.laws.history.now_ms() - self.laws.start_ms
            how = f"{call.request.member_id} had acknowledged ({each.event.name}) at {at_ms} ms"
            self._over.setdefault(each.key, {}).setdefault(each.offset, how)

    def delivered(self, client: SimulatedClient, call: Call, delivery: Delivery) -> None:
        del call
        over = self._over.get(delivery.key, {})
        for offset in range(delivery.first_offset, delivery.last_offset + 1):
            if offset in over:
                self.broken(
                    f"{self.name_of(delivery.key)}: {client.name} was given offset {offset}, which "
                    f"{over[offset]}"
                )


class AvailableAreDelivered(ShareLaw):
    """A ShareFetch that waited is not answered without records while its session has a share
    partition with Available records in flight. Acquisition locks end at their deadline.

    A fetch below the log start offset is answered at once; it moves the start offset, and the
    member tries again (ShareFetchUtils). If the gap in the state that was read begins below the
    log start offset, this goes on for ever, as in Kafka: SharePartition.updateCacheAndOffsets
    leaves the gap where it is.
    """

    name = "available records are delivered"
    events = (ShareStartMoved,)

    def reset(self) -> None:
        self._moved_ms: dict[ShareKey, int] = {}  # when the log start moved the start offset
        self._overdue: dict[tuple[SharePartition, int], int] = {}

    def on_event(self, event: Event) -> None:
        if isinstance(event, ShareStartMoved) and event.reason == "log_start":
            self.begin_after_losses()
            key = (event.group, uuid_from_text(event.topic_id), event.partition)
            self._moved_ms[key] = self.laws.history.now_ms()

    def fetched(self, call: Call, response: Any, *, acknowledges: bool) -> None:
        if response.error_code or response.throttle_time_ms or not call.request.max_records:
            return
        self._judge_locks()
        if acknowledges or any(
            data.records or data.error_code
            for topic in response.responses
            for data in topic.partitions
        ):
            return
        cluster, request = self.laws.cluster, call.request
        session = observe_shares.session_of(
            cluster, call.node_id, request.group_id, request.member_id
        )
        if session is None or request.share_session_epoch < 0:
            return
        for topic_id, index in session.partitions:
            key = (request.group_id, topic_id, index)
            share = observe_shares.share_partition(cluster, call.node_id, *key)
            if (
                share is None
                or self.is_excused(key)
                or self._moved_ms.get(key) == self.laws.history.now_ms()
                or observe_shares.has_gap_below_log(share)
            ):
                continue
            end = observe_shares.readable_end(share)
            for each in observe_shares.records_in_flight(share):
                if (
                    each.state is RecordState.AVAILABLE
                    and not each.has_ongoing_transition
                    and share.start_offset <= each.first_offset < end
                ):
                    self.broken(
                        f"{self.name_of(key)}: {request.member_id} was given nothing, and offset "
                        f"{each.first_offset} is Available"
                    )
                    break

    def _judge_locks(self) -> None:
        """Locks that were over at an earlier time, too."""
        overdue: dict[tuple[SharePartition, int], int] = {}
        now_ms = self.laws.history.now_ms()
        for broker, share in observe_shares.all_share_partitions(self.laws.cluster):
            if broker.state != "running":
                continue
            lock_ms = observe_shares.lock_time_ms(self.laws.cluster, broker.node_id)
            for each in observe_shares.records_in_flight(share):
                if each.state is not RecordState.ACQUIRED or each.has_ongoing_transition:
                    continue
                if each.lock_deadline_ms < lock_ms:
                    where = share, each.first_offset
                    overdue[where] = since_ms = self._overdue.get(where, now_ms)
                    if since_ms < now_ms:
                        self.broken(
                            f"{self.name_of(share.key)}: {each.member_id} still has offset "
                            f"{each.first_offset}, and its lock ended at {each.lock_deadline_ms}"
                        )
        self._overdue = overdue

    def after(self, step: Step) -> None:
        del step
        self._overdue.clear()


class StatesRise(ShareLaw):
    """In the state that a share coordinator has for a share partition, the leader epoch and the
    state epoch do not decrease, and in one state epoch the start offset does not, unless a request
    has altered or deleted the group's offsets. Its batches are in order and do not overlap, and an
    Available one may be delivered again.

    The start offset may go back to the one of a write that a persister has repeated, or that had no
    result yet when a later one was stored. Writes of one share partition do not wait for one
    another: an earlier one waits for its backoff, or with the former coordinator, which has not
    answered, while a later one is stored at the present coordinator. The coordinator takes the
    start offset of either. So do Kafka's PersisterStateManager and ShareCoordinatorShard. Records
    between the two start offsets are then delivered again by the next leader, and the laws forget
    what was done with them.

    The epochs may be lower after an action has deleted records of share coordinators: the state is
    loaded from what is left. The laws forget the past as well where a group coordinator has had no
    result of an initialization for too long, and the second one, with a higher state epoch, comes
    after the first: it begins a state anew that is in use
    (GroupMetadataManager.subscribedTopicsChangeMap).
    """

    name = "share partitions' states rise"
    topics = frozenset((observe.SHARES,))

    def reset(self) -> None:
        self._seen: dict[Key, dict[SharePartitionKey, StoredState]] = {}

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        del views
        self.begin_after_losses()
        self.laws.late_starts.update(observe_shares.repeated_writes(self.laws.cluster))
        states = observe_shares.stored_states(self.laws.cluster, partition)
        if states is None:
            return
        self.laws.late_starts.update(observe_shares.overtaken_writes(self.laws.cluster, states))
        former = self._seen.get(partition.key, {})
        self._seen[partition.key] = states
        initializations = set(observe_shares.initializations(self.laws.cluster))
        for key, now in states.items():
            before = former.get(key)
            if before is None or before.state_epoch != now.state_epoch:
                self.laws.second_epochs.update(
                    each for each in initializations if each[0] == key and each[1] > now.state_epoch
                )
            if before is not None and before != now:
                self._compare(key, before, now)
            if before != now:
                self._judge(key, now)

    def _compare(self, key: SharePartitionKey, before: StoredState, now: StoredState) -> None:
        if self.may_begin_anew(key.group_id) or self.laws.share_records_deleted:
            return
        for what, was, is_ in (
            ("state epoch", before.state_epoch, now.state_epoch),
            ("leader epoch", before.leader_epoch, now.leader_epoch),
        ):
            if is_ < was:
                self.broken(f"{self.name_of(key)}: the {what} went from {was} to {is_}")
        epoch = now.state_epoch
        if epoch != before.state_epoch and (key, epoch) in self.laws.second_epochs:
            self._forget_deliveries()
        start = now.start_offset
        if start >= before.start_offset or before.state_epoch != now.state_epoch:
            return
        if (key, start) in self.laws.late_starts:
            self._forget_deliveries()
        else:
            self.broken(
                f"{self.name_of(key)}: the start offset went from {before.start_offset} to {start} "
                f"in state epoch {now.state_epoch}"
            )

    def _forget_deliveries(self) -> None:
        """Let the other laws forget the past."""
        self.laws.share_losses += 1
        self._losses = self.laws.share_losses

    def _judge(self, key: SharePartitionKey, now: StoredState) -> None:
        limit = self.laws.cluster.config_int("group.share.delivery.count.limit")
        following = 0
        for batch in now.batches:
            if not following <= batch.first_offset <= batch.last_offset:
                self.broken(f"{self.name_of(key)}: {batch} does not follow offset {following - 1}")
            following = batch.last_offset + 1
            is_available = batch.delivery_state == RecordState.AVAILABLE
            if (
                is_available
                and batch.delivery_count >= limit
                and not self.may_begin_anew(key.group_id)
            ):
                self.broken(f"{self.name_of(key)}: {batch} is Available, and the limit is {limit}")


class NothingBelowStart(ShareLaw):
    """No record below the start offset of its share partition is delivered: neither the one in
    memory nor the one that was written. The one in memory does not decrease.
    """

    name = "nothing below the start offset is delivered"

    def reset(self) -> None:
        self._starts: dict[SharePartition, int] = {}

    def delivered(self, client: SimulatedClient, call: Call, delivery: Delivery) -> None:
        del call
        share, key = delivery.share, delivery.key
        for other in [each for each in self._starts if not each.is_active]:
            del self._starts[other]
        before = self._starts.get(share, 0)
        self._starts[share] = share.start_offset
        if share.start_offset < before:
            self.broken(
                f"{self.name_of(key)}: the start offset went from {before} to {share.start_offset}"
            )
        if delivery.first_offset < before:
            self.broken(
                f"{self.name_of(key)}: {client.name} was given offset {delivery.first_offset}, "
                f"and the start offset was {before}"
            )


SHARE_LAWS: tuple[type[ShareLaw], ...] = (
    AcquiredOnce,
    DeliveriesCounted,
    AcknowledgedOnce,
    NothingBelowStart,
    AvailableAreDelivered,
    StatesRise,
)
