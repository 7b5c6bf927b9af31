"""The transaction coordinator: producers and their epochs, what is added, the end."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.internal_topics import TRANSACTION_STATE
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from mockbroker_protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from mockbroker_protocol.messages.describe_transactions import DescribeTransactionsRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.list_transactions import ListTransactionsRequest
from mockbroker_protocol.records import iter_records, split_batches
from tests.differential.cases.groups import new_group
from tests.differential.registry import case
from tests.differential.session import Session
from tests.differential.transacting import (
    TRANSACTION,
    TV1,
    TV2,
    Producer,
    find_transaction_coordinator,
    java_partition,
    look,
    make_topic,
    producer,
    producers,
)

# --------------------------------------------------------------------------------- InitProducerId


@case()
def txn_init_refusals(session: Session) -> None:
    """Timeouts out of bounds, halves of an identity, an empty id."""
    name = session.name
    Producer(session)
    for timeout_ms in (0, -1, 900_001, 2**31 - 1):
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        session.ask(request, 4, label=str(timeout_ms))
    for pid, epoch in ((-1, 5), (5, -1), (-2, 0), (0, -2)):
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=1000,
            producer_id=pid,
            producer_epoch=epoch,
        )
        session.ask(request, 4, label=f"{pid}/{epoch}")
    empty = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
    session.ask(empty, 4, label="empty")


@case()
def txn_init_epochs(session: Session) -> None:
    """Each producer gets the next epoch; one that says who it is goes on or is fenced."""
    p = Producer(session)
    for version in (0, 1, 2, 3, 4, 5):
        p.init(version, label=f"v{version}")
    p.init(timeout_ms=900_000, label="the longest timeout")

    def again(pid: int, epoch: int, version: int = 5, label: str = "") -> Any:
        request = InitProducerIdRequest(
            transactional_id=p.id,
            transaction_timeout_ms=60_000,
            producer_id=pid,
            producer_epoch=epoch,
        )
        return session.ask(request, version, label=label)

    again(p.pid, p.epoch - 1, label="the epoch before, which nobody may go on from")
    again(p.pid, p.epoch - 1, 3, label="the same in the old words")
    again(p.pid + 1000, p.epoch, label="another producer id")
    bumped = again(p.pid, p.epoch, label="goes on")
    again(p.pid, p.epoch, label="retries")
    again(p.pid, p.epoch, label="retries again")
    again(bumped.producer_id, bumped.producer_epoch, label="goes on from there")
    again(p.pid, p.epoch, label="too late")
    again(p.pid, p.epoch + 7, label="an epoch to come")


@case()
def txn_init_unknown_id_with_identity(session: Session) -> None:
    """An id nobody knows is given out anew, whatever the producer says it went by."""
    p = Producer(session)
    for _ in range(2):
        request = InitProducerIdRequest(
            transactional_id=p.id,
            transaction_timeout_ms=60_000,
            producer_id=123_456_789,
            producer_epoch=3,
        )
        session.ask(request, 4)


@case()
def txn_init_fences_what_is_open(session: Session) -> None:
    """An open transaction is aborted first; its producer is shut out everywhere."""
    for version in (TV1, TV2):
        topic = make_topic(session, str(version))
        p = producer(session, str(version))
        session.ask(p.add(topic), 3)
        session.ask(p.produce(topic), 9)
        old = p.epoch
        p.init(label="fences")
        p.settle()
        p.describe("fenced")
        producers(session, topic)
        p.init(label="again")
        look(session, topic)
        session.ask(p.produce(topic, 1, epoch=old), 9, label="old produce")
        session.ask(p.produce(topic, 1, epoch=old), 12, label="old produce v12")
        session.ask(p.add(topic, epoch=old), 3, label="old add")
        session.ask(p.end(epoch=old), version, label="old commit")
        session.ask(p.end(epoch=old, committed=False), version, label="old abort")
        session.ask(p.end(epoch=old + 1, committed=False), version, label="abort of the fence")
        p.describe()


@case()
def txn_init_with_identity_while_open(session: Session) -> None:
    """A producer that goes on in the middle of a transaction has it aborted (KIP-360)."""
    topic = make_topic(session)
    p = producer(session)
    session.ask(p.add(topic), 3)
    session.ask(p.produce(topic), 9)

    def again(epoch: int) -> Any:
        request = InitProducerIdRequest(
            transactional_id=p.id,
            transaction_timeout_ms=60_000,
            producer_id=p.pid,
            producer_epoch=epoch,
        )
        answer = session.ask(request, 4)
        p.settle()
        return answer

    again(p.epoch)
    again(p.epoch)
    again(p.epoch)
    p.describe()
    look(session, topic)


# ------------------------------------------------------------------------------ adding partitions


@case()
def txn_add_partitions(session: Session) -> None:
    """What is added is there; what does not exist keeps the rest out."""
    topic = make_topic(session, partitions=3)
    p = producer(session)
    p.describe("empty")
    for version in (0, 1, 2, 3):
        session.ask(p.add(topic, partitions=[0, 1]), version)
    p.describe("two")
    session.ask(p.add(topic, partitions=[2, 3]), 3, label="one of two exists")
    session.ask(p.add(topic, "no-such-topic"), 3, label="no such topic")
    session.ask(p.add("no-such-topic"), 3, label="nothing that exists")
    session.ask(p.add("__transaction_state"), 3, label="an internal topic")
    session.ask(p.add(topic, "__transaction_state"), 0, label="one of two is internal")
    p.describe("still two")
    for version in (1, 3):
        session.ask(p.add(topic, id="nobody-" + p.id), version, label="unknown id")
        session.ask(p.add(topic, pid=p.pid + 1000), version, label="another producer id")
        session.ask(p.add(topic, epoch=p.epoch + 1), version, label="an epoch to come")
        session.ask(p.add(topic, epoch=-1), version, label="no epoch")
        session.ask(p.add(topic, id=""), version, label="empty id")
    p.finish(TV1, label="commit")
    p.describe("complete")
    session.ask(p.add(topic, partitions=[2]), 3, label="next")
    p.describe("next")


@case()
def txn_add_partitions_batched(session: Session) -> None:
    """What leaders ask: to verify many transactions at once, or to add."""
    topic = make_topic(session, partitions=2)
    p, q = producer(session, "-p"), producer(session, "-q")
    session.ask(p.add(topic), 3)
    for version in (4, 5):

        def ask(*lines: AddPartitionsToTxnTransaction, label: str, version: int = version) -> None:
            request = AddPartitionsToTxnRequest(transactions=list(lines))
            session.ask(request, version, label=label)

        ask(p.batched(topic), label="there")
        ask(p.batched(topic, partitions=[0, 1]), label="one is missing")
        ask(q.batched(topic), label="nothing is open")
        ask(p.batched(topic), q.batched(topic), label="two")
        ask(p.batched(topic, pid=p.pid + 1000), label="another producer id")
        ask(p.batched(topic, epoch=p.epoch + 1), label="another epoch")
        ask(p.batched(topic, id="nobody-" + p.id), label="unknown id")
        ask(p.batched("no-such-topic"), label="no such topic")
        session.no_answer(AddPartitionsToTxnRequest(), version, label="nothing")
    add = AddPartitionsToTxnRequest(
        transactions=[p.batched(topic, partitions=[1], verify=False), q.batched("no-such-topic")]
    )
    session.ask(add, 5, label="add and verify")
    p.describe()
    q.describe()


@case()
def txn_add_offsets(session: Session) -> None:
    """The group's partition of __consumer_offsets is added."""
    group = new_group(session)
    p = producer(session)
    for version in (0, 1, 2, 3, 4):
        session.ask(p.add_offsets(group), version)
    p.describe()
    for version in (1, 4):
        session.ask(p.add_offsets(group, id="nobody-" + p.id), version, label="unknown id")
        session.ask(p.add_offsets(group, pid=p.pid + 1000), version, label="another producer id")
        session.ask(p.add_offsets(group, epoch=p.epoch + 1), version, label="an epoch to come")
        session.ask(p.add_offsets(group, id=""), version, label="empty id")
    session.ask(p.add_offsets(""), 3, label="empty group")
    p.finish(TV1)


