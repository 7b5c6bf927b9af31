"""What a leader asks the coordinator, and what becomes of the batch meanwhile."""

from __future__ import annotations

import pytest

from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.reader import JournalReader
from mockbroker.core.replication.partition import Partition
from mockbroker.core.txn.verification import (
    PartitionVerification,
    TxnOperation,
    UnverifiedBatch,
    VerifiedPartitions,
)
from mockbroker_protocol import ErrorCode
from tests.support.group_node import Pending
from tests.support.hops import add_hop_rule
from tests.support.requests import batch_of, produce_request
from tests.support.txn_node import TV2, Txn, TxnNode

E = ErrorCode
THREE = (None, None, None)


@pytest.fixture
def node() -> TxnNode:
    return TxnNode()


def led_elsewhere(node: TxnNode, p: Txn) -> Partition:
    """The first partition, led by another broker than the coordinator of `p`."""
    partition = node.cluster.partition("t", 0)
    assert partition is not None
    leader = next(n for n in (1, 2, 3) if n != p.broker)
    partition.become_leader(leader, partition.leader_epoch + 1, partition.isr)
    return partition


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (9, E.INVALID_TXN_STATE),
        (10, E.INVALID_TXN_STATE),
        (11, E.TRANSACTION_ABORTABLE),
        (12, E.NONE),
        (13, E.NONE),
    ],
)
def test_a_partition_that_was_not_added(node: TxnNode, version: int, error: ErrorCode) -> None:
    """Is refused with TV1, in words the producer knows, and added with TV2."""
    p = node.txn()
    request = p.produce_request()
    if version >= 13:
        request.topic_data[0].topic_id = node.cluster.topics["t"].topic_id
        request.topic_data[0].name = ""
    answer = node.ask(request, version).responses[0].partition_responses[0]
    assert answer.error_code == error
    assert (p.state, len(node.words())) == (("Ongoing", 1) if error is E.NONE else ("Empty", 0))


@pytest.mark.parametrize("version", [9, 11, 12])
@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"pid": 4242}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"id": "nobody"}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"epoch": 5}, E.INVALID_PRODUCER_EPOCH),
    ],
)
def test_somebody_elses_transaction(
    node: TxnNode, version: int, changed: dict[str, object], error: ErrorCode
) -> None:
    p = node.txn()
    p.add(0)
    assert p.produce(version=version, **changed).error_code == error
    assert node.words() == []


@pytest.mark.parametrize(
    ("version", "error"),
    [(9, E.NOT_ENOUGH_REPLICAS), (11, E.NOT_ENOUGH_REPLICAS), (12, E.CONCURRENT_TRANSACTIONS)],
)
def test_while_the_end_before_is_not_complete(
    node: TxnNode, version: int, error: ErrorCode
) -> None:
    """TV1 is told something it tries again after; TV2 waits up to 100 ms in steps of 20."""
    p = node.txn()
    p.produce(partition=1)
    add_hop_rule(node.cluster, {"delay": 10_000}, api="WriteTxnMarkers")
    p.end(version=TV2)
    pending = p.send(version=version)
    if version >= 12:
        assert pending.parked
        node.advance(99)
        assert pending.parked
        node.advance(1)
    answer = pending.response.responses[0].partition_responses[0]
    assert answer.error_code == error
    assert (answer.error_message or "").endswith("CONCURRENT_TRANSACTIONS") == (version < 12)
    assert node.words() == []


def test_a_producer_of_tv2_need_not_notice_that_an_end_takes_a_moment(node: TxnNode) -> None:
    p = node.txn()
    p.produce(partition=1)
    add_hop_rule(node.cluster, {"delay": 30}, api="WriteTxnMarkers")
    p.end(version=TV2)
    pending = p.send((b"next",))
    node.advance(29)
    assert pending.parked
    node.advance(1)  # the end is complete, and the leader asks again
    assert pending.response.responses[0].partition_responses[0].error_code == E.NONE
    assert node.words() == ["next"]


