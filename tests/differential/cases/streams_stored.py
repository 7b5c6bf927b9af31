"""What a streams group keeps in `__consumer_offsets`, and the tasks of many members (KIP-1071)."""

from __future__ import annotations

import random
from typing import Any

from mockbroker.core.hashing.java_hash import coordinator_partition
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    RequestEndpoint,
    Subtopology,
    TopicInfo,
    Topology,
)
from mockbroker_protocol.records import iter_records, split_batches
from tests.differential.cases.streams_groups import (
    PARTITIONS,
    Member,
    beat,
    describe,
    new_group,
    reading,
    settle,
    topic_of,
)
from tests.differential.registry import case
from tests.differential.session import Session

OFFSETS = "__consumer_offsets"


def records_of(session: Session, group: str) -> list[str]:
    """The records of a group, decoded, in their order. Hashes and times are not compared."""
    partition = FetchPartition(
        partition=coordinator_partition(group, PARTITIONS), partition_max_bytes=1 << 24
    )
    request = FetchRequest(
        replica_id=-1, max_bytes=1 << 24, topics=[FetchTopic(OFFSETS, partitions=[partition])]
    )
    data = session.quietly(request, 12).responses[0].partitions[0].records
    found = []
    for header, batch in split_batches(memoryview(bytes(data))):
        for record in iter_records(header, batch):
            key = CONSUMER_OFFSETS.decode_key(record.key)
            if getattr(key, "group_id", None) != group:
                continue
            value = CONSUMER_OFFSETS.decode_value(key, record.value)
            for drawn in ("metadata_hash", "assignment_timestamp"):
                if hasattr(value, drawn):
                    setattr(value, drawn, 1)
            found.append(f"{key} {value}")
    return found


@case()
def streams_records_in_the_log(session: Session) -> None:
    topic, _ = topic_of(session, partitions=2)
    other, _ = topic_of(session, "-b", partitions=2)
    group = new_group(session)
    topology = Topology(
        3,
        [
            Subtopology(
                "0",
                source_topics=[topic, other],
                copartition_groups=[CopartitionGroup([0, 1], [], [])],
            ),
            Subtopology(
                "1",
                source_topics=[other],
                state_changelog_topics=[
                    TopicInfo(topic, 0, 1, [KeyValue("cleanup.policy", "delete")])
                ],
            ),
        ],
    )
    first, second = Member(session, group, "m1"), Member(session, group, "m2")
    first.join(
        topology,
        rack_id="r",
        client_tags=[KeyValue("zone", "b"), KeyValue("cluster", "a")],
        user_endpoint=RequestEndpoint("h", 9),
    )
    second.join(topology)
    settle(first, second)
    second.leave()
    settle(first)
    first.leave()
    session.ask(DeleteGroupsRequest(groups_names=[group]), 2, label="delete")
    session.note(records_of(session, group), "records")


@case()
def streams_assignments_of_many_members(session: Session) -> None:
    """Members of several processes come and go: the same tasks go to the same members."""
    configs = {"streams.num.standby.replicas": "1"}
    group = new_group(session, **configs)
    names = [topic_of(session, f"-{n}", partitions=n + 2)[0] for n in range(3)]
    changelogs = [topic_of(session, f"-c{n}", partitions=n + 2)[0] for n in range(2)]
    topology = Topology(
        0,
        [
            Subtopology(
                str(n),
                source_topics=[name],
                state_changelog_topics=[TopicInfo(changelogs[n])] if n < 2 else [],
            )
            for n, name in enumerate(names)
        ],
    )
    rng = random.Random(1071)
    members: list[Member] = []
    for number in range(14):
        if len(members) < 2 or (len(members) < 6 and rng.random() < 0.65):
            member = Member(session, group, f"member-{number}")
            members.append(member)
            member.join(topology, process_id=f"process-{rng.randrange(4)}")
        else:
            members.pop(rng.randrange(len(members))).leave()
        settle(*members, rounds=3)
        describe(session, group, label=f"step {number}")


@case()
def streams_members_expire(session: Session) -> None:
    """A member whose heartbeat was lost may come back with its former epoch."""
    topic, _ = topic_of(session, partitions=4)
    group = new_group(session)
    first, second = Member(session, group, "m1"), Member(session, group, "m2")
    first.join(reading(topic))
    second.join(reading(topic))
    settle(first, second)
    former: Any = (first.epoch, dict(first.tasks[0]))
    third = Member(session, group, "m3")
    third.join(reading(topic))
    settle(first, second, third)
    for label, epoch, tasks in (
        ("former epoch, former tasks", *former),
        ("former epoch, present tasks", former[0], first.tasks[0]),
        ("former epoch, nothing told", former[0], None),
    ):
        session.ask(beat(group, "m1", epoch, tasks), 0, label=label)
