"""Logs are read by the headers of their batches."""

from __future__ import annotations

from mockbroker.simulation.logs import batches_of, transactional_batches_of
from mockbroker.simulation.observe import log_view
from mockbroker_protocol.records import Record, build_batch
from mockbroker_protocol.records.control import ControlType, build_marker
from tests.support.replicas import Replicas


def a_log() -> bytearray:
    """A plain batch, two of a transaction, its marker, and an idempotent one."""
    record = Record(0, 1, b"k", b"v")
    log = build_batch([record])
    for base_offset, producer_id in ((1, 7), (2, 8)):
        log += build_batch(
            [record],
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
    log += build_marker(
        ControlType.COMMIT,
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=3,
        timestamp=5,
        base_offset=3,
    )
    log += build_batch([record], base_offset=4, producer_id=9, producer_epoch=0, base_sequence=0)
    return log


def test_batches_of_transactions_are_told_from_the_others() -> None:
    assert list(transactional_batches_of(a_log())) == [(1, 7, False), (2, 8, False), (3, 7, True)]


def test_both_ways_to_read_a_log_agree() -> None:
    log = a_log()
    for end in range(0, len(log) + 1, 9):  # also where a part of a batch is left
        piece = memoryview(log)[:end]
        expected = [
            (batch.base_offset, batch.producer_id, batch.marker is not None)
            for batch in batches_of(piece)
            if batch.transactional or batch.marker is not None
        ]
        assert list(transactional_batches_of(piece)) == expected
    assert [batch.marker for batch in batches_of(log)] == [None, None, None, True, None]


def test_a_marker_has_the_epoch_of_its_coordinator() -> None:
    assert [batch.coordinator_epoch for batch in batches_of(a_log())] == [-1, -1, -1, 3, -1]


def test_the_log_of_a_leader_that_has_not_heard_of_its_leadership_is_its_own() -> None:
    """Seed 4906: the former leader lost its power; the new one could not hear the controller."""
    node = Replicas(brokers=5, replicas=[2, 1])
    node.sent("a", "b")
    node.cluster.cut_network([1, 4], fence_after_ms=3000)
    node.cluster.cut_network([2, 4])
    node.cluster.stop_broker(2, "power_loss")
    assert node.partition.leader_id == 1
    assert log_view(node.partition).end_offset == 2
