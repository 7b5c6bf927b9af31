"""The key of a classic group's world.

Generations and times are relative. Member ids are the client's number and the rank of its process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockbroker.core.groups.events import GroupImage
from mockbroker.core.groups.states import ClassicGroupState
from tests.simulation.exhaustive.classic_clients import WaitingRequest

if TYPE_CHECKING:
    from tests.simulation.exhaustive.classic_group import ClassicGroupWorld


def state_key(world: ClassicGroupWorld) -> object:
    group = world.group
    names = _names(world)
    newest = group.generation
    members = tuple(
        (
            names[m.member_id],
            _left(world, m.deadline_ms),
            _request(world, m.join_callback),
            _request(world, m.sync_callback),
            m.is_new,
            m.protocols,
            _share(world, m.assignment),
        )
        for m in group.members.values()
    )
    clients = tuple(
        (
            names.get(c.member_id),
            c.generation - newest if c.generation >= 0 else None,
            c.step,
            c.offer,
            c.callback is not None,
            tuple(names.get(each) for each in c.listing),
        )
        for c in world.clients
    )
    return (
        group.state.value,
        group.previous_state is ClassicGroupState.EMPTY,
        world.settings.initial_rebalance_delay_ms,
        world.log_behind,
        newest == 0,
        _left(world, group.join_deadline_ms),
        _left(world, group.sync_deadline_ms),
        group.initial_remaining_ms,
        group.new_member_added,
        group.protocol_name,
        names.get(group.leader or ""),
        tuple(names[each] for each in group.pending_sync_members),
        tuple(
            (names[p], _left(world, timer.deadline_ms))
            for p, timer in group.pending_join_members.items()
        ),
        members,
        clients,
        (world.leader[0] - newest, world.leader[1]),
        _image(world, world.log, names),
        tuple(
            (
                _image(world, persist.image, names),
                persist.assignments is not None,
                None
                if persist.replaced is None
                else (
                    names[persist.replaced.old_member_id],
                    names[persist.replaced.new_member_id],
                    persist.replaced.old_protocols,
                    persist.replaced.callback in world.waiting,
                ),
            )
            for persist in world.on_the_way
        ),
    )


def _left(world: ClassicGroupWorld, deadline_ms: int | None) -> int | None:
    return None if deadline_ms is None else deadline_ms - world.now_ms


def _request(world: ClassicGroupWorld, callback: object | None) -> tuple[int, bool, int] | None:
    if callback is None:
        return None
    assert isinstance(callback, WaitingRequest)
    heard = world.clients[callback.client].callback is callback
    return callback.client, heard, callback.generation - world.group.generation


def _share(world: ClassicGroupWorld, assignment: bytes) -> object:
    generation, _, member_id = assignment.decode().partition(":")
    return generation and int(generation) - world.group.generation, member_id[:1]


def _image(
    world: ClassicGroupWorld, image: GroupImage | None, names: dict[str, tuple[int, int]]
) -> object:
    if image is None:
        return None
    return (
        image.generation - world.group.generation,
        image.protocol,
        names.get(image.leader or ""),
        tuple(
            (names[line.member_id], line.subscription, _share(world, line.assignment))
            for line in image.members
        ),
    )


def _names(world: ClassicGroupWorld) -> dict[str, tuple[int, int]]:
    """The member ids that somebody still knows: the client, and the number of its life."""
    found: set[str] = set()
    found.update(_mentioned(world))
    found.discard("")
    names: dict[str, tuple[int, int]] = {}
    counts = [0] * len(world.clients)
    for member_id in sorted(found, key=_by_life):
        index = int(member_id[0])
        names[member_id] = (index, counts[index])
        counts[index] += 1
    return names


def _mentioned(world: ClassicGroupWorld) -> Iterable[str]:
    group = world.group
    yield from group.members
    yield from group.pending_join_members
    yield group.leader or ""
    images = [persist.image for persist in world.on_the_way]
    for image in [world.log, *images]:
        if image is not None:
            yield image.leader or ""
            yield from (line.member_id for line in image.members)
    for persist in world.on_the_way:
        if persist.replaced is not None:
            yield persist.replaced.old_member_id
            yield persist.replaced.new_member_id
    for client in world.clients:
        yield client.member_id
        yield from client.listing


def _by_life(member_id: str) -> tuple[int, int]:
    index, _, life = member_id.partition("-")
    return int(index), int(life)
