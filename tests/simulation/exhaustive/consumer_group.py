"""A consumer group (KIP-848) with two dynamic members, a static member and two topics.

Topic t has two partitions; topic u has one and may be created at any point. Time passes in units:
a session lasts three, a rebalance timeout one or two, the assignment interval one. Responses may
be lost, and a record may fail to be stored. A heartbeat may be repeated with the previous epoch,
or with an epoch that no member ever had. The group may be loaded from its compacted log at any
moment.

A client consumes newly assigned partitions at once, and revoked ones until it acknowledges the
revocation. (A client that delays the start and loses a response meanwhile may consume a partition
that has been assigned to another member since, because it reported the partition as owned. Kafka
has the same gap.)

The order of the records in the log is not part of a state's key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

from mockbroker.core.groups.consumer.events import (
    ConsumerHeartbeat,
    ConsumerLeave,
    Effect,
)
from mockbroker.core.groups.consumer.group import ConsumerGroup, ConsumerSettings
from mockbroker.core.groups.consumer.machine import handle
from mockbroker.core.groups.consumer.members import ConsumerMember
from mockbroker.core.groups.consumer.records import RECORD_TYPES
from mockbroker.core.groups.consumer.states import ConsumerGroupState, MemberState
from mockbroker.core.groups.events import ConsumerResult, Loaded, Reply, Tick
from mockbroker.core.groups.modern.events import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Store,
    Stored,
    StoredChange,
)
from mockbroker.core.groups.modern.group import ModernGroup
from mockbroker.core.groups.modern.timers import SetTimer
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import Record
from tests.simulation.exhaustive.consumer_group_key import state_key
from tests.simulation.exhaustive.consumer_parties import (
    NOTHING,
    SUBSCRIPTIONS,
    ConsumerGroupClient,
    Partitions,
    Topics,
    by_topic,
    flat,
)
from tests.simulation.exhaustive.world import Event, ExploredWorld, must

UNIT_MS = 1_000
SESSION_MS = 3 * UNIT_MS
INTERVAL_MS = UNIT_MS
SETTINGS = ConsumerSettings(session_timeout_ms=SESSION_MS, assignment_interval_ms=INTERVAL_MS)
TICKS_MAX = 50
ROUNDS_OF_PEACE = 25
LIVES_MAX = 2  # member ids of one client

NONE = ErrorCode.NONE
NOT_STORED = ErrorCode.COORDINATOR_NOT_AVAILABLE


class ConsumerGroupWorld(ExploredWorld):
    """The group, its clients, its log, and the topics."""

    name: ClassVar[str] = "consumer-group"
    beginnings: ClassVar[tuple[str, ...]] = (
        "an empty group",
        "three members in a stable group",
        "a member that has to give up what another one waits for",
    )

    def __init__(self) -> None:
        self.now_ms = UNIT_MS
        self.topics = Topics()
        self.group = ConsumerGroup("g", SETTINGS, self.topics)
        self.clients = (
            ConsumerGroupClient("a", None, UNIT_MS),
            ConsumerGroupClient("b", None, 2 * UNIT_MS),
            ConsumerGroupClient("c", "s", 2 * UNIT_MS),
        )
        self.log: dict[tuple[str, str], StoredChange] = {}  # compacted
        self.failing = False

    @classmethod
    def begin(cls, beginning: str) -> ConsumerGroupWorld:
        world = cls()
        _, stable, waits = cls.beginnings
        if beginning == stable:
            world.settle()
        elif beginning == waits:
            world.on_beat(0)
            world.on_time_passes()
            world.on_beat(1)
            world.on_beat(0)
        return world

    # -- events ------------------------------------------------------------------------------------

    def events(self) -> Sequence[Event]:
        found: list[Event] = [("time_passes",), ("time_passes", "not_stored"), ("reload",)]
        if "u" not in self.topics.infos:
            found.append(("create_topic",))
        for index, client in enumerate(self.clients):
            found += [("beat", index), ("beat", index, "lost"), ("beat", index, "not_stored")]
            if client.epoch != JOIN_EPOCH:
                found += [("beat", index, "brief"), ("resubscribe", index)]
                found += [("leave", index, LEAVE_EPOCH)]
                if client.instance_id is not None:
                    found.append(("leave", index, STATIC_LEAVE_EPOCH))
                if client.lives < LIVES_MAX:
                    found.append(("crash", index))
            if client.assigned != client.owned:
                found.append(("give_up", index))
            member = self.group.members.get(client.member_id)
            if member is not None and member.epoch > 0:
                found.append(("late_heartbeat", index, "next"))
                if member.previous_epoch > 0:
                    found.append(("late_heartbeat", index, "previous"))
        return found

    def on_beat(self, index: int, how: str = "") -> None:
        client = self.clients[index]
        joins = client.epoch == JOIN_EPOCH
        if joins:
            client.owned = client.assigned = NOTHING
        self.failing = how == "not_stored"
        result = self._heartbeat(
            client,
            client.epoch,
            None if how == "brief" else client.owned,
            full=joins or client.unsure,
        )
        self.failing = False
        client.unsure = how == "lost"
        if how != "lost":
            self._hear(client, result)

    def on_resubscribe(self, index: int) -> None:
        client = self.clients[index]
        after = (SUBSCRIPTIONS.index(client.topics) + 1) % len(SUBSCRIPTIONS)
        client.topics = SUBSCRIPTIONS[after]
        self._hear(client, self._heartbeat(client, client.epoch, client.owned, full=True))

    def on_late_heartbeat(self, index: int, which: str) -> None:
        """A late heartbeat, or one that no client has sent; its answer is dropped."""
        client = self.clients[index]
        member = self.group.members[client.member_id]
        epoch = member.previous_epoch if which == "previous" else member.epoch + 1
        result = self._heartbeat(client, epoch, client.owned)
        known = (member.epoch, member.previous_epoch)
        must(result.error is not NONE or epoch in known, "an epoch that no answer had is fenced")

    def on_give_up(self, index: int) -> None:
        """The client has revoked the partitions that are not assigned."""
        self.clients[index].owned = self.clients[index].assigned

    def on_leave(self, index: int, epoch: int) -> None:
        client = self.clients[index]
        self._tell(
            ConsumerLeave(
                callback=client.name,
                member_id=client.member_id,
                epoch=epoch,
                instance_id=client.instance_id,
            )
        )
        client.forget()
        if client.instance_id is not None and client.lives < LIVES_MAX:
            client.lives += 1

    def on_crash(self, index: int) -> None:
        self.clients[index].forget()
        self.clients[index].lives += 1

    def on_create_topic(self) -> None:
        self.topics.create("u", 1)

    def on_time_passes(self, how: str = "") -> None:
        self.failing = how == "not_stored"
        end_ms = self.now_ms + UNIT_MS
        for _ in range(TICKS_MAX):
            due_ms = self.group.deadline_ms()
            if due_ms is None or due_ms > end_ms:
                self.now_ms = end_ms
                self.failing = False
                return
            must(due_ms >= self.now_ms, "a deadline lies ahead")
            self.now_ms = due_ms
            self._tell(Tick())
        must(condition=False, sentence="the group has nothing left to do at some time")

    def on_reload(self) -> None:
        changes = []
        for change in self.log.values():
            key, value = RECORD_TYPES.record_of("g", change)
            read = RECORD_TYPES.parse(Record(key=key, value=value))
            assert read is not None
            changes.append(read.change)
        self.group = ConsumerGroup("g", SETTINGS, self.topics)
        self.group.apply(changes)
        self._tell(Loaded())

    # -- the machine and its answers ---------------------------------------------------------------

    def _heartbeat(
        self,
        client: ConsumerGroupClient,
        epoch: int,
        owned: Partitions | None,
        *,
        full: bool = False,
    ) -> ConsumerResult:
        result = self._tell(
            ConsumerHeartbeat(
                callback=client.name,
                member_id=client.member_id,
                epoch=epoch,
                instance_id=client.instance_id,
                rebalance_timeout_ms=client.rebalance_timeout_ms if full else None,
                topic_names=client.topics if full else None,
                reported=None if owned is None else by_topic(owned),
            )
        )
        assert result is not None
        return result

    def _tell(self, event: object) -> ConsumerResult | None:
        group = self.group
        before = (group.epoch, group.assignment_epoch, dict(group.members))
        answers: list[Reply] = []
        effects = handle(group, event, self.now_ms)
        refused = any(isinstance(e, Reply) and e.result.error is not NONE for e in effects)
        must(
            not refused or not any(isinstance(e, Store) for e in effects),
            "a request that is refused changes nothing",
        )
        while effects:
            effect = effects.pop(0)
            if isinstance(effect, Reply):
                answers.append(effect)
            else:
                assert isinstance(effect, Store)
                effects = self._store(effect) + effects
        must(
            len(answers) == isinstance(event, ConsumerHeartbeat | ConsumerLeave), "one answer each"
        )
        self._check_rise(*before)
        if not answers:
            return None
        result = answers[0].result
        assert isinstance(result, ConsumerResult)
        return result

    def _store(self, store: Store) -> list[Effect]:
        if not self.failing:
            for change in store.changes:
                key = (type(change).__name__, getattr(change, "member_id", ""))
                self.log.pop(key, None)
                if not change.is_tombstone:
                    self.log[key] = change
        error = NOT_STORED if self.failing else NONE
        return handle(self.group, Stored(store, error), self.now_ms)

    def _check_rise(
        self, epoch: int, assignment_epoch: int, members: Mapping[str, ConsumerMember]
    ) -> None:
        group = self.group
        must(group.epoch >= epoch, "the group epoch only rises")
        must(group.assignment_epoch >= assignment_epoch, "the assignment epoch only rises")
        for member_id, member in group.members.items():
            before = members.get(member_id)
            rises = before is None or member.epoch >= before.epoch
            must(rises or member.epoch == STATIC_LEAVE_EPOCH, "a member's epoch only rises")

    def _hear(self, client: ConsumerGroupClient, result: ConsumerResult) -> None:
        match result.error:
            case ErrorCode.NONE:
                must(result.epoch >= client.epoch, "no answer has an older epoch")
                client.epoch = result.epoch
                if result.assignment is not None:
                    client.assigned = flat(result.assignment)
                    client.owned |= client.assigned
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_MEMBER_EPOCH:
                client.forget()
            case ErrorCode.FENCED_INSTANCE_ID:
                client.forget()
                client.lives = min(client.lives + 1, LIVES_MAX)
            case error:
                client.unsure = client.epoch != JOIN_EPOCH
                expected = (NOT_STORED, ErrorCode.UNRELEASED_INSTANCE_ID)
                must(error in expected, f"no member gets {error.name}")

    def _read_back(self) -> ConsumerGroup:
        group = ConsumerGroup("g", SETTINGS, self.topics)
        group.apply(self.log.values())
        return group

    # -- invariants --------------------------------------------------------------------------------

    def check(self) -> None:
        self._check_owners()
        group = self.group
        must(group.assignment_epoch <= group.epoch, "the assignment is of no later epoch")
        timers = {(kind.name, member_id) for kind, member_id in group.timers._timers}
        for member in group.members.values():
            must(member.epoch <= group.assignment_epoch, "a member is at no later epoch")
            revokes = member.state is MemberState.UNREVOKED
            must(revokes or not member.revoking, "only who has to revoke has something to revoke")
            must(("SESSION", member.member_id) in timers, "a silent member's session will end")
            if revokes and member.epoch > 0:
                must(("REBALANCE", member.member_id) in timers, "a wait for a member has an end")
            self._check_commits(member)
        self._check_log()

    def _check_owners(self) -> None:
        group = self.group
        owners: dict[tuple[bytes, int], int] = {}
        for member in group.members.values():
            for owned in (member.assigned, member.revoking):
                for partition in flat(owned):
                    must(partition not in owners, "a partition has one owner at a time")
                    owners[partition] = member.epoch
        for client in self.clients:
            known = group.members.get(client.member_id)
            if known is None or client.epoch not in (known.epoch, known.previous_epoch):
                continue  # it is going to be fenced
            held = flat(known.assigned) | flat(known.revoking)
            must(client.owned <= held, "no member gets a partition that another still has")
        epochs = {(t, p): e for t, ps in group._partition_epochs.items() for p, e in ps.items()}
        must(epochs == owners, "the map of owners is that of the members")
        targets = [p for target in group.targets.values() for p in flat(target)]
        must(len(targets) == len(set(targets)), "a partition is in one target")

    def _check_commits(self, member: ConsumerMember) -> None:
        group, member_id = self.group, member.member_id
        epoch = max(member.epoch, 0) + 1
        later = group.check_commit(member_id, member.instance_id, epoch, self.now_ms)
        must(later is not NONE, "a commit of an epoch that no answer had is refused")
        others = self.topics.partitions("tu") - flat(member.assigned) - flat(member.revoking)
        for topic_id, partition in others:
            error = group.check_partition(member_id, member.epoch - 1, "", topic_id, partition)
            must(error is not NONE, "an old epoch commits only what it owned")

    def _check_log(self) -> None:
        group, read = self.group, self._read_back()
        must(read.members == group.members, "the log has the members")
        must(read.targets == group.targets, "the log has the targets")
        must(
            (read.epoch, read.assignment_epoch) == (group.epoch, group.assignment_epoch),
            "the log has the epochs",
        )
        must(read._partition_epochs == group._partition_epochs, "the log has the owners")
        must(read.static_members == group.static_members, "the log has the static members")

    def settle(self) -> None:
        for _ in range(ROUNDS_OF_PEACE):
            for index in range(len(self.clients)):
                self.on_beat(index)
                self.on_give_up(index)
            self.on_time_passes()
            if self._in_order():
                break
        self.check()
        must(self._in_order(), "a group in peace becomes Stable, and owns all it reads, once")

    def _in_order(self) -> bool:
        group = self.group
        owned = [partition for client in self.clients for partition in client.owned]
        wanted = self.topics.partitions({name for c in self.clients for name in c.topics})
        return (
            group.state is ConsumerGroupState.STABLE
            and all(client.epoch == group.epoch for client in self.clients)
            and sorted(c.member_id for c in self.clients) == sorted(group.members)
            and sorted(owned) == sorted(wanted)
        )

    # -- copies ------------------------------------------------------------------------------------

    @classmethod
    def copies(cls, frozen: Any) -> Callable[[], ExploredWorld]:
        thawed = super().copies(frozen)()
        assert isinstance(thawed, ConsumerGroupWorld)
        return thawed._copy

    def _copy(self) -> ConsumerGroupWorld:
        """A copy. The values of the group are immutable, so only their containers are copied."""
        world = copy(self)
        world.topics = copy(self.topics)
        world.topics.infos = dict(self.topics.infos)
        world.group = _copied(self.group, world.topics)
        world.clients = (copy(self.clients[0]), copy(self.clients[1]), copy(self.clients[2]))
        world.log = dict(self.log)
        return world

    def key(self) -> object:
        return state_key(self)


def _copied(group: ConsumerGroup, topics: Topics) -> ConsumerGroup:
    """A group of its own in the same state."""
    made = ConsumerGroup(group.group_id, group.settings, topics)
    for name in (*ModernGroup.__slots__, *ConsumerGroup.__slots__):
        value = getattr(group, name)
        if name not in ("topics", "timers"):
            setattr(made, name, copy(value) if isinstance(value, dict) else value)
    made._partition_epochs = {
        topic_id: dict(ps) for topic_id, ps in group._partition_epochs.items()
    }
    made.effects = []
    for (kind_of, member_id), timer in group.timers._timers.items():
        order = SetTimer(kind_of, member_id, timer.deadline_ms, timer.member_epoch)
        made.timers.set(order)
    return made
