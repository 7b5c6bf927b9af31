"""Restoring a snapshot: the state for clients afterwards, and the answers to waiting requests."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.brokers.controller import UNCLEAN
from mockbroker.core.cluster import Cluster
from mockbroker.core.journal.entries import HopEntry
from mockbroker.core.journal.journal import Journal
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.restore import RESUME, RestoreError, clear, restore
from mockbroker.core.views.groups import fetch_lag_views
from mockbroker_protocol import ApiKey, ErrorCode
from tests.support.group_node import (
    commit_request,
    fetch_request,
    heartbeat_request,
    join_request,
)
from tests.support.requests import Node, batch_of, done, only
from tests.support.requests import fetch_request as consumer_fetch
from tests.support.stored_clusters import cluster_state, loaded, revived, whole
from tests.support.txn_node import Txn, TxnNode


@pytest.fixture
def node() -> TxnNode:
    return TxnNode(racks=["a", "b", None])


def moved(node: TxnNode) -> TxnNode:
    """The same cluster in another process, by way of a file."""
    image = loaded(whole(capture(node.cluster)))
    other = TxnNode(racks=["a", "b", None])
    other.now_ms = node.now_ms
    other.cluster = revived(image, now_ms=lambda: other.now_ms)
    for broker in other.cluster.brokers.values():
        broker.set_endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker.node_id)
    other.settle()
    return other


def test_a_cluster_comes_back_as_it_was(node):
    node.produce(batch_of(b"one"), broker=leader_of(node))
    image = capture(node.cluster)
    before = cluster_state(node.cluster)
    restore(node.cluster, image)
    assert cluster_state(node.cluster) == before


def leader_of(node: Node, topic: str = "t", partition: int = 0) -> int:
    return node.cluster.topics[topic].partitions[partition].leader_id


def test_a_restore_drops_later_records_each_time(node):
    node.produce(batch_of(b"one"), broker=leader_of(node))
    image = capture(node.cluster)
    for more in (b"two", b"three"):
        node.produce(batch_of(more, more), broker=leader_of(node))
        restore(node.cluster, image)
        assert node.words() == ["one"]
        node.produce(batch_of(b"next"), broker=leader_of(node))
        assert node.words() == ["one", "next"]


def test_a_parked_fetch_is_answered_when_its_topic_is_deleted(node):
    image = capture(node.cluster)
    waiting = node.fetch(("t", 0, 0), max_wait_ms=5000, min_bytes=1, broker=leader_of(node))
    assert not waiting.done
    restore(node.cluster, image)
    assert waiting.done
    error = waiting.response.responses[0].partitions[0].error_code
    assert error in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def test_members_that_wait_are_sent_to_look_for_their_coordinator(node):
    given = node.ask(join_request(), broker=node.group_coordinator_of("g")).member_id
    image = capture(node.cluster)
    second = node.ask(join_request(), broker=node.group_coordinator_of("g")).member_id
    coordinator = node.group_coordinator_of("g")
    node.send(join_request(member=given), broker=coordinator)
    waiting = node.send(join_request(member=second), broker=coordinator)
    assert waiting.parked
    restore(node.cluster, image)
    assert waiting.response.error_code == ErrorCode.NOT_COORDINATOR


def test_a_higher_leader_epoch_informs_clients_that_had_newer_records(node):
    partition = node.cluster.topics["t"].partitions[0]
    leader = partition.leader_id
    node.produce(batch_of(b"one"), broker=leader)
    image = capture(node.cluster)
    restore(node.cluster, image)
    assert node.cluster.topics["t"].partitions[0].leader_epoch == partition.leader_epoch
    node.produce(batch_of(b"two"), broker=leader)
    restore(node.cluster, image)
    again = node.cluster.topics["t"].partitions[0]
    assert again.leader_epoch == partition.leader_epoch + 1
    assert again.log.epochs.entries == [(0, 0), (1, 1)]
    # The history ends at offset 1: that is where a consumer at offset 2 finds itself truncated.
    assert again.log.epochs.end_offset_for(0, again.log.end_offset) == (0, 1)
    node.produce(batch_of(b"x"), broker=leader)
    node.cluster.move_leader("t", 0, next(n for n in partition.replicas if n != leader))
    restore(node.cluster, image)
    assert node.cluster.topics["t"].partitions[0].leader_epoch == 3


def test_a_deleted_topic_that_comes_back_has_a_higher_leader_epoch(node):
    """Whoever read what came after the capture finds itself truncated."""
    partition = node.cluster.topics["t"].partitions[0]
    image = capture(node.cluster)
    node.produce(batch_of(b"lost"), broker=partition.leader_id)
    assert partition.leader_epoch == 0
    node.cluster.delete_topic("t")
    restore(node.cluster, image)
    again = node.cluster.topics["t"].partitions[0]
    assert (again.leader_epoch, again.log.end_offset) == (1, 0)


@pytest.mark.parametrize("process", ["this", "another"])
def test_a_partition_that_a_restore_took_comes_back_with_a_higher_leader_epoch(node, process):
    image = capture(node.cluster)
    topic = node.cluster.topics["t"]
    index = len(topic.partitions)
    node.cluster.topic_control.add_partitions(topic, index + 1)
    added = topic.partitions[index]
    other = next(n for n in added.replicas if n != added.leader_id)
    node.cluster.move_leader("t", index, other)
    assert added.leader_epoch == 1
    restore(node.cluster, image)
    cluster = node.cluster if process == "this" else moved(node).cluster
    assert len(cluster.topics["t"].partitions) == index
    cluster.topic_control.add_partitions(cluster.topics["t"], index + 1)
    assert cluster.topics["t"].partitions[index].leader_epoch == 2
    assert capture(cluster).settings.former_epochs == {}
    cluster.delete_topic("t")
    restore(cluster, image)
    assert cluster.topics["t"].partitions[0].leader_epoch == 3


def test_epochs_of_deleted_topics_are_not_used_again_by_another_process(node):
    image = capture(node.cluster)
    partition = node.cluster.topics["t"].partitions[0]
    other = next(n for n in partition.replicas if n != partition.leader_id)
    node.cluster.move_leader("t", 0, other)
    assert partition.leader_epoch == 1
    node.cluster.delete_topic("t")
    later = moved(moved(node)).cluster
    restore(later, image)
    assert later.topics["t"].partitions[0].leader_epoch == 2


def test_an_image_keeps_no_epochs_of_partitions_that_are_there(node):
    partition = node.cluster.topics["t"].partitions[0]
    image = capture(node.cluster)
    node.cluster.move_leader(
        "t", 0, next(n for n in partition.replicas if n != partition.leader_id)
    )
    node.cluster.delete_topic("t")
    restore(node.cluster, image)
    assert capture(node.cluster).settings.former_epochs == {}


def test_ids_are_never_used_again(node):
    cluster = node.cluster
    image = capture(cluster)
    topic_id = cluster.create_topic("later", 1, 1).topic_id
    producer_id = cluster.runtime.ids.producer_id(1)
    suffix = cluster.runtime.ids.member_suffix()
    restore(cluster, image)
    assert cluster.create_topic("later", 1, 1).topic_id != topic_id
    assert cluster.runtime.ids.producer_id(1) > producer_id
    assert cluster.runtime.ids.member_suffix() != suffix


def test_a_process_with_the_same_seed_continues_with_other_ids():
    first = Cluster(seed=5)
    ids = {first.create_topic(f"t{at}", 1, 1).topic_id for at in range(50)}
    producer_id = first.runtime.ids.producer_id(1)
    second = Cluster(seed=5)
    restore(second, loaded(whole(capture(first))))
    assert second.create_topic("new", 1, 1).topic_id not in ids
    assert second.runtime.ids.producer_id(1) > producer_id


def test_brokers_are_added_and_removed_with_the_snapshot(node):
    cluster = node.cluster
    seen: list[tuple[int, str]] = []
    cluster.on_broker_state.append(lambda broker: seen.append((broker.node_id, broker.state)))
    cluster.add_broker(4, "d")
    cluster.stop_broker(2, UNCLEAN)
    cluster.pause_broker(3)
    image = capture(cluster)
    cluster.remove_broker(4)
    cluster.start_broker(2)
    cluster.resume_broker(3)
    cluster.add_broker(9)
    seen.clear()
    restore(cluster, image)
    assert sorted(cluster.brokers) == [1, 2, 3, 4]
    states = {n: broker.state for n, broker in cluster.brokers.items()}
    assert states == {1: "running", 2: "stopped", 3: "paused", 4: "running"}
    assert {(9, "removed"), (2, "stopped"), (3, "paused"), (4, "running")} <= set(seen)
    assert cluster.brokers[4].rack == "d"
    assert cluster.brokers[2].fenced
    assert not cluster.brokers[3].fenced
    node.advance(cluster.config_int("broker.session.timeout.ms"))
    assert cluster.brokers[3].fenced  # its session went on to run out


@pytest.mark.parametrize("in_another_process", [False, True])
def test_brokers_without_a_registration_are_restored_without_it(node, in_another_process):
    """One that runs and one that is stopped; both register when they are started."""
    cluster = node.cluster
    for node_id in (2, 3):
        cluster.controller.unregister(cluster.brokers[node_id])
    cluster.stop_broker(3)
    image = capture(cluster)
    if in_another_process:
        before = cluster_state(cluster)
        cluster = revived(loaded(whole(image)))
        assert cluster_state(cluster) == before
    else:
        cluster.stop_broker(2)
        for node_id in (2, 3):
            cluster.start_broker(node_id)
        restore(cluster, image)
    assert sorted(cluster.brokers) == [1]
    states = {each.node_id: (each.state, each.fenced) for each in cluster.processes.values()}
    assert states == {1: ("running", False), 2: ("running", True), 3: ("stopped", True)}
    cluster.start_broker(3)
    assert sorted(cluster.brokers) == [1, 3]


def test_a_broker_registers_again_with_a_snapshot_of_before(node):
    cluster = node.cluster
    image = capture(cluster)
    cluster.controller.unregister(cluster.brokers[2])
    restore(cluster, image)
    assert sorted(cluster.brokers) == sorted(cluster.processes) == [1, 2, 3]
    assert not cluster.brokers[2].fenced


def test_rules_end_with_a_restore(node):
    cluster = node.cluster
    cluster.lag_follower("t", 0, node=2)
    cluster.cut_network(3)
    image = capture(cluster)
    restore(cluster, image)
    assert not cluster.replication.network.cut_links
    node.advance(1000)
    assert not cluster.brokers[3].fenced
    partition = cluster.topics["t"].partitions[0]
    node.advance(60_000)
    assert sorted(partition.isr) == [1, 2, 3]
    assert not partition.own_replicas


def test_a_restore_removes_cuts_and_delays(node):
    cluster = node.cluster
    image = capture(cluster)
    cluster.delay_network(1, by_ms=400)
    cluster.cut_network(3, both_ways=False)
    restore(cluster, image)
    assert cluster.replication.network.is_quiet
    assert not cluster.topics["t"].partitions[0].own_replicas


def test_a_snapshot_has_the_high_watermark_of_a_leader_with_an_older_image(node):
    cluster = node.cluster
    assert cluster.controller_id == 1
    cluster.create_topic("u", assignments={0: [2, 3]})
    cluster.cut_network(2, to=1, fence_after_ms=35_000)
    cluster.stop_broker(3, "controlled")  # the leader does not hear that the ISR is [2]
    node.produce(batch_of(b"one"), topic="u", broker=2)
    cluster.start_broker(3)
    node.advance(1000)
    assert cluster.processes[2].image.partition("u", 0).high_watermark == 1
    image = capture(cluster)
    (saved,) = next(topic.partitions for topic in image.topics if topic.name == "u")
    assert image.logs[saved.log_id].high_watermark == 1


@pytest.mark.parametrize("way", ["slow", "cut"])
def test_earlier_fetches_do_not_count_after_a_restore(node, way):
    """The follower had fetched more by then than it has in the snapshot."""
    cluster = node.cluster
    partition = cluster.topics["t"].partitions[0]
    leader = partition.leader_id
    follower = next(n for n in partition.replicas if n != leader)
    cluster.stop_broker(follower, "unclean")
    node.produce(batch_of(b"one"), broker=leader)
    image = capture(cluster)
    cluster.start_broker(follower)
    node.advance(2000)
    if way == "slow":
        cluster.delay_network(follower, to=leader, by_ms=400)
    else:
        cluster.cut_network(follower, to=leader)
    node.advance(100)  # it has asked for what comes at its log end
    restore(cluster, image)
    node.advance(5000)
    again = cluster.topics["t"].partitions[0]
    assert again.leader_epoch == partition.leader_epoch
    assert again.own_replicas[follower].log.end_offset == 0
    assert again.followers[follower].fetched_offset == -1


def test_a_follower_that_lagged_catches_up_after_the_restore(node):
    partition = node.cluster.topics["t"].partitions[0]
    lagging = next(n for n in partition.replicas if n != partition.leader_id)
    node.cluster.stop_broker(lagging, UNCLEAN)
    node.produce(batch_of(b"one"), broker=partition.leader_id)
    other = moved(node)
    again = other.cluster.topics["t"].partitions[0]
    assert again.own_replicas[lagging].log.end_offset == 0
    other.cluster.start_broker(lagging)
    other.advance(2000)
    assert sorted(again.isr) == [1, 2, 3]
    assert not again.own_replicas


def test_groups_and_their_offsets_come_from_the_log(node):
    commit = commit_request({("t", 1): 7})
    node.ask(commit, broker=node.group_coordinator_of("g"))
    for place in (moved(node), node):
        if place is node:
            restore(node.cluster, capture(node.cluster))
            node.settle()
        answer = place.ask(fetch_request({"t": [1]}), broker=place.group_coordinator_of("g"))
        (found,) = answer.groups[0].topics[0].partitions
        assert found.committed_offset == 7


def test_a_stable_group_continues_under_its_generation():
    node = TxnNode()  # one broker, which coordinates everything
    (member,) = node.stable("g")
    generation = node.shard("g").groups["g"].generation
    other = TxnNode()
    image = loaded(whole(capture(node.cluster)))
    other.cluster = revived(image, now_ms=lambda: other.now_ms)
    other.settle()
    beat = other.ask(heartbeat_request("g", member, generation))
    assert beat.error_code == 0


def test_an_open_transaction_can_be_ended_after_the_restore(node):
    txn = node.txn("x")
    assert txn.add(0) == 0
    assert txn.produce([b"open"]).error_code == 0
    other = moved(node)
    partition = other.cluster.topics["t"].partitions[0]
    assert partition.last_stable_offset == 0 < partition.high_watermark
    again = Txn(other, "x")
    again.pid, again.epoch = txn.pid, txn.epoch
    assert again.state == "Ongoing"
    assert again.produce([b"more"], 1).error_code == 0
    assert again.end().error_code == 0
    other.advance(1000)
    assert other.words() == ["open", "more", "COMMIT"]
    assert again.state == "CompleteCommit"


def test_a_decided_transaction_end_is_completed(node):
    txn = node.txn("x")
    assert txn.add(0) == 0
    assert txn.produce([b"v"]).error_code == 0
    assert txn.end().error_code == 0  # its markers are still on their way
    assert node.words() == ["v"]
    other = moved(node)
    other.advance(1000)
    assert other.words() == ["v", "COMMIT"]


def test_a_restore_releases_the_markers_that_an_action_withheld(node):
    image = capture(node.cluster)
    node.cluster.hang_transaction("x")
    restore(node.cluster, image)
    txn = node.txn("x")
    assert txn.add(0) == 0
    assert txn.produce([b"v"]).error_code == 0
    assert txn.end().error_code == 0
    node.settle()
    assert node.words() == ["v", "COMMIT"]


def test_a_restore_resets_the_fetch_positions_of_queries(node):
    image = capture(node.cluster)
    request = consumer_fetch(node.cluster, [("t", 0, 7)], version=12)
    node.cluster.brokers[1].fetch_positions.record("consumer-s-executor-1", request, by_id=False)
    assert fetch_lag_views(node.cluster) != []
    restore(node.cluster, image)
    assert fetch_lag_views(node.cluster) == []


def test_heartbeats_are_sent_by_the_brokers_of_the_snapshot(node):
    """As long as the journal records hops."""
    cluster = node.cluster
    image = capture(cluster)
    cluster.remove_broker(3)
    journal = Journal(lambda: 0, hops=True)
    cluster.keep_journal(journal)
    restore(cluster, image)
    node.advance(10_000)
    _, entries = journal.since(0)
    hops = [entry for entry in entries if isinstance(entry, HopEntry) and not entry.request_seq]
    senders = {hop.sender for hop in hops if hop.api_key == ApiKey.BROKER_HEARTBEAT}
    assert {2, 3} <= senders


def test_a_producer_continues_with_its_sequence(node):
    leader = leader_of(node)
    producer = {"producer_id": 5, "producer_epoch": 0}
    assert only(node.produce(batch_of(b"0", base_sequence=0, **producer), broker=leader))
    other = moved(node)

    def produce(sequence: int) -> Any:
        batch = batch_of(b"%d" % sequence, base_sequence=sequence, **producer)
        return only(other.produce(batch, broker=leader))

    assert produce(0).base_offset == 0  # a retry
    assert produce(1).base_offset == 1
    assert produce(7).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_resumed_producers_continue_at_their_present_sequence(node):
    """What was acknowledged is gone; what still waited for a follower is sent again."""
    leader = leader_of(node)

    def produce(sequence: int) -> Any:
        batch = batch_of(b"%d" % sequence, base_sequence=sequence, producer_id=5, producer_epoch=0)
        return node.produce(batch, broker=leader)

    def error_of(sequence: int) -> int:
        return only(produce(sequence)).error_code

    assert error_of(0) == 0
    image = capture(node.cluster)
    assert error_of(1) == 0
    for follower in set(node.cluster.topics["t"].partitions[0].replicas) - {leader}:
        node.cluster.lag_follower("t", 0, node=follower)
    parked = produce(2)
    restore(node.cluster, image, RESUME)
    assert only(done(parked)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [error_of(3), error_of(2), error_of(3)] == [
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        0,
        0,
    ]
    assert node.words() == ["0", "2", "3"]
    node.cluster.delete_topic("t")
    restore(node.cluster, image, RESUME)
    assert error_of(9) == 0


def test_producers_resume_on_the_logs_of_followers_too(node):
    """A follower that lagged leads after the restore, and takes what comes next."""
    cluster = node.cluster
    leader = leader_of(node)
    follower = next(n for n in cluster.topics["t"].partitions[0].replicas if n != leader)

    def error_of(sequence: int) -> int:
        batch = batch_of(b"v", base_sequence=sequence, producer_id=5, producer_epoch=0)
        return only(node.produce(batch, broker=leader_of(node), acks=1)).error_code

    assert error_of(0) == 0
    cluster.stop_broker(follower, UNCLEAN)
    image = capture(cluster)
    assert [error_of(1), error_of(2)] == [0, 0]
    restore(cluster, image, RESUME)
    own = cluster.topics["t"].partitions[0].own_replicas[follower]
    assert own.log.producers.entries[5].last_sequence == 2
    assert error_of(3) == 0


def test_a_cleared_cluster_has_its_brokers_and_nothing_else(node):
    node.txn("x")
    clear(node.cluster)
    assert not node.cluster.topics
    assert not node.cluster.topics_by_id
    assert sorted(node.cluster.brokers) == [1, 2, 3]
    node.topic("t")
    assert only(node.produce(batch_of(b"v"), broker=leader_of(node))).error_code == 0


def test_a_cluster_of_another_release_is_refused(node):
    image = capture(node.cluster)
    older = Cluster(seed=1, kafka_version="3.9")
    older.create_topic("kept", 1, 1)
    with pytest.raises(RestoreError, match=r"plays Kafka 4\.3; this one plays 3\.9"):
        restore(older, image)
    assert "kept" in older.topics


def test_a_change_of_features_raises_their_epoch(node):
    image = capture(node.cluster)
    node.cluster.features.set_levels({"transaction.version": 1})
    epoch = node.cluster.features.epoch
    restore(node.cluster, image)
    assert node.cluster.features.level("transaction.version") == 2
    assert node.cluster.features.epoch > epoch


def test_an_offline_directory_stays_offline():
    node = TxnNode(configs={"log.dirs": "/a,/b"}, racks=[None, None])
    node.topic("d", 4)
    node.cluster.fail_log_dir(1, "/a")
    before = cluster_state(node.cluster)
    other = revived(loaded(whole(capture(node.cluster))))
    assert cluster_state(other) == before
    assert other.brokers[1].log_dirs.failed == {"/a"}