def test_a_producer_of_tv2_that_waits_is_not_forgotten_with_its_coordinator() -> None:
    """The leader asks the next coordinator when its time to ask again has come."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    p.produce()
    p.end(version=TV2)
    pending = p.send((b"next",))
    assert pending.parked
    other = next(n for n in (1, 2, 3) if n != p.broker)
    node.cluster.move_coordinator(p.id, other, "transaction")
    node.advance(20)
    assert pending.response.responses[0].partition_responses[0].error_code == E.NONE
    # What the first coordinator had sent arrives as well.
    assert node.words() == ["v", "COMMIT", "COMMIT", "next"]


def test_an_acks_0_produce_that_waits_is_not_answered(node: TxnNode) -> None:
    p = node.txn()
    p.produce(partition=1)
    p.end(version=TV2)
    request = p.produce_request()
    request.acks = 0
    pending = node.send(request, 12)
    assert pending.parked
    node.advance(20)
    assert not pending.parked
    assert node.words() == ["v"]


def test_without_a_coordinator_the_producer_tries_again(node: TxnNode) -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    p.add(0)
    node.cluster.pause_broker(p.broker, fence_after_ms=3_600_000)
    leader = next(n for n in (1, 2, 3) if n != p.broker)
    partition = node.cluster.partition("t", 0)
    assert partition is not None
    partition.become_leader(leader, partition.leader_epoch + 1, partition.isr)
    pending = p.send(version=11)
    node.advance(29_000)
    assert pending.parked  # a process that stands still is waited for
    node.advance(1_000)
    answer = pending.response.responses[0].partition_responses[0]
    assert answer.error_code == E.NOT_ENOUGH_REPLICAS
    assert answer.error_message.endswith("NETWORK_EXCEPTION")
    node.cluster.stop_broker(p.broker, "unclean", fence_after_ms=3_600_000)
    pending = p.send(version=11)
    node.settle()  # one that is gone breaks the connection
    answer = pending.response.responses[0].partition_responses[0]
    assert answer.error_message.endswith("NETWORK_EXCEPTION")
    node.cluster.delete_topic("__transaction_state")
    answer = p.produce(version=11)
    assert answer.error_code == E.NOT_ENOUGH_REPLICAS
    assert answer.error_message.endswith("COORDINATOR_NOT_AVAILABLE")


def test_a_coordinator_that_still_loads_is_asked_again_by_the_producer() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    p.add(0)
    node.cluster.stop_broker(p.broker, "unclean")
    answer = p.produce(version=11)
    assert answer.error_code == E.NOT_ENOUGH_REPLICAS
    assert answer.error_message.endswith("COORDINATOR_LOAD_IN_PROGRESS")
    node.settle()
    assert p.produce(version=11).error_code == E.NONE


@pytest.mark.parametrize("phase", ["before", "after"])
def test_question_and_answer_take_their_time_between_brokers(phase: str) -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    leader = led_elsewhere(node, p).leader_id
    delay = {"delay": {"by": 500, "phase": phase}}
    rule = add_hop_rule(
        node.cluster, delay, api="AddPartitionsToTxn", from_broker=leader, to_broker=p.broker
    )
    pending = p.send()
    node.advance(499)
    assert pending.parked
    assert node.words() == []
    node.advance(1)
    assert node.words() == ["v"]
    assert rule.hits == 1


def test_an_answer_about_a_transaction_that_has_ended_opens_no_other() -> None:
    """The marker comes while the answer is on its way: the guard is void."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = led_elsewhere(node, p)
    p.add(0)

    delay = {"delay": {"by": 500, "phase": "after"}}
    add_hop_rule(node.cluster, delay, api="AddPartitionsToTxn")
    pending = p.send(version=11)
    node.settle()
    p.end(committed=False)
    node.settle()
    assert node.words() == ["ABORT"]
    node.advance(1000)
    answer = pending.response.responses[0].partition_responses[0]
    assert answer.error_code == E.INVALID_TXN_STATE
    assert node.words() == ["ABORT"]
    assert partition.last_stable_offset == partition.high_watermark


