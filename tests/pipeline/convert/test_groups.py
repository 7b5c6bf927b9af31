"""Assignments and committed offsets as rows."""

from __future__ import annotations

import pytest

from mockbroker.core.events import OffsetCommitted, TransactionMoved
from mockbroker.core.journal.entries import EventEntry
from mockbroker.pipeline.convert.cluster_state import RunState
from mockbroker.pipeline.convert.groups import GroupTables
from mockbroker.pipeline.convert.readers import GroupReaders
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.transactions import Transactions
from mockbroker_protocol import ApiKey
from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    encode_assignment,
)
from mockbroker_protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from mockbroker_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.pipeline.convert.support import Kept, Row
from tests.pipeline.convert.told_run import ToldRun

SYNC, TXN_COMMIT = (ApiKey.SYNC_GROUP, 5), (ApiKey.TXN_OFFSET_COMMIT, 3)
ASSIGNED = encode_assignment(ConsumerProtocolAssignment([TopicPartition("t", [1, 0])]))


@pytest.mark.parametrize(("transactional", "offsets"), [(False, [5]), (True, [])])
def test_an_offset_has_a_row_although_its_request_has_ended(
    transactional: bool, offsets: list[int]
) -> None:
    """The connection of the request may close before the offset is written. An offset of a
    transaction takes effect at the end of the transaction only.
    """
    kept, cluster = Kept(), RunState()
    rows = Rows(kept)
    tables = GroupTables(rows, cluster, Transactions(rows), GroupReaders(cluster))
    event = OffsetCommitted(0, 1, 7, "g", "orders", 0, 5, transactional)
    tables.offset_committed(EventEntry(9, 0, 0, event), event, None)
    rows.flush()
    found = kept.of("commits")
    assert [(row["group"], row["offset"], row["reset"]) for row in found] == [
        ("g", offset, False) for offset in offsets
    ]


@pytest.mark.parametrize(
    ("protocol_type", "assignment", "error", "partitions"),
    [
        ("consumer", ASSIGNED, 0, [0, 1]),
        (None, ASSIGNED, 0, [0, 1]),  # before version 5 nobody says what it is
        ("connect", ASSIGNED, 0, []),
        ("consumer", b"", 0, []),
        ("consumer", b"\0", 0, []),
        ("consumer", ASSIGNED, 27, []),
    ],
)
def test_the_answer_to_a_consumers_sync_assigns_partitions(
    protocol_type: str | None, assignment: bytes, error: int, partitions: list[int]
) -> None:
    """In the order of their numbers. The bytes of other groups mean something else."""
    run = ToldRun()
    request = SyncGroupRequest("g", 4, "m", protocol_type=protocol_type)
    seq = run.request(1, SYNC, request)
    run.answer(seq, SyncGroupResponse(error_code=error, assignment=assignment))
    assert [
        (row["topic"], row["partition"], row["member"], row["generation"], row["client_id"])
        for row in run.rows("assignments")
    ] == [("t", each, "m", 4, "c") for each in partitions]


def transaction(run: ToldRun, former: str, state: str) -> None:
    run.event(TransactionMoved(0, 1, "x", former, state, 9, 0, 1_000, 0))


def sent_to_transaction(run: ToldRun, offset: int, *, taken: bool = True) -> None:
    """Offsets of partitions 0 and 1 are sent; the coordinator takes that of 0 only, or none."""
    sent = [TxnOffsetCommitRequestPartition(index, offset) for index in (0, 1)]
    request = TxnOffsetCommitRequest(
        "x", "g", 9, 0, topics=[TxnOffsetCommitRequestTopic("t", sent)]
    )
    seq = run.request(1, TXN_COMMIT, request)
    errors = [TxnOffsetCommitResponsePartition(index, 3) for index in (0, 1)]
    if taken:
        run.event(OffsetCommitted(0, 1, seq, "g", "t", 0, offset, True))
        errors[0] = TxnOffsetCommitResponsePartition(0, 0)
    run.answer(seq, TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic("t", errors)]))


def told(rows: list[Row]) -> list[tuple[object, ...]]:
    names = ("partition", "offset", "transaction", "applied", "error")
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize("ending", ["Commit", "Abort", None])
def test_offsets_of_a_transaction_are_applied_if_it_is_committed(ending: str | None) -> None:
    """Their rows come with its end, or with that of the run; those of refused ones at once."""
    run = ToldRun()
    transaction(run, "Empty", "Ongoing")
    sent_to_transaction(run, 5)
    refused = (1, 5, "9/1", False, "UNKNOWN_TOPIC_OR_PARTITION")
    assert told(run.rows("commits")) == [refused]
    if ending is not None:
        transaction(run, "Ongoing", f"Prepare{ending}")
        assert told(run.rows("commits")) == [refused]
        transaction(run, f"Prepare{ending}", f"Complete{ending}")
    run.converter.finish()
    assert told(run.rows("commits")) == [refused, (0, 5, "9/1", ending == "Commit", None)]


def test_offsets_begin_a_transaction_if_one_of_them_was_taken() -> None:
    """Clients may send them before the coordinator of the transaction tells that it goes on."""
    run = ToldRun()
    sent_to_transaction(run, 4, taken=False)
    transaction(run, "Empty", "Ongoing")
    transaction(run, "Ongoing", "PrepareCommit")
    transaction(run, "PrepareCommit", "CompleteCommit")
    sent_to_transaction(run, 5)
    transaction(run, "Empty", "Ongoing")
    assert [row["transaction"] for row in run.rows("commits")] == [None, None, "9/2"]
    states = [(row["state"], row["transaction"]) for row in run.rows("transactions")]
    assert states == [
        ("Ongoing", "9/1"),
        ("PrepareCommit", "9/1"),
        ("CompleteCommit", "9/1"),
        ("Ongoing", "9/2"),
    ]
