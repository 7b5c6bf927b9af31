"""TxnOffsetCommit: offsets that wait for their transaction's end."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.group_node import commit_request, fetch_request
from tests.support.txn_node import TV2, TxnNode

E = ErrorCode


@pytest.fixture
def node() -> TxnNode:
    return TxnNode()


def fetched(node: TxnNode, *, stable: bool = True) -> tuple[int, int]:
    answer = node.ask(fetch_request({"t": [0]}, require_stable=stable))
    line = answer.groups[0].topics[0].partitions[0]
    return line.error_code, line.committed_offset


@pytest.mark.parametrize(
    ("version", "error"),
    [(0, 48), (2, 48), (3, 48), (4, E.TRANSACTION_ABORTABLE), (5, E.NONE)],
)
def test_a_group_that_was_not_added(node: TxnNode, version: int, error: int) -> None:
    """The coordinator of the group adds it for producers of TV2, and refuses the others."""
    p = node.txn()
    assert p.commit_offset(5, version=version) == error
    assert p.state == ("Ongoing" if error == E.NONE else "Empty")


@pytest.mark.parametrize("version", range(6))
def test_offsets_count_when_the_transaction_is_committed(node: TxnNode, version: int) -> None:
    p = node.txn()
    p.add_offsets()
    assert p.commit_offset(5, version=version) == E.NONE
    assert fetched(node)[0] == E.UNSTABLE_OFFSET_COMMIT
    assert fetched(node, stable=False) == (E.NONE, -1)
    p.end(version=TV2)
    node.settle()
    assert fetched(node) == (E.NONE, 5)


def test_a_later_plain_commit_outranks_an_earlier_one_of_a_transaction(node: TxnNode) -> None:
    p = node.txn()
    p.commit_offset(5, version=5)
    node.ask(commit_request({("t", 0): 3}))
    p.end(version=TV2)
    node.settle()
    assert fetched(node) == (E.NONE, 3)


def test_pending_offsets_survive_the_coordinator(node: TxnNode) -> None:
    """They are a transactional batch in the log, under the producer's own id and epoch."""
    p = node.txn()
    p.commit_offset(5, version=5)
    shard = node.shard()
    partition = shard.partition
    header, _ = node.stored("__consumer_offsets", partition.index)[-1]
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (p.pid, 0, 0)
    assert (header.is_transactional, header.is_control) == (True, False)
    shard.unload()
    assert fetched(node)[0] == E.UNSTABLE_OFFSET_COMMIT
    p.end(version=TV2)
    node.settle()
    node.shard().unload()
    assert fetched(node) == (E.NONE, 5)


@pytest.mark.covers("S249")
def test_members_and_generations_are_checked_if_they_are_told(node: TxnNode) -> None:
    """KIP-447: a zombie of the group cannot commit, though its transactional id is its own."""
    (member,) = node.stable(group_instance_id="i")
    p = node.txn()
    p.add_offsets()

    def commit(**who: object) -> int:
        return p.commit_offset(5, **who)  # type: ignore[arg-type]

    assert commit() == E.NONE
    generation = node.shard().groups["g"].generation
    known = {"member_id": member, "generation_id": generation, "group_instance_id": "i"}
    assert commit(**known) == E.NONE
    assert commit(**{**known, "generation_id": generation - 1}) == E.ILLEGAL_GENERATION
    assert commit(**{**known, "member_id": "stranger"}) == E.FENCED_INSTANCE_ID
    assert commit(member_id="stranger", generation_id=generation) == E.UNKNOWN_MEMBER_ID
    assert commit(**{**known, "group_instance_id": "j"}) == E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"producer_id": 99}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_epoch": 5}, E.INVALID_PRODUCER_EPOCH),
        ({"transactional_id": "nobody"}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"generation_id": 1}, E.ILLEGAL_GENERATION),
        ({"metadata": "x" * 4097}, E.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_refusals(node: TxnNode, changed: dict[str, object], error: ErrorCode) -> None:
    p = node.txn()
    for version in (4, 5):
        assert p.commit_offset(5, version=version, **changed) in (
            error,
            E.TRANSACTION_ABORTABLE if version == 4 else error,
        )
    assert fetched(node) == (E.NONE, -1)


def test_what_does_not_exist_is_refused_by_itself(node: TxnNode) -> None:
    p = node.txn()
    lines = [TxnOffsetCommitRequestPartition(0, 5), TxnOffsetCommitRequestPartition(9, 5)]
    topics = [
        TxnOffsetCommitRequestTopic("t", lines),
        TxnOffsetCommitRequestTopic("u", lines[:1]),
    ]
    answer = p.send_offset(5, version=5, topics=topics).response
    assert {
        (topic.name, line.partition_index): line.error_code
        for topic in answer.topics
        for line in topic.partitions
    } == {
        ("t", 0): E.NONE,
        ("t", 9): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("u", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_group_has_a_name(node: TxnNode) -> None:
    assert node.txn().commit_offset(5, "", version=5) == E.INVALID_GROUP_ID


def test_while_the_end_before_is_not_complete(node: TxnNode) -> None:
    """Not waited for here, as Kafka's group coordinator does not."""
    p = node.txn()
    p.produce()
    p.end(version=TV2)
    for version in (3, 4, 5):
        assert p.commit_offset(5, version=version) == E.CONCURRENT_TRANSACTIONS
    node.settle()
    assert p.commit_offset(5, version=5) == E.NONE


def test_old_producers_are_not_told_that_a_coordinator_loads() -> None:
    """They crash (KAFKA-7296)."""
    node = TxnNode(racks=(None, None, None))
    p = node.txn()
    p.add_offsets()
    node.cluster.stop_broker(p.broker, "unclean")
    assert p.commit_offset(5, version=1) == E.COORDINATOR_NOT_AVAILABLE
    assert p.commit_offset(5, version=2) == E.COORDINATOR_LOAD_IN_PROGRESS
