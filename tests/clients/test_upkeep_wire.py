"""Retention and compaction over raw sockets, under a clock that the test moves."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import BatchHeader, Record, build_batch, split_batches
from tests.support.group_wire import OFFSETS, World, group_log, scenario

E = ErrorCode
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


async def produce(world: World, topic: str, *records: tuple[bytes | None, bytes | None]) -> int:
    """Write one batch; its base offset."""
    batch = build_batch(
        [Record(at, world.now_ms, key, value) for at, (key, value) in enumerate(records)]
    )
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(0, memoryview(batch))])
    response = await world.control.send(ProduceRequest(None, -1, 1000, [data]), 9)
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code == E.NONE
    base: int = answer.base_offset
    return base


async def fetch(world: World, topic: str, offset: int, **more: Any) -> Any:
    wanted = FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic, partitions=[wanted])], **more)
    (answer,) = (await world.control.send(request)).responses[0].partitions
    return answer


async def headers(world: World, topic: str, offset: int = 0) -> list[BatchHeader]:
    answer = await fetch(world, topic, offset)
    assert answer.error_code == E.NONE
    return [header for header, _ in split_batches(answer.records)]


async def look_up(world: World, topic: str, timestamp: int) -> tuple[int, int]:
    """(offset, leader epoch) that ListOffsets gives."""
    wanted = ListOffsetsPartition(timestamp=timestamp)
    request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic(topic, [wanted])])
    (answer,) = (await world.control.send(request, 8)).topics[0].partitions
    assert answer.error_code == E.NONE
    return answer.offset, answer.leader_epoch


async def create(world: World, name: str, **configs: str) -> None:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    world.server.cluster.create_topic(name, 1, 1, configs=named)


@pytest.mark.covers("S6", "S7")
@scenario()
async def test_a_log_is_emptied_after_its_retention_and_goes_on_from_there(world: World) -> None:
    await create(world, "short", retention_ms=str(MINUTE_MS))
    await produce(world, "short", (None, b"a"), (None, b"b"))
    await world.advance(6 * MINUTE_MS)
    assert await look_up(world, "short", EARLIEST) == (2, 0)
    assert await look_up(world, "short", LATEST) == (2, 0)
    assert await look_up(world, "short", MAX_TIMESTAMP) == (-1, -1)
    assert (await fetch(world, "short", 1)).error_code == E.OFFSET_OUT_OF_RANGE
    answer = await fetch(world, "short", 2)
    assert (answer.error_code, answer.high_watermark, answer.log_start_offset) == (E.NONE, 2, 2)
    assert await produce(world, "short", (None, b"c")) == 2
    assert [header.base_offset for header in await headers(world, "short", 2)] == [2]


@pytest.mark.covers("S6")
@scenario()
async def test_deleted_records_are_out_of_range_and_the_largest_timestamp_is_still_known(
    world: World,
) -> None:
    await produce(world, "t", *[(None, b"%d" % at) for at in range(10)])
    await world.advance(10)
    await produce(world, "t", (None, b"last"))
    wanted = DeleteRecordsTopic("t", [DeleteRecordsPartition(0, -1)])
    response = await world.control.send(DeleteRecordsRequest([wanted], 1000))
    assert response.topics[0].partitions[0].low_watermark == 11
    assert (await fetch(world, "t", 10)).error_code == E.OFFSET_OUT_OF_RANGE
    # As on a real broker: the segment is still there.
    assert await look_up(world, "t", MAX_TIMESTAMP) == (10, 0)


@scenario()
async def test_a_fetch_that_waits_goes_on_waiting_when_the_log_is_emptied(world: World) -> None:
    await create(world, "short", retention_ms=str(MINUTE_MS))
    await produce(world, "short", (None, b"a"))
    answers = []

    async def wait() -> None:
        link = await world.link()
        wanted = FetchPartition(fetch_offset=1, partition_max_bytes=1 << 20)
        topic = FetchTopic("short", partitions=[wanted])
        request = FetchRequest(max_wait_ms=60 * MINUTE_MS, min_bytes=1, topics=[topic])
        answers.append(await link.send(request))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await world.advance(6 * MINUTE_MS)
        assert await look_up(world, "short", EARLIEST) == (1, 0)
        assert answers == []
        await produce(world, "short", (None, b"b"))
    (partition,) = answers[0].responses[0].partitions
    assert (partition.error_code, partition.log_start_offset) == (E.NONE, 1)
    assert [header.base_offset for header, _ in split_batches(partition.records)] == [1]


@pytest.mark.covers("S28")
@scenario()
async def test_a_compacted_log_as_the_wire_shows_it(world: World) -> None:
    """Batches with fewer records than offsets, a delete horizon, and lookups among what is left."""
    await create(world, "c", cleanup_policy="compact", delete_retention_ms=str(MINUTE_MS))
    await produce(world, "c", (b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    await world.advance(1000)
    await produce(world, "c", (b"a", None), (b"b", b"2"))
    world.server.cluster.run_compaction("c").run()
    first, second = await headers(world, "c")
    assert (first.base_offset, first.last_offset, first.count) == (0, 2, 1)
    assert (second.base_offset, second.last_offset, second.count) == (3, 4, 2)
    assert (first.has_delete_horizon, second.has_delete_horizon) == (False, True)
    assert second.base_timestamp == world.now_ms + MINUTE_MS
    assert await look_up(world, "c", EARLIEST) == (0, 0)
    assert await look_up(world, "c", 0) == (2, 0)
    assert await look_up(world, "c", world.now_ms) == (3, 0)
    await world.advance(MINUTE_MS)
    world.server.cluster.run_compaction("c").run()
    _, second = await headers(world, "c")
    assert (second.base_offset, second.last_offset, second.count) == (3, 4, 1)
    assert await look_up(world, "c", MAX_TIMESTAMP) == (4, 0)
    assert [header.base_offset for header in await headers(world, "c", 1)] == [0, 3]


@pytest.mark.covers("S176", "S177")
@scenario(configs={"offsets.retention.minutes": 60, "connections.max.idle.ms": 10 * DAY_MS})
async def test_a_groups_offsets_expire_leave_tombstones_and_are_compacted_away(
    world: World,
) -> None:
    (member,) = await world.stable("g")
    for offset in range(100):
        assert await member.commit({("t", 0): offset}) == [E.NONE]
    await member.leave()
    written = len(await group_log(world, "g"))
    world.server.cluster.run_compaction(OFFSETS).run()
    left = await group_log(world, "g")
    assert written > 100
    assert sorted(record.key[:2] for record in left if record.key) == [b"\0\1", b"\0\2"]
    assert await member.committed() == {("t", 0): 99}
    await world.advance(71 * MINUTE_MS)
    assert await member.committed() == {}
    world.server.cluster.run_compaction(OFFSETS).run()
    assert [record.value for record in await group_log(world, "g")] == [None, None]
    await world.advance(DAY_MS)
    world.server.cluster.run_compaction(OFFSETS).run()
    assert await group_log(world, "g") == []
    assert await member.committed() == {}
