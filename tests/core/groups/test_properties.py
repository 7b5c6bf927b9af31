"""Whatever clients do: each request is answered once, generations grow, no partition has two
owners.

Clients here are small models of consumers: they join, assign if they lead, sync, heartbeat, and
react to errors as real ones do; or they fall silent, come back, leave, and ask twice. What they do,
and when, is drawn by Hypothesis.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mockbroker.core.groups.classic import ClassicGroup, ClassicGroupSettings
from mockbroker.core.groups.events import (
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    Leaver,
    LeaveResult,
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
from mockbroker.core.groups.states import TRANSITIONS, ClassicGroupState
from mockbroker_protocol import ErrorCode

PARTITIONS = 7
SESSION_MS, REBALANCE_MS = 10_000, 30_000


class World:
    """A group, its clients, and what must hold of both."""

    def __init__(self, clients: int, delay_ms: int) -> None:
        self.now_ms = 0
        self.group = ClassicGroup("g", ClassicGroupSettings(initial_rebalance_delay_ms=delay_ms), 0)
        self.clients = [Client(self, i) for i in range(clients)]
        self.asked = 0
        self.waiting: dict[int, Client] = {}
        self.generation = 0
        self.moves: set[tuple[ClassicGroupState, ClassicGroupState]] = set()
        self.owned: dict[int, dict[int, str]] = {}  # generation -> partition -> member

    def send(self, client: Client, event_type: type, **fields: Any) -> None:
        self.asked += 1
        self.waiting[self.asked] = client
        self.perform(event_type(callback=self.asked, **fields))

    def perform(self, event: Any) -> None:
        for effect in handle(self.group, event, self.now_ms):
            if isinstance(effect, Reply):
                assert isinstance(effect.callback, int)
                client = self.waiting.pop(effect.callback)  # KeyError: answered twice
                client.answered(effect.callback, effect.result)
            elif isinstance(effect, Persist):
                self.perform(Persisted(effect, ErrorCode.NONE))
            elif isinstance(effect, Moved):
                assert effect.generation >= self.generation
                assert effect.generation <= self.generation + 1
                self.generation = effect.generation
                self.moves.add((effect.previous, effect.state))
        self.check()

    def check(self) -> None:
        group = self.group
        members = group.members.values()
        assert group.members_awaiting_join == sum(m.join_callback is not None for m in members)
        assert (group.state in (ClassicGroupState.EMPTY, ClassicGroupState.DEAD)) <= (
            not group.members_awaiting_join
        )
        assert (
            all(m.sync_callback is None for m in members)
            or group.state is ClassicGroupState.COMPLETING
        )
        assert (group.leader in group.members) == bool(group.members)
        assert set(group.pending_sync_members) <= set(group.members)
        assert not set(group.pending_join_members) & set(group.members)

    def owns(self, member_id: str, generation: int, partitions: bytes) -> None:
        owned = self.owned.setdefault(generation, {})
        for partition in partitions:
            assert owned.setdefault(partition, member_id) == member_id

    def advance(self, delay_ms: int) -> None:
        end_ms = self.now_ms + delay_ms
        while (due_ms := self.group.deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(due_ms, self.now_ms)
            self.perform(Tick())
        self.now_ms = end_ms


class Client:
    def __init__(self, world: World, index: int) -> None:
        self.world = world
        self.index = index
        self.instance_id = f"static-{index}" if index % 3 == 2 else None
        self.lives = 0
        self.reset()

    def reset(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.step = "join"
        self.listing: tuple[str, ...] = ()
        self.leads = False
        self.callback = 0

    def act(self) -> None:
        if self.step == "wait":
            return
        getattr(self, self.step)()

    def join(self) -> None:
        self.lives += 1
        self.step = "wait"
        self.callback = self.world.asked + 1
        self.world.send(
            self,
            Join,
            member_id=self.member_id,
            new_member_id=f"c{self.index}-{self.lives}",
            instance_id=self.instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(("range", b""),),
        )

    def sync(self) -> None:
        assignments = {}
        if self.leads:
            for number, member in enumerate(self.listing):
                mine = range(number, PARTITIONS, len(self.listing))
                assignments[member] = bytes(mine)
        self.step = "wait"
        self.callback = self.world.asked + 1
        self.world.send(
            self,
            Sync,
            member_id=self.member_id,
            instance_id=self.instance_id,
            generation=self.generation,
            assignments=assignments,
        )

    def beat(self) -> None:
        self.callback = self.world.asked + 1
        self.world.send(
            self,
            Heartbeat,
            member_id=self.member_id,
            instance_id=self.instance_id,
            generation=self.generation,
        )

    def leave(self) -> None:
        if self.member_id:
            leaver = Leaver(self.member_id, self.instance_id)
            self.callback = 0
            self.world.send(self, Leave, members=(leaver,))
        self.reset()

    def crash(self) -> None:
        """The process is gone, and another takes its place some time."""
        self.reset()

    def again(self) -> None:
        """Ask once more for what is waited for, as after a timeout of the request."""
        if self.step == "wait" and self.generation >= 0:
            self.sync()

    def answered(self, callback: int, result: Any) -> None:
        if callback != self.callback:
            return  # a former self, or a request given up
        if isinstance(result, JoinResult):
            self.joined(result)
        elif isinstance(result, SyncResult):
            self.synced(result)
        elif isinstance(result, HeartbeatResult) and result.error:
            self.failed(result.error)
        assert not isinstance(result, LeaveResult)

    def joined(self, result: JoinResult) -> None:
        if result.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = result.member_id
            self.step = "join"
        elif result.error:
            self.failed(result.error)
        else:
            self.member_id = result.member_id
            self.generation = result.generation
            self.leads = result.leader == self.member_id and not result.skip_assignment
            self.listing = tuple(m.member_id for m in result.members)
            assert bool(self.listing) == (result.leader == self.member_id)
            self.step = "sync"

    def synced(self, result: SyncResult) -> None:
        if result.error:
            self.failed(result.error)
        else:
            if self.instance_id is None:  # a static one may hand its part to its next self
                self.world.owns(self.member_id, self.generation, result.assignment)
            self.step = "beat"

    def failed(self, error: ErrorCode) -> None:
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.reset()
        self.generation = -1
        self.step = "join"


STEPS = 250
ACTIONS = ["act"] * 24 + ["leave", "crash", "again", "again", "time", "time", "time"]


def disorder(seed: int, delay_ms: int) -> World:
    """A group after clients have done whatever the seed says."""
    draw = Random(seed)
    world = World(6, delay_ms)
    for _ in range(STEPS):
        action = draw.choice(ACTIONS)
        if action == "time":
            world.advance(draw.randrange(1, SESSION_MS // 2))
        else:
            getattr(draw.choice(world.clients), action)()
    return world


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([0, 3_000]))
def test_each_request_is_answered_once_and_no_partition_has_two_owners(
    seed: int, delay_ms: int
) -> None:
    world = disorder(seed, delay_ms)
    world.perform(Unload())
    assert not world.waiting
    assert world.group.deadline_ms() is None


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([0, 3_000]))
def test_a_group_left_in_peace_becomes_stable(seed: int, delay_ms: int) -> None:
    """After any disorder: clients that do their duty end Stable, and every partition is owned."""
    world = disorder(seed, delay_ms)
    for _ in range(200):
        for client in world.clients:
            client.act()
        world.advance(1_000)
    assert world.group.state is ClassicGroupState.STABLE
    assert all(client.step == "beat" for client in world.clients)
    assignments = [m.assignment for m in world.group.members.values()]
    assert sorted(b"".join(assignments)) == list(range(PARTITIONS))
    assert not world.waiting


def test_the_disorder_reaches_every_kind_of_transition() -> None:
    """What the properties are worth: the drawn runs go through all of the table but the end."""
    seen = set()
    for seed in range(30):
        seen |= disorder(seed, 3_000 * (seed % 2)).moves
    moves = {
        (s, t)
        for s, row in TRANSITIONS.items()
        for t in row.values()
        if t is not ClassicGroupState.DEAD
    }
    assert seen == moves
