"""A classic group with two dynamic members and a static one, its log, and time.

Time passes in units: a session is two units, a rebalance timeout four, the join timeout of a new
member three. An answer may be lost. A record may be in flight to the log for any time, or not be
stored. The group may be reloaded from its log at any time, with any number of the records in
flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from mockbroker.core.groups.classic import ClassicGroup, ClassicGroupSettings
from mockbroker.core.groups.events import (
    EndSession,
    GroupImage,
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    Leaver,
    LeaveResult,
    Loaded,
    Moved,
    Persist,
    Persisted,
    Reply,
    Sync,
    SyncResult,
    Tick,
    Unload,
)
from mockbroker.core.groups.machine import handle
from mockbroker.core.groups.records import GroupMetadataRecord, group_metadata, parse
from mockbroker.core.groups.states import TRANSITIONS, ClassicGroupState
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import Record
from tests.simulation.exhaustive.classic_clients import (
    NO_GENERATION,
    ClassicGroupClient,
    WaitingRequest,
)
from tests.simulation.exhaustive.classic_group_key import state_key
from tests.simulation.exhaustive.world import Event, ExploredWorld, must

UNIT_MS = 100_000  # a third of what a new member may wait, which is not configurable
SESSION_MS = 2 * UNIT_MS
REBALANCE_MS = 4 * UNIT_MS
TICKS_MAX = 50
ROUNDS_OF_PEACE = 40

NONE = ErrorCode.NONE
FORGOTTEN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


class ClassicGroupWorld(ExploredWorld):
    """The group, its clients, and what is on its way to the log."""

    name: ClassVar[str] = "classic-group"
    beginnings: ClassVar[tuple[str, ...]] = (
        "an empty group",
        "an empty group that waits for more members",
        "three members in a stable group",
        "a static member that is back before that is stored",
    )

    def __init__(self, delay_ms: int) -> None:
        self.now_ms = 0
        self.settings = ClassicGroupSettings(initial_rebalance_delay_ms=delay_ms)
        self.group = ClassicGroup("g", self.settings, 0)
        self.clients = (
            ClassicGroupClient(None, knows_id=True),
            ClassicGroupClient(None, knows_id=False),
            ClassicGroupClient("s", knows_id=True),
        )
        self.waiting: dict[WaitingRequest, None] = {}  # requests without an answer
        self.on_the_way: list[Persist] = []
        self.log: GroupImage | None = None
        self.log_behind = False
        self.leader = (NO_GENERATION, -1)  # the client that was given the member list

    @classmethod
    def begin(cls, beginning: str) -> ClassicGroupWorld:
        _, waits, stable, static = cls.beginnings
        world = cls(UNIT_MS if beginning == waits else 0)
        if beginning in (stable, static):
            world.settle()
            for index in range(len(world.clients)):
                world.on_heartbeat(index)
        if beginning == static:
            world.on_crash(2)
            world.on_join(2)
            world.on_time_passes()
            world.on_heartbeat(0)
            world.on_heartbeat(1)
        return world

    # -- events ------------------------------------------------------------------------------------

    def events(self) -> Sequence[Event]:
        found: list[Event] = [("time_passes",)]
        for index, client in enumerate(self.clients):
            member = client.generation != NO_GENERATION
            if client.callback is None:
                found += [("join", index), ("join", index, "lost")]
                if member:
                    found += [("sync", index), ("sync", index, "lost"), ("join_changed", index)]
            if member:
                found += [("heartbeat", index), ("commit", index)]
            if client.member_id:
                found += [("leave", index), ("crash", index)]
            elif client.callback is not None:
                found.append(("crash", index))
        found += [("end_session", member_id) for member_id in self.group.members]
        if self.on_the_way:
            found += [("stored",), ("not_stored",)]
        found += [("reload", count) for count in range(len(self.on_the_way) + 1)]
        return found

    def on_join(self, index: int, lost: str = "") -> None:
        client = self.clients[index]
        callback = self._ask(client, index, lost)
        if not client.member_id:
            client.lives += 1
        self._tell(
            Join(
                callback=callback,
                member_id=client.member_id,
                new_member_id=f"{index}-{client.lives}",
                instance_id=client.instance_id,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                protocol_type="consumer",
                protocols=(("range", b"%d" % client.offer),),
                member_id_required=client.knows_id,
                skip_assignment=client.knows_id,
            )
        )

    def on_join_changed(self, index: int) -> None:
        self.clients[index].offer ^= 1
        self.on_join(index)

    def on_sync(self, index: int, lost: str = "") -> None:
        client = self.clients[index]
        callback = self._ask(client, index, lost)
        share = {each: f"{client.generation}:{each}".encode() for each in client.listing}
        self._tell(
            Sync(
                callback=callback,
                member_id=client.member_id,
                generation=client.generation,
                instance_id=client.instance_id,
                assignments=share,
            )
        )

    def on_heartbeat(self, index: int) -> None:
        client = self.clients[index]
        callback = WaitingRequest(index, client.member_id, client.generation)
        self.waiting[callback] = None
        self._tell(
            Heartbeat(
                callback=callback,
                member_id=client.member_id,
                generation=client.generation,
                instance_id=client.instance_id,
            )
        )

    def on_commit(self, index: int) -> None:
        client, group = self.clients[index], self.group
        error = group.check_commit(
            client.member_id, client.instance_id, client.generation, self.now_ms
        )
        if error is NONE:
            must(client.generation == group.generation, "a commit is of the present generation")
            must(client.member_id in group.members, "a commit comes from a member")
            must(
                group.state is not ClassicGroupState.COMPLETING,
                "no commit while assignments are awaited",
            )
        self._learn(client, error)

    def on_leave(self, index: int) -> None:
        client = self.clients[index]
        callback = WaitingRequest(index, client.member_id, client.generation)
        self.waiting[callback] = None
        leaver = Leaver(client.member_id, client.instance_id)
        self._tell(Leave(callback, (leaver,)))
        client.callback = None
        client.forget()

    def on_crash(self, index: int) -> None:
        client = self.clients[index]
        client.callback = None
        client.forget()

    def on_end_session(self, member_id: str) -> None:
        self._tell(EndSession(member_id))

    def on_time_passes(self) -> None:
        end_ms = self.now_ms + UNIT_MS
        for _ in range(TICKS_MAX):
            due_ms = self.group.deadline_ms()
            if due_ms is None or due_ms > end_ms:
                self.now_ms = end_ms
                return
            must(due_ms >= self.now_ms, "a deadline lies ahead")
            self.now_ms = due_ms
            self._tell(Tick())
        must(condition=False, sentence="the group has nothing left to do at some time")

    def on_stored(self) -> None:
        persist = self.on_the_way.pop(0)
        self.log = persist.image
        self.log_behind = False
        self._tell(Persisted(persist, NONE))

    def on_not_stored(self) -> None:
        """A record is lost. As in Kafka, later records still depend on it."""
        persist = self.on_the_way.pop(0)
        self.log_behind |= bool(self.on_the_way)
        self._tell(Persisted(persist, ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def on_reload(self, count: int) -> None:
        """The coordinator moves; the first `count` records in flight are in the log."""
        if count:
            self.log = self.on_the_way[count - 1].image
        self.on_the_way.clear()
        self.log_behind = False
        self._tell(Unload())
        must(not self.waiting, "waiting members are sent to the new coordinator")
        must(self.group.deadline_ms() is None, "a group that is gone waits for nothing")
        self.leader = (NO_GENERATION, -1)
        if self.log is None:
            self.group = ClassicGroup("g", self.settings, self.now_ms)
            return
        key, value = group_metadata("g", self.log)
        read = parse(Record(key=key, value=value))
        assert isinstance(read, GroupMetadataRecord)
        assert read.image is not None
        self.group = ClassicGroup.restore("g", self.settings, read.image, self.now_ms)
        self._tell(Loaded())

    # -- the machine and its answers ---------------------------------------------------------------

    def _ask(self, client: ClassicGroupClient, index: int, lost: str) -> WaitingRequest:
        callback = WaitingRequest(index, client.member_id, client.generation)
        self.waiting[callback] = None
        client.callback = None if lost else callback
        return callback

    def _tell(self, event: Any) -> None:
        generation = self.group.generation
        for effect in handle(self.group, event, self.now_ms):
            if isinstance(effect, Reply):
                self._answered(effect)
            elif isinstance(effect, Persist):
                self.on_the_way.append(effect)
            else:
                assert isinstance(effect, Moved)
                steps = TRANSITIONS[effect.previous].values()
                must(effect.state in steps, "each move is in the table")
        rise = self.group.generation - generation
        must(rise >= 0, "the generation only rises")

    def _answered(self, reply: Reply) -> None:
        callback, result = reply.callback, reply.result
        assert isinstance(callback, WaitingRequest)
        must(callback in self.waiting, "each request is answered once")
        del self.waiting[callback]
        client = self.clients[callback.client]
        if isinstance(result, JoinResult) and result.members and not result.skip_assignment:
            leader = (result.generation, callback.client)
            before, self.leader = self.leader, leader
            must(before[0] != leader[0] or before == leader, "a generation has one leader")
        if isinstance(result, SyncResult) and result.error is NONE and callback.generation > 0:
            self._check_assignment(callback, result)
        if isinstance(result, HeartbeatResult) and result.error is NONE:
            must(callback.generation == self.group.generation, "no heartbeat of an old generation")
        if callback is client.callback:
            client.callback = None
            self._hear(client, result)
        elif isinstance(result, HeartbeatResult) and callback.member_id == client.member_id:
            self._learn(client, result.error)

    def _check_assignment(self, callback: WaitingRequest, result: SyncResult) -> None:
        generation, _, member_id = result.assignment.decode().partition(":")
        must(generation == str(callback.generation), "an assignment is of the requested generation")
        must(member_id.startswith(f"{callback.client}-"), "a member is given its own assignment")

    def _hear(self, client: ClassicGroupClient, result: object) -> None:
        if isinstance(result, JoinResult):
            if result.error is ErrorCode.MEMBER_ID_REQUIRED:
                client.member_id = result.member_id
            elif result.error is not NONE:
                self._learn(client, result.error)
            else:
                client.member_id = result.member_id
                client.generation = result.generation
                client.step = "sync"
                leads = result.leader == result.member_id and not result.skip_assignment
                client.listing = tuple(each.member_id for each in result.members) if leads else ()
        elif isinstance(result, SyncResult):
            if result.error is NONE:
                client.step = "heartbeat"
            else:
                self._learn(client, result.error)
        else:
            assert isinstance(result, LeaveResult)

    @staticmethod
    def _learn(client: ClassicGroupClient, error: ErrorCode) -> None:
        if error in FORGOTTEN:
            client.callback = None
            client.forget()
        elif error is not NONE:
            client.step = "join"

    # -- invariants --------------------------------------------------------------------------------

    def check(self) -> None:
        group, now_ms = self.group, self.now_ms
        members = group.members.values()
        joins = {member.join_callback for member in members if member.join_callback is not None}
        syncs = {member.sync_callback for member in members if member.sync_callback is not None}
        must(joins | syncs == set(self.waiting), "the group has each member that waits")
        must(group.members_awaiting_join == len(joins), "those who wait to join are counted")
        must((group.leader in group.members) == bool(members), "a group with members has a leader")
        must(
            group.state is not ClassicGroupState.EMPTY or not members,
            "an Empty group has no members",
        )
        must(not joins or self._join_will_end(), "a wait for the join phase has an end")
        must(not syncs or self._sync_will_end(), "a wait for an assignment has an end")
        due_ms = group.deadline_ms()
        for each in (*members, *group.pending_join_members.values()):
            waits = each.member_id in group.members and (
                group.members[each.member_id].join_callback
                or group.members[each.member_id].sync_callback
            )
            must(waits or each.deadline_ms is not None, "a silent member's session will end")
            must(
                each.deadline_ms is None or (due_ms is not None and due_ms <= each.deadline_ms),
                "a tick is due before a session ends",
            )
        for member in members:
            for generation in (group.generation - 1, group.generation + 1):
                if generation >= 0:
                    error = group.check_commit(
                        member.member_id, member.instance_id, generation, now_ms
                    )
                    must(error is not NONE, "a commit of another generation is refused")
        if group.state is ClassicGroupState.STABLE:
            self._check_stable()

    def _join_will_end(self) -> bool:
        group = self.group
        if group.state is ClassicGroupState.PREPARING:
            return group.join_deadline_ms is not None
        return any(persist.replaced is not None for persist in self.on_the_way)

    def _sync_will_end(self) -> bool:
        group = self.group
        awaited = any(persist.assignments is not None for persist in self.on_the_way)
        return group.state is ClassicGroupState.COMPLETING and (
            group.sync_deadline_ms is not None or awaited
        )

    def _check_stable(self) -> None:
        group = self.group
        members = group.members.values()
        must(members, "a Stable group has members")
        for member in members:
            generation = member.assignment.partition(b":")[0]
            must(
                generation == b"%d" % group.generation,
                "the members of a Stable group have assignments of its generation",
            )
        if not self.on_the_way and not self.log_behind:
            log = self.log
            assert log is not None
            stored = {line.member_id: line.assignment for line in log.members}
            present = {member.member_id: member.assignment for member in members}
            must(
                (log.generation, log.leader, stored) == (group.generation, group.leader, present),
                "a Stable group is in the log as it is",
            )

    def settle(self) -> None:
        for _ in range(ROUNDS_OF_PEACE):
            for index, client in enumerate(self.clients):
                if client.callback is None:
                    getattr(self, f"on_{client.step}")(index)
            while self.on_the_way:
                self.on_stored()
            self.on_time_passes()
            if self._in_order():
                break
        self.check()
        must(self._in_order(), "a group in peace becomes Stable, with the members that answer")

    def _in_order(self) -> bool:
        group = self.group
        return (
            group.state is ClassicGroupState.STABLE
            and not self.waiting
            and all(client.step == "heartbeat" for client in self.clients)
            and sorted(c.member_id for c in self.clients) == sorted(group.members)
        )

    def key(self) -> object:
        return state_key(self)
