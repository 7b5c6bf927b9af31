"""Producers that go on after an error that does not fence them, under a new epoch (KIP-360)."""

from __future__ import annotations

import contextlib

import pytest

from mockbroker import Cluster
from mockbroker_protocol import ApiKey
from tests.support.python_transactions import Failed, Make
from tests.support.request_log import RequestLog
from tests.support.transactional_id import ID, committed, wait_for_state


@pytest.mark.mock_kafka(brokers=1)
def test_a_producer_that_a_partition_has_forgotten_goes_on(
    kafka: Cluster, log: RequestLog, make_recovering: Make
) -> None:
    """That costs the transaction, not the producer. Who needs another epoch than the abort gives
    (TV2), or sees no other way than to take one, says by which id and epoch it goes and is given
    the next; nobody else is let in.
    """
    with make_recovering(kafka.bootstrap_servers, ID) as producer:
        producer.begin()
        producer.send("t", "before")
        kafka.faults.add(
            match={"api": "Produce"}, when={"times": 1}, do={"error": "UNKNOWN_PRODUCER_ID"}
        )
        with contextlib.suppress(Failed):
            producer.send("t", "lost")
        producer.abort()
        kafka.journal.wait(kind="transaction", state="CompleteAbort")
        producer.begin()
        producer.send("t", "next")
        producer.commit()
        wait_for_state(kafka, "CompleteCommit")
    assert committed(kafka, 1) == ["next"]
    first, *others = log.of(ApiKey.INIT_PRODUCER_ID)
    assert (first.request.producer_id, first.request.producer_epoch) == (-1, -1)
    given = first.response.producer_id
    assert {each.request.producer_id for each in others} <= {given}
    assert {each.response.producer_id for each in others} <= {given, -1}  # -1: not yet
