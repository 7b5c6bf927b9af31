"""The upgrade of a classic group to a consumer group, and the downgrade (KIP-848).

Members keep their partitions, and the epoch continues from the generation. For a classic member the
migration is a rebalance.

Source: ConsumerGroup.fromClassicGroup, ClassicGroup.fromConsumerGroup.
"""

from __future__ import annotations

from collections import Counter

from mockbroker.core.errors import ApiError
from mockbroker.core.groups.classic import ClassicGroup, ClassicGroupSettings
from mockbroker.core.groups.consumer.events import Downgrade
from mockbroker.core.groups.consumer.group import ConsumerGroup, ConsumerSettings
from mockbroker.core.groups.consumer.members import (
    ClassicMember,
    ConsumerMember,
    Target,
    with_epoch,
)
from mockbroker.core.groups.consumer.protocol import (
    assignment_blob,
    read_assignment,
    read_subscription,
)
from mockbroker.core.groups.events import GroupImage, MemberImage
from mockbroker.core.groups.group import CONSUMER_PROTOCOL_TYPE
from mockbroker.core.groups.members import Member
from mockbroker.core.groups.modern.events import (
    GroupChange,
    MemberChange,
    StoredChange,
    TargetAssignmentChange,
    TargetEpochChange,
    current_assignment_change,
)
from mockbroker.core.groups.modern.topics import TopicSource, metadata_hash
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.exceptions import DecodeError


def upgraded(
    classic: ClassicGroup, settings: ConsumerSettings, topics: TopicSource, now_ms: int
) -> tuple[ConsumerGroup, tuple[StoredChange, ...]]:
    """The upgraded group, and the changes that create it.

    Raises ApiError if the policy or the size forbid the upgrade, if the group has another protocol
    type or a malformed subscription, or if an assignment has user data, which would be lost.
    """
    members = classic.members
    if not settings.migration.upgrade:
        raise _not_upgraded(classic, "online upgrade is disabled.")
    if not classic.is_consumer():
        raise _not_upgraded(classic, "the group does not use the consumer embedded protocol.")
    if len(members) > settings.size_max:
        raise _not_upgraded(classic, "the group size exceeds the consumer group maximum size.")
    epoch = classic.generation
    upgraded_members: list[tuple[ConsumerMember, Target]] = []
    try:
        for member in members.values():
            target, has_user_data = read_assignment(topics, member.assignment)
            if has_user_data:
                raise _not_upgraded(
                    classic,
                    "an unsupported custom assignor is in use. Please refer to the documentation "
                    "or switch to a default assignor before re-attempting the upgrade.",
                )
            upgraded_members.append((_upgraded_member(classic, member, target, epoch), target))
    except DecodeError:
        raise _not_upgraded(classic, "the embedded consumer protocol is malformed.") from None
    names = {name for member, _ in upgraded_members for name in member.topic_names}
    changes: list[StoredChange] = []
    changes += (MemberChange(member.member_id, member) for member, _ in upgraded_members)
    changes.append(GroupChange(epoch, metadata_hash(topics, names)))
    changes += (
        TargetAssignmentChange(member.member_id, target) for member, target in upgraded_members
    )
    changes.append(TargetEpochChange(epoch))
    changes += (current_assignment_change(member) for member, _ in upgraded_members)
    group = ConsumerGroup(classic.group_id, settings, topics)
    group.start_upgraded(changes, now_ms)
    return group, tuple(changes)


def _not_upgraded(classic: ClassicGroup, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}",
    )


def _upgraded_member(
    classic: ClassicGroup, member: Member, target: Target, epoch: int
) -> ConsumerMember:
    protocol = classic.protocol_name
    blob = member.protocols[0][1] if protocol is None else member.metadata(protocol)
    subscription = read_subscription(blob)
    return ConsumerMember(
        member_id=member.member_id,
        epoch=epoch,
        previous_epoch=epoch,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=subscription.topics,
        assigned=with_epoch(target, epoch),
        classic=ClassicMember(member.session_timeout_ms, member.protocols),
    )


def downgraded(
    group: ConsumerGroup, downgrade: Downgrade, settings: ClassicGroupSettings, now_ms: int
) -> ClassicGroup:
    """The downgraded group. It is Stable, and its timers do not run."""
    members: list[tuple[ConsumerMember, Target]] = []
    joining = downgrade.joining
    for member in group.members.values():
        replaced = joining is not None and member.instance_id == joining.instance_id
        if member.member_id not in downgrade.leaving and not replaced:
            members.append((member, group.targets.get(member.member_id, {})))
    if joining is not None:
        members.append((joining, group.target_of(joining)))
    protocols = {member.member_id: _classic(member).protocols for member, _ in members}
    protocol = _select_protocol(protocols)
    image = GroupImage(
        CONSUMER_PROTOCOL_TYPE,
        group.epoch,
        protocol,
        members[0][0].member_id,
        now_ms,
        tuple(_image(group, member, target, protocol) for member, target in members),
    )
    classic = ClassicGroup.restore(group.group_id, settings, image, now_ms)
    for restored in classic.members.values():
        # The image has only the metadata of the selected protocol.
        classic.update_member(
            restored,
            protocols[restored.member_id],
            restored.rebalance_timeout_ms,
            restored.session_timeout_ms,
        )
    return classic


def _classic(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return member.classic


def _select_protocol(protocols: dict[str, tuple[tuple[str, bytes], ...]]) -> str:
    """The protocol with the most votes, as in `ClassicGroup.select_protocol`."""
    names = [[name for name, _ in supported] for supported in protocols.values()]
    common = set(names[0]).intersection(*names[1:])
    votes = Counter(next(name for name in supported if name in common) for supported in names)
    return max(votes, key=votes.__getitem__)


def _image(
    group: ConsumerGroup, member: ConsumerMember, target: Target, protocol: str
) -> MemberImage:
    classic = _classic(member)
    subscription = next(blob for name, blob in classic.protocols if name == protocol)
    return MemberImage(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        classic.session_timeout_ms,
        subscription,
        assignment_blob(group.topics, target, subscription),
    )
