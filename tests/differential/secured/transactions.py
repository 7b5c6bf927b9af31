"""Producers' ids and transactions."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker_protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mockbroker_protocol.messages.describe_transactions import DescribeTransactionsRequest
from mockbroker_protocol.messages.end_txn import EndTxnRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.list_transactions import ListTransactionsRequest
from mockbroker_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.differential.secured.session import AclSession, case

O, R = AclOperation, ResourceType  # noqa: E741
IDEMPOTENT = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)


@case
def idempotent_producers_need_some_topic_or_the_cluster(session: AclSession) -> None:
    session.without_error(IDEMPOTENT, 5, lambda answer: answer.error_code)

    def ask(label: str, version: int = 5) -> None:
        answer = session.quietly(IDEMPOTENT, version)
        session.note((answer.error_code, answer.producer_id < 0, answer.producer_epoch), label)

    ask("nothing", 0)
    ask("nothing")
    session.allow(O.DESCRIBE, R.TOPIC, "some")
    ask("describe is not enough")
    session.allow(O.WRITE, R.TOPIC, "some")
    ask("one topic")
    session.deny(O.WRITE, R.TOPIC, "some")
    ask("denied again")
    session.allow(O.ALL, R.TOPIC, "other", prefixed=True)
    ask("a prefix")
    session.deny(O.WRITE, R.TOPIC, "oth", prefixed=True)
    ask("denied by a shorter prefix")
    session.allow(O.WRITE, R.TOPIC, "*")
    ask("all topics")
    session.deny(O.ALL, R.TOPIC, "*")
    ask("denied all topics")
    session.allow(O.IDEMPOTENT_WRITE, R.CLUSTER)
    ask("the cluster")


def _init(session: AclSession, own: str) -> tuple[int, int]:
    answer = session.without_error(InitProducerIdRequest(own, 30_000), 5, lambda a: a.error_code)
    return answer.producer_id, answer.producer_epoch


def add(own: str, producer: tuple[int, int], *topics: str) -> AddPartitionsToTxnRequest:
    lines = [AddPartitionsToTxnTopic(topic, [0]) for topic in topics]
    return AddPartitionsToTxnRequest([], own, *producer, lines)


@case
def transactions_are_for_who_may_write_their_id(session: AclSession) -> None:
    own, group = session.name, f"{session.name}-group"
    one, two = session.topic("-one"), session.topic("-two")
    session.coordinator(own, 1)
    session.coordinator(group)
    producer = _init(session, own)
    offsets = TxnOffsetCommitRequest(
        own,
        group,
        *producer,
        topics=[
            TxnOffsetCommitRequestTopic(t, [TxnOffsetCommitRequestPartition(0, 1)])
            for t in (one, two, "missing")
        ],
    )

    def ask(versions: tuple[int, ...]) -> None:
        for version in versions:
            session.ask(InitProducerIdRequest(own, 0), version)
            session.ask(add(own, producer, one, two, "missing"), version)
            session.ask(add(own, producer, one, "__consumer_offsets"), version)
            session.ask(AddOffsetsToTxnRequest(own, *producer, group), version)
            session.ask(offsets, version)
            session.ask(EndTxnRequest(own, *producer), version)

    ask((0, 3))
    session.allow(O.DESCRIBE, R.TRANSACTIONAL_ID, own)
    ask((3,))
    session.allow(O.WRITE, R.TRANSACTIONAL_ID, own)
    ask((3,))
    session.allow(O.READ, R.GROUP, group)
    session.allow(O.WRITE, R.TOPIC, two)
    session.allow(O.READ, R.TOPIC, "missing")
    ask((3,))
    session.allow(O.WRITE, R.TOPIC, one)
    session.allow(O.WRITE, R.TOPIC, "__consumer_offsets")
    session.ask(add(own, producer, one, "__consumer_offsets"), 3)


@case
def brokers_add_partitions_for_others(session: AclSession) -> None:
    own, topic = session.name, session.topic()
    lines = [AddPartitionsToTxnTopic(topic, [0])]
    request = AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction(own, 1, 0, True, lines)])
    session.allow(O.ALL, R.TRANSACTIONAL_ID, own)
    session.allow(O.ALL, R.TOPIC, topic)
    for version in (4, 5):
        session.ask(request, version)
    session.coordinator(own, 1)
    session.allow(O.CLUSTER_ACTION, R.CLUSTER)
    session.ask(request, 5)


@case
def transactions_are_seen_by_who_may(session: AclSession) -> None:
    own, other = f"{session.name}-own", f"{session.name}-other"
    one, two = session.topic("-one"), session.topic("-two")
    for each in (own, other):
        session.coordinator(each, 1)
        producer = _init(session, each)
        session.without_error(
            add(each, producer, one, two),
            3,
            lambda a: (
                a.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
        )

    def listed() -> list[str]:
        found = session.quietly(ListTransactionsRequest(), 2).transaction_states
        return sorted(t.transactional_id for t in found if t.transactional_id in (own, other))

    def timeless(answer: object) -> object:
        for state in answer.transaction_states:  # type: ignore[attr-defined]
            state.transaction_start_time_ms = 0
        return answer

    request = DescribeTransactionsRequest([own, other, "missing", ""])
    session.ask(request, 0, edit=timeless)
    session.note(listed(), "nothing")
    session.allow(O.DESCRIBE, R.TRANSACTIONAL_ID, own)
    session.note(listed(), "one")
    session.ask(request, 0, edit=timeless)
    session.allow(O.DESCRIBE, R.TOPIC, two)
    session.ask(request, 0, edit=timeless)


@case
def markers_are_written_by_administrators(session: AclSession) -> None:
    topic = session.topic()
    lines = [WritableTxnMarkerTopic(topic, [0, 9]), WritableTxnMarkerTopic("missing", [0])]
    request = WriteTxnMarkersRequest([WritableTxnMarker(12345, 0, False, lines)])
    for version in (1, 2):
        session.ask(request, version)
    session.allow(O.ALTER, R.CLUSTER)
    session.ask(request, 1)
