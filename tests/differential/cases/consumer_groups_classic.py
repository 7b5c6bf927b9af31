"""Members of both protocols in one group, offsets of members, groups that change their protocol."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.differential.cases import groups as classic
from tests.differential.cases.consumer_groups import (
    Owned,
    assigned,
    beat,
    describe,
    joining,
    new_group,
    topic_of,
)
from tests.differential.cases.offsets import commit
from tests.differential.registry import case
from tests.differential.session import Session


def subscription(topic: str, owned: list[int] | None = None, version: int = 3) -> bytes:
    """What a classic consumer sends with JoinGroup."""
    parts = [] if not owned else [TopicPartition(topic=topic, partitions=owned)]
    return encode_subscription(
        ConsumerProtocolSubscription(topics=[topic], owned_partitions=parts), version
    )


def blob(topic: str, partitions: list[int], user_data: bytes | None = None) -> bytes:
    """An assignment as a classic leader writes it."""
    parts = [TopicPartition(topic=topic, partitions=partitions)]
    return encode_assignment(
        ConsumerProtocolAssignment(assigned_partitions=parts, user_data=user_data), 3
    )


def old_member(session: Session, group: str, topic: str, who: str, **options: Any) -> Any:
    """A classic consumer joins a consumer group, by way of MEMBER_ID_REQUIRED; its JoinGroup."""
    protocols = {"range": subscription(topic)}
    given = session.ask(
        classic.join(group, protocols=protocols, **options), 9, who, label=f"{who} joins"
    )
    if given.error_code != classic.MEMBER_ID_REQUIRED:
        return given
    return session.ask(
        classic.join(group, given.member_id, protocols=protocols, **options), 9, who, label=who
    )


@case()
def consumer_group_takes_classic_members(session: Session) -> None:
    # Six partitions are shared evenly by two and by three. Where one member must get more, the
    # order of Java's hash map picks it, and the broker draws the member id of `old`.
    topic, topic_id = topic_of(session, partitions=6)
    group = new_group(session)
    new = session.ask(joining(group, "new", topic), 1, label="new")
    for label, options in {
        "other type": {"protocol_type": "connect"},
        "no protocols": {"protocols": {}},
        "unreadable": {"protocols": {"range": b"\x00"}},
    }.items():
        session.ask(classic.join(group, "m", **options), 9, label=label)
    old = old_member(session, group, topic, "old")
    member, generation = old.member_id, old.generation_id
    session.ask(classic.beat(group, generation, "nobody"), 4, label="unknown")
    session.ask(classic.beat(group, generation + 1, member), 4, label="other generation")
    session.ask(classic.beat(group, generation, "new"), 4, label="of the new protocol")
    session.ask(classic.sync(group, generation, "nobody"), 5, label="unknown")
    session.ask(classic.sync(group, generation + 1, member), 5, label="other generation")
    session.ask(
        classic.sync(group, generation, member, protocol_name="sticky"), 5, label="other protocol"
    )
    session.ask(
        classic.sync(group, generation, member, protocol_type="connect"), 5, label="other type"
    )
    session.ask(classic.sync(group, generation, member), 5, label="nothing is free yet")
    session.ask(classic.beat(group, generation, member), 4, label="waits")
    describe(session, group)
    told = session.ask(beat(group, "new", new.member_epoch), 1, label="new is told")
    session.ask(beat(group, "new", told.member_epoch, assigned(told)), 1, label="new lets go")
    session.ask(classic.beat(group, generation, member), 4, label="it is free")
    protocols = {"range": subscription(topic)}
    again = session.ask(classic.join(group, member, protocols=protocols), 9, label="joins again")
    session.ask(classic.sync(group, again.generation_id, member), 5, label="gets it")
    session.ask(classic.beat(group, again.generation_id, member), 4, label="stable")
    describe(session, group)
    session.ask(joining(group, "third", topic), 1, label="a third")
    session.ask(classic.beat(group, again.generation_id, member), 4, label="is to join again")
    session.ask(classic.sync(group, again.generation_id, member), 5, label="too late")
    everything = {"range": subscription(topic, [3, 4, 5])}
    behind = session.ask(
        classic.join(group, member, protocols=everything), 9, label="joins, owns too much"
    )
    session.ask(classic.sync(group, behind.generation_id, member), 5, label="may keep")
    session.ask(classic.beat(group, behind.generation_id, member), 4, label="let go and join")
    describe(session, group)
    session.ask(classic.leave(group, (member, None), ("nobody", None)), 5, label="leaves")
    describe(session, group)
    owned: Owned = {topic_id: [0, 1, 2]}
    session.ask(beat(group, "new", told.member_epoch, owned), 1, label="new")


@case()
def consumer_group_old_client_versions(session: Session) -> None:
    """JoinGroup before v4 gives out no member id first; v0 has no rebalance timeout."""
    topic, _ = topic_of(session, partitions=2)
    for version in (0, 3, 5, 9):
        group = new_group(session, f"-{version}")
        session.ask(joining(group, "new", topic), 1)
        protocols = {"range": subscription(topic, version=1), "roundrobin": subscription(topic)}
        answer = session.ask(classic.join(group, protocols=protocols), version, label="joins")
        if answer.error_code == classic.MEMBER_ID_REQUIRED:
            answer = session.ask(
                classic.join(group, answer.member_id, protocols=protocols), version, label="again"
            )
        request = classic.sync(group, answer.generation_id, answer.member_id)
        session.ask(request, min(version, 5), label="sync")
        describe(session, group)
        other = {"roundrobin": subscription(topic)}
        session.ask(classic.join(group, "m", protocols=other), version, label="common protocol")
        other = {"sticky": subscription(topic)}
        session.ask(classic.join(group, "m2", protocols=other), version, label="no common one")


@case()
def consumer_group_classic_static_members(session: Session) -> None:
    topic, _ = topic_of(session, partitions=4)
    group = new_group(session)
    session.ask(joining(group, "new", topic), 1, label="new")
    static: dict[str, Any] = {"group_instance_id": "one"}
    old = old_member(session, group, topic, "old", **static)
    describe(session, group)
    again = old_member(session, group, topic, "restarted", **static)
    describe(session, group)
    session.ask(classic.beat(group, old.generation_id, old.member_id, "one"), 4, label="fenced")
    generation = again.generation_id
    session.ask(classic.beat(group, generation, again.member_id, "one"), 4, label="beats")
    session.ask(classic.beat(group, generation, again.member_id, "two"), 4, label="other id")
    session.ask(
        classic.sync(group, generation, again.member_id, group_instance_id="one"), 5, label="syncs"
    )
    upgrade = joining(group, "upgraded", topic, instance_id="one")
    session.ask(upgrade, 1, label="comes back with the new protocol")
    describe(session, group)
    session.ask(classic.leave(group, ("", "one"), ("", "two")), 5, label="an admin removes it")
    describe(session, group)


@case()
def classic_group_upgrades_and_downgrades(session: Session) -> None:
    topic, _ = topic_of(session, partitions=4)
    group = new_group(session)
    protocols = {"range": subscription(topic)}
    old, generation = classic_group(session, group, topic, [0, 1, 2, 3])
    session.ask(beat(group, "new", 1), 1, label="is no member")
    session.ask(beat(group, "new", -1), 1, label="cannot leave")
    describe(session, group, label="classic")
    new = session.ask(joining(group, "new", topic), 1, label="new joins")
    describe(session, group, label="upgraded")
    classic.describe(session, group, version=6)
    session.ask(classic.beat(group, generation, old), 4, label="old is to join")
    rejoin = {"range": subscription(topic, [0, 1, 2, 3])}
    told = session.ask(classic.join(group, old, protocols=rejoin), 9, label="old joins")
    session.ask(classic.sync(group, told.generation_id, old), 5, label="old syncs")
    describe(session, group)
    rejoin = {"range": subscription(topic, [0, 1])}
    done = session.ask(classic.join(group, old, protocols=rejoin), 9, label="old let go")
    session.ask(classic.sync(group, done.generation_id, old), 5, label="old syncs")
    got = session.ask(beat(group, "new", new.member_epoch, {}), 1, label="new gets")
    session.ask(classic.beat(group, done.generation_id, old), 4, label="stable")
    describe(session, group)
    session.ask(beat(group, "new", -1), 1, label="new leaves")
    describe(session, group, label="downgraded")
    classic.describe(session, group, version=6)
    session.ask(classic.beat(group, done.generation_id, old), 4, label="rebalance")
    final = session.ask(classic.join(group, old, protocols=protocols), 9, label="old leads")
    session.ask(classic.sync(group, final.generation_id, old, {old: blob(topic, [0, 1, 2, 3])}), 5)
    classic.describe(session, group, version=6)
    session.ask(beat(group, "new", got.member_epoch), 1, label="new is gone")


def classic_group(
    session: Session, group: str, topic: str, partitions: list[int], **options: Any
) -> tuple[str, int]:
    """A Stable classic group of one consumer; (member id, generation)."""
    protocols = {"range": subscription(topic)}
    given = session.ask(classic.join(group, protocols=protocols), 5, label="classic joins")
    member = given.member_id
    joined = session.ask(classic.join(group, member, protocols=protocols), 5, label="classic")
    share = {member: blob(topic, partitions, **options)}
    session.ask(classic.sync(group, joined.generation_id, member, share), 5, label="classic syncs")
    return member, joined.generation_id


@case()
def classic_group_that_cannot_upgrade(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    custom = new_group(session, "-custom")
    member, generation = classic_group(session, custom, topic, [0, 1], user_data=b"mine")
    session.ask(joining(custom, "new", topic), 1, label="custom assignor")
    session.ask(classic.beat(custom, generation, member), 4, label="still classic")
    connect = new_group(session, "-connect")
    classic.stable_group(session, connect, protocol_type="connect")
    session.ask(joining(connect, "new", topic), 1, label="other type")
    garbled = new_group(session, "-garbled")
    member, generation = classic.stable_group(session, garbled)
    session.ask(joining(garbled, "new", topic), 1, label="unreadable assignment")
    classic.describe(session, garbled)


@case()
def classic_group_upgrades_while_it_rebalances(session: Session) -> None:
    # One partition: who would get a second one depends on ids that are drawn.
    topic, _ = topic_of(session, partitions=1)
    group = new_group(session)
    first, generation = classic_group(session, group, topic, [0])
    protocols = {"range": subscription(topic)}
    given = session.ask(classic.join(group, protocols=protocols), 5, "second", label="second")
    rejoin = classic.join(group, given.member_id, protocols=protocols)
    joining_second = session.start(rejoin, 5, "second")
    classic.wait_for_rebalance(session, group, generation, first)
    session.ask(joining(group, "new", topic), 1, label="new joins")
    joining_second("told to join again")
    describe(session, group)
    session.ask(classic.beat(group, generation, first), 4, label="first is to join")
    session.ask(rejoin, 5, "second", label="second")
    describe(session, group)


@case()
def empty_groups_change_protocol(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    group = new_group(session)
    member, _ = classic_group(session, group, topic, [0, 1])
    session.ask(commit(group, topic, 7, generation=1, member_id=member), 9)
    session.ask(classic.leave(group, (member, None)), 5)
    session.ask(joining(group, "new", topic), 1, label="empty classic group")
    describe(session, group)
    session.ask(fetch(group, topic), 9, label="offsets stay")
    session.ask(beat(group, "new", -1), 1)
    describe(session, group)
    session.ask(classic.join(group, "someone"), 5, label="unknown member")
    session.ask(classic.beat(group, 1, "someone"), 4, label="unknown member")
    session.ask(classic.sync(group, 1, "someone"), 5, label="unknown member")
    session.ask(classic.leave(group, ("someone", None)), 5, label="unknown member")
    classic_group(session, group, topic, [0, 1])
    classic.describe(session, group, version=6)
    session.ask(fetch(group, topic), 9, label="offsets stay")
    simple = new_group(session, "-simple")
    session.ask(commit(simple, topic, 3), 9, label="simple group")
    session.ask(joining(simple, "new", topic), 1, label="simple group")
    describe(session, simple)
    session.ask(beat(simple, "new", -1), 1)
    session.ask(DeleteGroupsRequest(groups_names=[simple]), 2)
    session.ask(fetch(simple, topic), 9, label="offsets go with the group")


def fetch(group: str, topic: str, member: str | None = None, epoch: int = -1) -> OffsetFetchRequest:
    """OffsetFetch of partition 0 of a topic."""
    line = OffsetFetchRequestGroup(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])],
    )
    return OffsetFetchRequest(groups=[line])


@case()
def consumer_group_offsets(session: Session) -> None:
    topic, topic_id = topic_of(session, partitions=4)
    group = new_group(session)
    first = session.ask(joining(group, "first", topic), 1)
    epoch = first.member_epoch
    session.ask(joining(group, "second", topic), 1)
    told = session.ask(beat(group, "first", epoch), 1)
    done = session.ask(beat(group, "first", epoch, assigned(told)), 1)
    newer = done.member_epoch
    for label, fields in {
        "current epoch": {"member_id": "first", "generation": newer},
        "epoch of the assignment": {"member_id": "first", "generation": epoch},
        "older than the assignment": {"member_id": "first", "generation": epoch - 1},
        "from the future": {"member_id": "first", "generation": newer + 1},
        "unknown member": {"member_id": "nobody", "generation": newer},
        "nobody": {"member_id": "", "generation": -1},
        "member without epoch": {"member_id": "first", "generation": -1},
    }.items():
        session.ask(commit(group, topic, **fields), 9, label=label)
        by_id = commit(group, "", topic_id=topic_id, **fields)
        session.ask(by_id, 10, label=label)
    session.ask(
        commit(group, topic, partition=3, member_id="first", generation=epoch),
        9,
        label="older, not its own",
    )
    session.ask(
        commit(group, topic, partition=3, member_id="first", generation=newer),
        9,
        label="current, not its own",
    )
    session.ask(commit(group, topic, member_id="first", generation=newer), 8, label="client of v8")
    for label, who in {
        "current": ("first", newer),
        "stale": ("first", epoch),
        "unknown": ("nobody", newer),
        "nobody": (None, -1),
        "nobody with an epoch": (None, newer),
        "member without an epoch": ("first", -1),
    }.items():
        session.ask(fetch(group, topic, *who), 9, label=label)
    wanted = OffsetDeleteRequestTopic(
        name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    delete = OffsetDeleteRequest(group_id=group, topics=[wanted])
    session.ask(delete, 0, label="somebody reads it")
    for member in ("first", "second"):
        session.ask(beat(group, member, -1), 1)
    session.ask(commit(group, topic, 9), 9, label="empty group, nobody")
    session.ask(delete, 0, label="nobody reads it")
    session.ask(fetch(group, topic), 9, label="deleted")