def test_the_journal_has_the_partitions_that_the_coordinator_is_asked_about() -> None:
    node = TxnNode(racks=THREE)
    journal = Journal(lambda: 0)
    node.cluster.keep_journal(journal)
    p = node.txn()
    led_elsewhere(node, p)
    p.add(0)
    add_hop_rule(node.cluster, {"observe": {}}, api="AddPartitionsToTxn")
    p.send(version=11)
    node.settle()
    events = JournalReader(journal, node.cluster.topic_name).events()
    sent, answered = [
        each.message
        for each in events
        if each.api == "AddPartitionsToTxn" and each.to_broker and each.kind != "fault"
    ]
    [asked] = sent["transactions"]
    assert asked["topics"] == [{"name": "t", "partitions": [0]}]
    [told] = answered["results_by_transaction"]
    assert told["topic_results"] == [
        {
            "name": "t",
            "results_by_partition": [{"partition_index": 0, "partition_error_code": 0}],
        }
    ]


def test_verification_can_be_switched_off_but_adding_cannot(node: TxnNode) -> None:
    node = TxnNode(configs={"transaction.partition.verification.enable": "false"})
    p = node.txn()
    assert p.produce(version=11).error_code == E.NONE
    assert p.state == "Empty"  # a transaction that hangs: the coordinator does not know of it
    assert p.produce(sequence=1, version=12, id="nobody", pid=9).error_code == (
        E.INVALID_PRODUCER_ID_MAPPING
    )


def test_one_request_is_one_producers(node: TxnNode) -> None:
    p, q = node.txn("p"), node.txn("q")
    request = p.produce_request()
    request.topic_data[0].partition_data += (
        q.produce_request(partition=1).topic_data[0].partition_data
    )
    lines = node.ask(request, 12).responses[0].partition_responses
    assert {line.error_code for line in lines} == {E.INVALID_PRODUCER_ID_MAPPING}
    assert {bool(line.error_message) for line in lines} == {True}


def test_all_partitions_of_a_request_are_added_in_one_record(node: TxnNode) -> None:
    p = node.txn()
    request = p.produce_request()
    request.topic_data[0].partition_data += (
        p.produce_request(partition=2).topic_data[0].partition_data
    )
    node.ask(request, 12)
    shard = node.txn_shard()
    assert shard.partition.log_end_offset == 2  # the id, and both partitions
    assert list(p.machine.partitions) == [("t", 0), ("t", 2)]


def test_only_the_leader_is_written_to() -> None:
    node = TxnNode(racks=THREE)
    p: Txn = node.txn()
    partition = node.cluster.partition("t", 0)
    assert partition is not None
    answer = p.produce(broker=partition.replicas[1])
    assert answer.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == partition.leader_id
    assert p.state == "Empty"


def test_a_partition_that_another_broker_leads_is_refused_without_a_question(
    node: TxnNode,
) -> None:
    p = node.txn()
    partition = node.cluster.partition("t", 0)
    assert partition is not None
    verification = PartitionVerification(
        node.cluster,
        partition.leader_id + 1,
        TxnOperation.ADD,
        transactional_id=p.id,
        producer_id=p.pid,
        epoch=p.epoch,
    )
    results: list[VerifiedPartitions] = []
    verification.start([UnverifiedBatch(partition, 0)], results.append)
    assert results == [VerifiedPartitions({("t", 0): E.NOT_LEADER_OR_FOLLOWER}, {})]
    assert p.state == "Empty"


def awaited_verification(node: TxnNode, p: Txn) -> tuple[Partition, Pending]:
    """A produce whose leader, another broker, waits two seconds for the coordinator's answer."""
    partition = led_elsewhere(node, p)
    p.add(0)
    delay = {"delay": {"by": 2_000, "phase": "after"}}
    add_hop_rule(node.cluster, delay, api="AddPartitionsToTxn")
    pending = p.send(version=11)
    node.settle()
    assert pending.parked
    return partition, pending


