"""The key of a consumer group's world. Epochs and times are relative."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mockbroker.core.groups.consumer.members import ConsumerMember
from tests.simulation.exhaustive.consumer_parties import SUBSCRIPTIONS, flat

if TYPE_CHECKING:
    from tests.simulation.exhaustive.consumer_group import ConsumerGroupWorld


def state_key(world: ConsumerGroupWorld) -> object:
    group = world.group
    waits_ms = (
        group.assignment_timestamp_ms + world.group.settings.assignment_interval_ms - world.now_ms
    )
    return (
        "u" in world.topics.infos,
        _old(world, group.assignment_epoch),
        None if group.assignment_timestamp_ms == 0 else max(waits_ms, 0),
        group.compared_metadata_version == world.topics.version,
        group.metadata_hash,
        tuple(_member(world, group.members[m]) for m in sorted(group.members)),
        tuple((m, tuple(sorted(flat(group.targets[m])))) for m in sorted(group.targets)),
        tuple(
            (
                client.lives,
                SUBSCRIPTIONS.index(client.topics),
                _old(world, client.epoch),
                client.unsure,
                tuple(sorted(client.assigned)),
                tuple(sorted(client.owned)),
            )
            for client in world.clients
        ),
        tuple(
            sorted(
                (
                    kind.name,
                    member_id,
                    (timer.deadline_ms or 0) - world.now_ms,
                    None if timer.member_epoch is None else _old(world, timer.member_epoch),
                )
                for (kind, member_id), timer in group.timers._timers.items()
            )
        ),
    )


def _old(world: ConsumerGroupWorld, epoch: int) -> object:
    """How old an epoch is; those that are none are themselves."""
    return epoch if epoch <= 0 else (world.group.epoch - epoch,)


def _member(world: ConsumerGroupWorld, member: ConsumerMember) -> object:
    return (
        member.member_id,
        _old(world, member.epoch),
        _old(world, member.previous_epoch),
        int(member.state),
        tuple(sorted(member.topic_names)),
        tuple((t, p, _old(world, e)) for t, p, e in _epochs(member.assigned)),
        tuple((t, p, _old(world, e)) for t, p, e in _epochs(member.revoking)),
    )


def _epochs(owned: Mapping[bytes, Mapping[int, int]]) -> list[tuple[bytes, int, int]]:
    return sorted((t, p, epoch) for t, ps in owned.items() for p, epoch in ps.items())
