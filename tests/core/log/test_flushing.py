"""What survives the loss of power: what was flushed by then, and nothing else."""

from __future__ import annotations

import pytest

from mockbroker.core.events import LogTruncated, RecordsRemoved
from mockbroker.core.log.flushing import flush, recovery_point
from tests.support.kept_log import KeptLog
from tests.support.replicas import Replicas

NEVER = 1 << 62


@pytest.mark.parametrize(
    ("flushed", "every", "point"),
    [
        (0, NEVER, 2),  # the segment before the active one
        (1, NEVER, 2),
        (3, NEVER, 3),
        (9, NEVER, 6),  # the log was cut since
        (0, 3, 5),
        (0, 1, 6),
        (0, 2, 5),
        (0, 4, 6),
        (0, 5, 2),
        (3, 3, 6),
    ],
)
def test_the_closed_segments_and_every_so_many_records_are_flushed(
    flushed: int, every: int, point: int
) -> None:
    """Batches end at 2, 3, 5 and 6; a segment begins at 2."""
    kept = KeptLog()
    kept.write((b"k", b"v"), (b"k", b"v"))
    kept.roll()
    kept.write((b"k", b"v"))
    kept.write((b"k", b"v"), (b"k", b"v"))
    kept.write((b"k", b"v"))
    assert recovery_point(kept.log, flushed, every) == point


def cuts(node: Replicas) -> list[tuple[int, int, int]]:
    """(broker, log end before, log end after) of each cut, so far."""
    found = [each for each in node.events if isinstance(each, LogTruncated)]
    return [(each.node_id, each.former_end_offset, each.offset) for each in found]


def test_a_flush_is_of_the_logs_that_the_broker_has() -> None:
    node = Replicas(replicas=[1, 2])
    node.sent("a", "b")
    for node_id in (2, 3):
        flush(node.cluster.topics.values(), node.cluster.brokers[node_id])
    points = {each.node_id: each.log_dirs.recovery_points for each in node.cluster.brokers.values()}
    key = node.partition.key
    assert (points[2], points[3], points[1].get(key, 0)) == ({key: 2}, {}, 0)


def test_a_loss_of_power_takes_what_was_written_since_the_last_flush() -> None:
    node = Replicas()
    node.sent("a")
    flush(node.cluster.topics.values(), node.cluster.brokers[2])
    node.sent("b")
    node.cluster.stop_broker(2, "power_loss")
    assert node.contents() == {1: "a b", 2: "a", 3: "a b"}
    assert cuts(node) == [(2, 2, 1)]
    node.cluster.stop_broker(3, "power_loss")
    assert node.contents() == {1: "a b", 2: "a", 3: ""}
    assert cuts(node)[1:] == [(3, 2, 0)]


def test_a_broker_that_has_all_on_its_disk_loses_nothing_with_its_power() -> None:
    node = Replicas(flush_messages="1")
    node.sent("a")
    node.sent("b")
    node.cluster.stop_broker(2, "power_loss")
    assert (node.content(2), cuts(node)) == ("a b", [])


def test_the_last_leader_loses_its_records_with_its_power_and_its_high_watermark_follows() -> None:
    node = Replicas(1)
    node.sent("a")
    flush(node.cluster.topics.values(), node.cluster.brokers[1])
    node.sent("b")
    node.cluster.stop_broker(1, "power_loss")
    assert (node.partition.leader_id, node.partition.high_watermark) == (-1, 1)
    assert node.content(1) == "a"
    node.cluster.start_broker(1)
    assert (node.read(), node.partition.log_end_offset) == ("a", 1)
    lost = [each for each in node.events if isinstance(each, RecordsRemoved)]
    assert [(each.first_offset, each.last_offset) for each in lost] == [(1, 1)]