def test_a_paused_leader_takes_the_answer_when_it_is_resumed() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition, pending = awaited_verification(node, p)
    node.cluster.pause_broker(partition.leader_id, fence_after_ms=3_600_000)
    node.advance(5_000)
    assert pending.parked
    assert node.words() == []
    node.cluster.resume_broker(partition.leader_id)
    node.advance(0)
    assert pending.response.responses[0].partition_responses[0].error_code == E.NONE
    assert node.words() == ["v"]


def test_the_answer_to_a_process_that_has_ended_does_not_reach_the_next_one() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition, _ = awaited_verification(node, p)
    leader_id = partition.leader_id
    node.cluster.stop_broker(leader_id, "unclean", fence_after_ms=3_600_000)
    node.cluster.start_broker(leader_id)
    node.advance(1_000)
    node.cluster.move_leader("t", 0, leader_id)
    node.advance(5_000)
    assert node.words() == []


@pytest.mark.parametrize("version", [11, 12])
def test_an_empty_transactional_id_is_refused_for_each_partition(
    node: TxnNode, version: int
) -> None:
    p = node.txn()
    request = p.produce_request(id="")
    request.topic_data[0].partition_data += (
        p.produce_request(partition=1).topic_data[0].partition_data
    )
    lines = node.ask(request, version).responses[0].partition_responses
    assert [(line.index, line.error_code) for line in lines] == [
        (0, E.INVALID_REQUEST),
        (1, E.INVALID_REQUEST),
    ]


def test_an_answer_after_the_timeout_is_too_late() -> None:
    """And the batches that did not wait for it are not appended again."""
    node = TxnNode(racks=THREE, configs={"request.timeout.ms": "1000"})
    p = node.txn()
    p.add(0)
    delay = {"delay": {"by": 2_000, "phase": "after"}}
    add_hop_rule(node.cluster, delay, api="AddPartitionsToTxn")
    request = p.produce_request()
    plain = produce_request({("t", 1): batch_of(b"plain")})
    request.topic_data[0].partition_data += plain.topic_data[0].partition_data
    leader = next(n for n in (1, 2, 3) if n != p.broker)
    for index in (0, 1):
        node.cluster.move_leader("t", index, leader)
    pending = node.send(request, 11, broker=leader)
    node.advance(1_000)
    answer, _ = pending.response.responses[0].partition_responses
    assert answer.error_code == E.NOT_ENOUGH_REPLICAS
    assert answer.error_message.endswith("NETWORK_EXCEPTION")
    node.advance(5_000)
    assert (node.words(0), node.words(1)) == ([], ["plain"])


def test_an_answer_in_time_ends_the_wait_for_it() -> None:
    node = TxnNode(racks=THREE, configs={"request.timeout.ms": "7777"})
    timeout_ms = node.now_ms + 7_777
    _, pending = awaited_verification(node, node.txn())
    timers = node.cluster.runtime.timers
    assert timeout_ms in [due_ms for due_ms, _ in timers.pending(1000)]
    node.advance(2_000)
    assert not pending.parked
    assert timeout_ms not in [due_ms for due_ms, _ in timers.pending(1000)]


@pytest.mark.parametrize(("version", "verify_only"), [(11, True), (12, False)])
def test_a_question_that_is_refused_on_the_way_is_so_for_each_partition(
    version: int, *, verify_only: bool
) -> None:
    """Only a producer of TV2 has its partitions added with it."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    leader = next(n for n in (1, 2, 3) if n != p.broker)
    for index in (0, 1):
        node.cluster.move_leader("t", index, leader)
    where = {"transactions[].verify_only": verify_only}
    error = {"error": "COORDINATOR_NOT_AVAILABLE"}
    rule = add_hop_rule(node.cluster, error, api="AddPartitionsToTxn", where=where)
    request = p.produce_request()
    request.topic_data[0].partition_data += (
        p.produce_request(partition=1).topic_data[0].partition_data
    )
    pending = node.send(request, version, broker=leader)
    node.settle()
    lines = pending.response.responses[0].partition_responses
    assert [line.error_code for line in lines] == [E.NOT_ENOUGH_REPLICAS] * 2
    assert rule.hits == 1
