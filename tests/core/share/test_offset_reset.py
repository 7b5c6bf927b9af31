"""Where a share group begins in a partition that it has not read yet."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.share.offset_reset import EARLIEST, LATEST, duration_ms, start_offset
from mockbroker_protocol import ErrorCode
from tests.support.requests import NOW_MS, Node, timed_batch


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT0S", 0),
        ("PT4S", 4_000),
        ("PT0.5S", 500),
        ("PT1,25S", 1_250),
        ("PT1.5009S", 1_500),
        ("PT1.003S", 1_003),
        ("PT2.S", 2_000),
        ("PT3M", 180_000),
        ("PT2H", 7_200_000),
        ("P1D", 86_400_000),
        ("+p1dt2h3m4.5s", 93_784_500),
    ],
)
def test_a_duration_has_days_hours_minutes_and_parts_of_seconds(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "1S", "PT-1S", "P1H", "PT1S2M", "PT1.0000000001S"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        duration_ms(text)


def test_a_group_begins_no_further_than_the_high_watermark() -> None:
    """The follower is paused; a later record may be lost with the leader."""
    node = Node(racks=(None, None))
    partition = node.topic()
    node.produced(timed_batch(NOW_MS - 9_000, NOW_MS - 6_000))
    node.cluster.pause_broker(2)
    partition.append_records(timed_batch(NOW_MS - 3_000), NOW_MS)
    assert (partition.high_watermark, partition.log_end_offset) == (2, 3)
    epoch = partition.leader_epoch
    assert start_offset(partition, LATEST, epoch, NOW_MS) == 2
    assert start_offset(partition, "by_duration:PT6S", epoch, NOW_MS) == 1
    with pytest.raises(ApiError, match="not found for topic partition: t-0") as error:
        start_offset(partition, "by_duration:PT5.999S", epoch, NOW_MS)
    assert error.value.error is ErrorCode.OFFSET_NOT_AVAILABLE


def test_the_high_watermark_of_a_new_leader_is_not_the_latest_offset_yet() -> None:
    node = Node()
    partition = node.topic()
    node.produced(timed_batch(NOW_MS - 9_000, NOW_MS - 6_000))
    epoch = partition.leader_epoch
    partition.leader_epoch_start_offset = 2
    assert start_offset(partition, LATEST, epoch, NOW_MS) == 2
    partition.leader_epoch_start_offset = 3
    for reset in (LATEST, "by_duration:PT1S"):
        with pytest.raises(ApiError, match="Failed to fetch high watermark for") as error:
            start_offset(partition, reset, epoch, NOW_MS)
        assert error.value.error is ErrorCode.OFFSET_NOT_AVAILABLE
    assert start_offset(partition, EARLIEST, epoch, NOW_MS) == 0
    assert start_offset(partition, "by_duration:PT9S", epoch, NOW_MS) == 0


@pytest.mark.parametrize("reset", [EARLIEST, LATEST, "by_duration:PT1S"])
def test_a_former_leader_does_not_know_where_a_group_begins(reset: str) -> None:
    node = Node()
    partition = node.topic()
    former = partition.leader_epoch
    partition.become_leader(1, former + 1, [1])
    with pytest.raises(ApiError) as error:
        start_offset(partition, reset, former, NOW_MS)
    assert error.value.error is ErrorCode.FENCED_LEADER_EPOCH
