"""Each state of a transactional id, held, over a socket: what producers, consumers and
administrators are told.

Where a move is pending everything is told CONCURRENT_TRANSACTIONS but a verification. An end that
is decided has its completion pending, and Dead and PrepareEpochFence are only ever pending; so
what the table of answers says in those four columns a client sees of the verification only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from mockbroker import Cluster
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from mockbroker.core.txn.states import ANSWERS, TransactionState, TxnAction, TxnRequest
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from mockbroker_protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from mockbroker_protocol.messages.list_transactions import ListTransactionsRequest
from mockbroker_protocol.records import iter_records, parse_marker, split_batches
from tests.differential.dialogue import list_offsets
from tests.differential.transacting import TV1, TV2, Producer, read, stable_offset
from tests.support.held_transaction import PENDING, Held
from tests.support.waiting import wait_until

E = ErrorCode
BY_STATE = pytest.mark.parametrize("state", TransactionState, ids=lambda state: state.value)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1) as kafka:
        for topic in (TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC):
            kafka.call(lambda cluster, name=topic: cluster.ensure_internal_topic(name))
        yield kafka


def put(held: Held, ask: TxnRequest) -> tuple[int, Any]:
    """Ask over the socket; the error code, and the whole answer."""
    p, session = held.p, held.session
    if ask is TxnRequest.INIT:
        answer = session.ask(Producer(session).init_request(), 5)
        return answer.error_code, answer
    if ask is TxnRequest.ADD:
        answer = session.ask(p.add(held.name, partitions=[1]), 3)
        (topic,) = answer.results_by_topic_v3_and_below
        return topic.results_by_partition[0].partition_error_code, answer
    if ask is TxnRequest.VERIFY:
        lines = [p.batched(held.name)]
        answer = session.ask(AddPartitionsToTxnRequest(transactions=lines), 5)
        (topic,) = answer.results_by_transaction[0].topic_results
        return topic.results_by_partition[0].partition_error_code, answer
    version = TV1 if ask in (TxnRequest.TV1_COMMIT, TxnRequest.TV1_ABORT) else TV2
    again = ask in (TxnRequest.TV2_COMMIT_RETRY, TxnRequest.TV2_ABORT_RETRY)
    commits = ask in (TxnRequest.TV1_COMMIT, TxnRequest.TV2_COMMIT, TxnRequest.TV2_COMMIT_RETRY)
    answer = session.ask(p.end(committed=commits, epoch=p.epoch - again), version)
    return answer.error_code, answer


@pytest.fixture
def held(kafka: Cluster, state: TransactionState) -> Iterator[Held]:
    made = Held(kafka, state)
    yield made
    made.close()


def code(state: TransactionState, ask: TxnRequest) -> ErrorCode:
    """What the cell says, put as an error code."""
    verdict = ANSWERS[state][ask]
    if state in PENDING and ask is not TxnRequest.VERIFY:
        return E.CONCURRENT_TRANSACTIONS
    if isinstance(verdict, ErrorCode):
        return verdict
    if verdict is TxnAction.VERIFY:
        there = state in (TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE)
        return E.NONE if there else E.TRANSACTION_ABORTABLE
    return E.CONCURRENT_TRANSACTIONS if verdict is TxnAction.FENCE else E.NONE


@pytest.mark.covers("S250")
@pytest.mark.parametrize("ask", TxnRequest, ids=lambda ask: ask.name)
@BY_STATE
def test_every_cell_is_answered_as_the_table_says(
    held: Held, state: TransactionState, ask: TxnRequest
) -> None:
    """The code, and what comes of it."""
    before = held.described
    found, answer = put(held, ask)
    assert ErrorCode(found) is code(state, ask)
    verdict = ANSWERS[state][ask]
    if state in PENDING or isinstance(verdict, ErrorCode) or verdict is TxnAction.VERIFY:
        assert held.described == before
    elif verdict is TxnAction.REPEAT:
        identity = (before.producer_id, before.producer_epoch)
        told = (-1, -1) if ask in (TxnRequest.TV1_COMMIT, TxnRequest.TV1_ABORT) else identity
        assert (answer.producer_id, answer.producer_epoch) == told
        assert held.described == before
    elif verdict is TxnAction.BUMP_EPOCH:
        assert answer.producer_epoch == before.producer_epoch + 1
        assert held.state == "Empty"
    elif verdict is TxnAction.FENCE:
        held.wait_for(TransactionState.COMPLETE_ABORT)
        assert held.described.producer_epoch == before.producer_epoch + 1
    elif verdict is TxnAction.ADD:
        added = next(t.partitions for t in held.described.topics if t.topic == held.name)
        assert (held.state, added) == ("Ongoing", [0, 1] if before.topics else [1])
    else:
        commits = ask in (TxnRequest.TV1_COMMIT, TxnRequest.TV2_COMMIT)
        held.wait_for(
            TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT
        )
        raised = ask not in (TxnRequest.TV1_COMMIT, TxnRequest.TV1_ABORT)
        assert held.described.producer_epoch == before.producer_epoch + raised


# --------------------------------------------------------------------------------- what is seen


class Seen(NamedTuple):
    """What others see of a transaction that wrote "v" at offset 0 and committed offset 5."""

    committed: list[str]  # to a read_committed consumer
    aborted: int  # transactions that a read_committed consumer is told to leave out
    uncommitted: list[str]  # to a read_uncommitted one, which knows markers by themselves
    ends: tuple[int, int]  # last stable offset, high watermark
    open_at: int  # DescribeProducers: where the transaction began, -1 if none is open
    offset: int | ErrorCode  # of the group; UNSTABLE_OFFSET_COMMIT while it is pending
    shown: str | ErrorCode  # DescribeTransactions and the filter of ListTransactions
    partitions: int  # that DescribeTransactions lists
    first_protocol: ErrorCode  # Produce v11 to a partition that was not added
    second_protocol: ErrorCode  # Produce v12, where the leader adds it


NONE, CONCURRENT = E.NONE, E.CONCURRENT_TRANSACTIONS
ABORTABLE, AGAIN = E.TRANSACTION_ABORTABLE, E.NOT_ENOUGH_REPLICAS
UNSTABLE = E.UNSTABLE_OFFSET_COMMIT

VIEWS: dict[TransactionState, Seen] = {
    TransactionState.EMPTY: Seen([], 0, [], (0, 0), -1, -1, "Empty", 0, ABORTABLE, NONE),
    TransactionState.ONGOING: Seen(
        [], 0, ["v"], (0, 1), 0, UNSTABLE, "Ongoing", 2, ABORTABLE, NONE
    ),
    TransactionState.PREPARE_COMMIT: Seen(
        [], 0, ["v"], (0, 1), 0, UNSTABLE, "PrepareCommit", 2, AGAIN, CONCURRENT
    ),
    TransactionState.PREPARE_ABORT: Seen(
        [], 0, ["v"], (0, 1), 0, UNSTABLE, "PrepareAbort", 2, AGAIN, CONCURRENT
    ),
    TransactionState.COMPLETE_COMMIT: Seen(
        ["v", "COMMIT"],
        *(0, ["v", "COMMIT"], (2, 2), -1, 5, "CompleteCommit", 0, ABORTABLE, NONE),
    ),
    TransactionState.COMPLETE_ABORT: Seen(
        ["v", "ABORT"],
        *(1, ["v", "ABORT"], (2, 2), -1, -1, "CompleteAbort", 0, ABORTABLE, NONE),
    ),
    # The id is still there, and so is its open transaction, until the record is stored.
    TransactionState.DEAD: Seen([], 0, [], (0, 0), -1, -1, "Empty", 0, ABORTABLE, CONCURRENT),
    TransactionState.PREPARE_EPOCH_FENCE: Seen(
        [], 0, ["v"], (0, 1), 0, UNSTABLE, "Ongoing", 2, ABORTABLE, CONCURRENT
    ),
}


@pytest.mark.covers("S8", "S9", "S14", "S19", "S143", "S241", "S247", "S254")
@BY_STATE
def test_what_each_state_looks_like(held: Held, state: TransactionState) -> None:
    """To consumers of both isolation levels, to a group, to administrators, to its producer."""
    described = held.described
    expected = VIEWS[state]
    committed, aborted = fetched(held, isolation=1)
    found = Seen(
        committed=committed,
        aborted=aborted,
        uncommitted=fetched(held, isolation=0)[0],
        ends=(end(held, isolation=1), end(held, isolation=0)),
        open_at=open_at(held),
        offset=offset(held),
        shown=described.transaction_state,
        partitions=sum(len(topic.partitions) for topic in described.topics),
        first_protocol=produced(held, 11),
        second_protocol=produced(held, 12),
    )
    assert found == expected
    shown = "Ongoing" if expected.second_protocol is NONE else expected.shown
    assert listed(held) == shown


def fetched(held: Held, isolation: int) -> tuple[list[str], int]:
    """The records of partition 0 in words, and how many transactions are listed as aborted."""
    answer = held.session.quietly(read(held.name, isolation), 12).responses[0].partitions[0]
    words = [
        parse_marker(record).control_type.name
        if header.is_control
        else bytes(record.value).decode()
        for header, batch in split_batches(bytes(answer.records or b""))
        for record in iter_records(header, batch)
    ]
    return words, len(answer.aborted_transactions or ())


def end(held: Held, isolation: int) -> int:
    answer = held.session.quietly(list_offsets(held.name, -1, isolation=isolation), 7)
    return int(answer.topics[0].partitions[0].offset)


def open_at(held: Held) -> int:
    request = DescribeProducersRequest([TopicRequest(held.name, [0])])
    (partition,) = held.session.quietly(request, 0).topics[0].partitions
    starts = [each.current_txn_start_offset for each in partition.active_producers]
    return starts[0] if starts else -1


def offset(held: Held) -> int | ErrorCode:
    """What the group has committed; refused while that may still change."""
    answer = held.session.quietly(stable_offset(held.name, held.name), 7)
    line = answer.topics[0].partitions[0]
    return ErrorCode(line.error_code) if line.error_code else int(line.committed_offset)


def produced(held: Held, version: int) -> ErrorCode:
    """The producer goes on in another partition, by the first protocol or by the second."""
    answer = held.session.quietly(held.p.produce(held.name, partition=1), version)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def listed(held: Held) -> str:
    """The state by which ListTransactions finds the id."""
    names = [
        state.value
        for state in TransactionState
        for line in held.session.quietly(
            ListTransactionsRequest(state_filters=[state.value]), 2
        ).transaction_states
        if line.transactional_id == held.name
    ]
    return ",".join(names)


# ------------------------------------------------------------------- what becomes of the pending


@pytest.mark.parametrize("state", [TransactionState.DEAD])
def test_an_id_that_expired_is_forgotten_when_its_tombstone_is_stored(
    held: Held, state: TransactionState
) -> None:
    """Meanwhile it is still shown as it was. Afterwards the name begins anew."""
    assert held.state == "Empty"
    held.release()
    wait_until(lambda: held.described.error_code == E.TRANSACTIONAL_ID_NOT_FOUND)
    assert held.session.ask(held.p.end(), TV2).error_code == E.INVALID_PRODUCER_ID_MAPPING
    old = held.p.pid
    answer = held.p.init()
    assert (answer.error_code, answer.producer_epoch) == (E.NONE, 0)
    assert answer.producer_id != old


@pytest.mark.parametrize("state", [TransactionState.PREPARE_EPOCH_FENCE])
def test_who_fences_gets_the_id_when_the_abort_is_complete(
    held: Held, state: TransactionState
) -> None:
    old = held.p.epoch
    assert held.state == "Ongoing"
    held.release()
    held.wait_for(TransactionState.COMPLETE_ABORT)
    assert held.session.ask(held.p.end(), TV2).error_code == E.INVALID_TXN_STATE
    assert held.session.ask(held.p.add(held.name), 3).error_code == E.NONE
    assert held.p.init().producer_epoch == old + 2
