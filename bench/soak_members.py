"""Members of share groups and of streams groups in a soak.

Share members are librdkafka's. They accept most records, and release or reject some. Streams
members speak the protocol themselves: each reads its tasks from the committed offset on, writes
what it counted to the changelog, and commits as the member that it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from confluent_kafka import AcknowledgeType, ShareConsumer

from bench.soak_lives import TIMEOUT_S, TOPIC, Pace, done, ended, headers, settings, turns
from mockbroker.client import EARLIEST, Client
from mockbroker_protocol.records import Record
from tests.support.streams_member import StreamsMember

POLL_S = 0.2
SHARE_GROUPS = 2
ACKNOWLEDGED = [AcknowledgeType.ACCEPT] * 8 + [AcknowledgeType.RELEASE, AcknowledgeType.REJECT]


def shared(servers: str, name: str) -> None:
    """A member of a share group that acknowledges each record by itself."""
    config = settings(
        servers, client_id=name, group_id=f"share-{int(name[-1]) % SHARE_GROUPS}",
        share_acknowledgement_mode="explicit",
    )  # fmt: skip
    member = ShareConsumer(config)
    try:
        member.subscribe([TOPIC])
        for _ in turns():
            if ended.is_set():
                break
            records = [each for each in member.poll(POLL_S) if each.error() is None]
            for number, record in enumerate(records):
                member.acknowledge(record, ACKNOWLEDGED[number % len(ACKNOWLEDGED)])
            done["share"] += len(records)
    finally:
        member.close()


def streams(servers: str, name: str) -> None:
    """A process of a streams application that counts the records of its tasks."""
    with Client(servers, name, timeout_s=TIMEOUT_S) as client:
        member = StreamsMember(client, "streams", TOPIC, str(uuid.uuid4()))
        positions: dict[int, int] = {}
        for _ in turns():
            if ended.wait(Pace.pause_s):
                break
            member.beat()
            if member.error:
                return  # fenced, or the coordinator has moved: another member takes its place
            tasks = member.tasks["active"].get("0", [])
            positions = {each: positions.get(each, -1) for each in tasks}
            _process(client, member, positions)
        member.leave()


def _process(client: Client, member: StreamsMember, positions: dict[int, int]) -> None:
    """Read each task's partition once, from its committed offset on, and commit what was read."""
    fresh = [each for each, offset in positions.items() if offset < 0]
    if fresh:
        positions.update(_begins(client, member.group, fresh))
    moved = {}
    for partition, offset in positions.items():
        records = client.fetch(TOPIC, partition, offset, max_wait_ms=50)
        if not records:
            continue
        moved[TOPIC, partition] = positions[partition] = (records[-1].offset or 0) + 1
        count = Record(key=b"count", value=f"{len(records)}".encode(), headers=tuple(headers()))
        client.produce(f"{member.group}-changelog", [count], partition=partition)
        done["streams"] += len(records)
    if moved:
        member.commit(moved)


def _begins(client: Client, group: str, partitions: list[int]) -> Mapping[int, int]:
    """The committed offset of each partition, or the first one that it still has."""
    committed = client.groups.committed(group)
    starts = client.list_offsets(TOPIC, EARLIEST, partitions)
    return {each: max(committed.get((TOPIC, each), 0), starts[each].offset) for each in partitions}