# ----------------------------------------------------------------------------------------- EndTxn


@case()
def txn_end_first_protocol(session: Session) -> None:
    """EndTxn up to v4 in every state that holds still."""
    topic = make_topic(session)
    p = producer(session)

    def both(label: str, version: int = TV1, **changed: Any) -> None:
        session.ask(p.end(**changed), version, label=f"commit {label}")
        session.ask(p.end(committed=False, **changed), version, label=f"abort {label}")

    both("empty")
    for version in (1, 4):
        both("unknown id", version, id="nobody-" + p.id)
        both("another producer id", version, pid=p.pid + 1000)
        both("an epoch to come", version, epoch=p.epoch + 1)
        both("empty id", version, id="")
    for committed in (True, False):
        for version in (0, 1, 2, 3, 4):
            session.ask(p.add(topic), 3)
            p.finish(version, committed=committed)
            p.describe()
        both("complete")
        both("an epoch before", epoch=p.epoch - 1)
    look(session, topic)


@case()
def txn_end_second_protocol(session: Session) -> None:
    """EndTxn since v5: each end raises the epoch, and a retry is known by the epoch before."""
    topic = make_topic(session)
    p = producer(session)

    def both(label: str, **changed: Any) -> None:
        session.ask(p.end(**changed), TV2, label=f"commit {label}")
        session.ask(p.end(committed=False, **changed), TV2, label=f"abort {label}")
        p.settle()

    session.ask(p.end(), TV2, label="commit of an empty one")
    both("a retry when empty", epoch=p.epoch - 1)
    p.finish(committed=False, label="abort of an empty one")
    p.describe("aborted empty")
    session.ask(p.produce(topic), 12)
    both("a retry while ongoing", epoch=p.epoch - 1)
    both("an epoch to come", epoch=p.epoch + 1)
    both("another producer id", pid=p.pid + 1000)
    both("unknown id", id="nobody-" + p.id)
    both("empty id", id="")
    p.finish(label="commit")
    p.describe("committed")
    both("a retry of a commit", epoch=p.epoch - 1)
    both("two epochs ago", epoch=p.epoch - 2)
    session.ask(p.end(), TV2, label="commit once more")
    p.finish(committed=False, label="abort after a commit")
    p.describe("aborted nothing")
    both("a retry of an abort", epoch=p.epoch - 1)
    session.ask(p.end(), TV2, label="commit after an abort")
    p.finish(committed=False, label="abort after an abort")
    session.ask(p.produce(topic), 12)
    p.finish(committed=False, label="abort")
    look(session, topic)
    producers(session, topic)


@case()
def txn_end_versions_mixed(session: Session) -> None:
    """A producer of either protocol may end what one of the other has begun."""
    topic = make_topic(session)
    p = producer(session)
    session.ask(p.add(topic), 3)
    session.ask(p.produce(topic), 11)
    p.finish(TV2, label="added by the client, ended by v5")
    p.describe()
    session.ask(p.produce(topic), 12)
    p.finish(TV1, label="added by the leader, ended by v4")
    p.describe()
    session.ask(p.produce(topic, 1), 12, label="the sequence goes on")
    p.finish(TV2, committed=False)
    look(session, topic)
    producers(session, topic)


# ----------------------------------------------------------------------------------- introspection


def list_them(session: Session, version: int, label: str = "", **filters: Any) -> None:
    """ListTransactions of the case's own ids."""

    def edit(answer: Any) -> Any:
        answer.transaction_states = sorted(
            (
                line
                for line in answer.transaction_states
                if line.transactional_id.startswith(session.name)
            ),
            key=lambda line: line.transactional_id,
        )
        answer.unknown_state_filters.sort()
        return answer

    session.ask(ListTransactionsRequest(**filters), version, label=label, edit=edit)


@case()
def txn_list_and_describe(session: Session) -> None:
    """Filters of ListTransactions; DescribeTransactions of what is not there."""
    topic = make_topic(session)
    p, q, r = (producer(session, suffix) for suffix in ("-p", "-q", "-r"))
    session.ask(p.produce(topic), 12)
    session.ask(q.produce(topic), 12)
    q.finish()
    for version in (0, 1, 2):
        list_them(session, version)
        list_them(session, version, "ongoing", state_filters=["Ongoing"])
        list_them(session, version, "two states", state_filters=["Empty", "CompleteCommit"])
        list_them(session, version, "no state", state_filters=["Ongoing", "Odd", "ongoing"])
        list_them(session, version, "only no state", state_filters=["Odd"])
        list_them(session, version, "Dead", state_filters=["Dead", "PrepareEpochFence"])
        list_them(session, version, "producer", producer_id_filters=[p.pid, r.pid])
        list_them(session, version, "no producer", producer_id_filters=[987_654_321])
    for version in (1, 2):
        list_them(session, version, "long", duration_filter=3_600_000)
        list_them(session, version, "any duration", duration_filter=0, state_filters=["Ongoing"])
    for pattern in ("", ".*", ".*-p", "-p", "(", "(?=x)", f"{session.name}-[pq]"):
        list_them(session, 2, f"pattern {pattern}", transactional_id_pattern=pattern)
    describe = DescribeTransactionsRequest(transactional_ids=["nobody-" + p.id, "", r.id])

    def edit(answer: Any) -> Any:
        answer.transaction_states.sort(key=lambda line: line.transactional_id)
        return answer

    session.ask(describe, 0, edit=edit)


@case()
def txn_describe_producers(session: Session) -> None:
    """A partition's producers through a transaction's life, and where nobody leads."""
    topic = make_topic(session)
    p = producer(session)
    producers(session, topic, "nobody")
    session.ask(p.add(topic), 3)
    producers(session, topic, "added")
    session.ask(p.produce(topic), 11)
    session.ask(p.produce(topic, 1), 11)
    producers(session, topic, "open")
    p.finish(TV1)
    producers(session, topic, "committed")
    for name, index in (("no-such-topic", 0), (topic, 9), ("bad name!", 0)):
        request = DescribeProducersRequest(
            topics=[TopicRequest(name=name, partition_indexes=[index])]
        )
        session.ask(request, 0, label=f"{name} {index}")


@case()
def txn_find_coordinator(session: Session) -> None:
    """FindCoordinator of type 1, in both shapes."""
    find_transaction_coordinator(session, session.name)
    session.ask(FindCoordinatorRequest(key_type=TRANSACTION, key=session.name), 3)
    keys = [session.name, "my-transactional-id", ""]
    session.ask(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=keys), 4)


@case()
def txn_timeout(session: Session) -> None:
    """Who takes too long is aborted, and shut out."""
    for version in (TV1, TV2):
        topic = make_topic(session, str(version))
        p = Producer(session, str(version))
        p.init(timeout_ms=2_000)  # a real broker's clock runs on while it produces
        session.ask(p.add(topic), 3)
        session.ask(p.produce(topic), 11)
        describe = DescribeTransactionsRequest(transactional_ids=[p.id])
        while (
            session.quietly(describe, 0).transaction_states[0].transaction_state != "CompleteAbort"
        ):
            pass
        p.describe()
        session.ask(p.produce(topic, 1), 11, label="too late")
        session.ask(p.produce(topic, 1), 12, label="too late")
        session.ask(p.add(topic), 3, label="too late")
        session.ask(p.end(), version, label="commit, too late")
        session.ask(p.end(committed=False), version, label="abort, too late")
        p.settle()
        p.describe()
        look(session, topic)
        producers(session, topic)


@case()
def txn_state_records(session: Session) -> None:
    """The records of __transaction_state, field by field but for the times."""
    topic, group = make_topic(session, partitions=2), new_group(session)
    p = producer(session)
    session.ask(p.add(topic, partitions=[0, 1]), 3)
    session.ask(p.add_offsets(group), 3)
    p.finish(TV1)
    session.ask(p.produce(topic), 12)
    p.finish(TV2, committed=False)
    p.finish(TV2, committed=False)
    p.init()
    session.ask(p.add(topic), 3)
    p.init()
    p.settle()
    p.init()
    partition = FetchPartition(
        partition=java_partition(p.id),
        fetch_offset=0,
        partition_max_bytes=1 << 20,
        log_start_offset=-1,
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        topics=[FetchTopic(topic="__transaction_state", partitions=[partition])],
    )
    records = session.quietly(request, 12).responses[0].partitions[0].records
    for header, stored in split_batches(memoryview(bytearray(records))):
        for record in iter_records(header, stored):
            key = TRANSACTION_STATE.decode_key(record.key)
            if key.transactional_id != p.id:
                continue
            value = TRANSACTION_STATE.decode_value(key, record.value)
            lines = value.transaction_partitions
            if lines is not None:
                lines.sort(key=lambda line: line.topic)
                for line in lines:
                    line.partition_ids.sort()
            batch_start = value.transaction_start_timestamp_ms
            value.transaction_start_timestamp_ms = min(batch_start, 0)
            assert value.transaction_last_update_timestamp_ms <= record.timestamp
            value.transaction_last_update_timestamp_ms = 0
            version = record.value[1]
            session.note(value, f"v{version} {header.attributes} {header.base_sequence}")
