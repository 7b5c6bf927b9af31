"""What must hold when brokers lose the controller and find it again, whatever the moment."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ErrorCode
from tests.support.replicas import Replicas, error_of, waiting

DAY_MS = 86_400_000


def test_a_leader_cut_from_the_controller_alone_loses_nothing_that_it_acknowledged():
    """Its follower hears the controller, and fetches from it no longer once it has another leader:
    acks=all is not acknowledged then; what was acknowledged before is on both.
    """
    node = Replicas(replicas=[2, 3], min_insync_replicas="2")
    node.sent("a")
    node.cluster.cut_network(2, 1)
    node.settle()
    sent = node.send("x", broker=2, timeout_ms=5000)
    node.settle()
    node.advance(10_000)
    assert error_of(sent) == ErrorCode.REQUEST_TIMED_OUT
    node.cluster.heal_network()
    node.advance(60_000)
    assert node.contents() == {2: "a", 3: "a"}
    assert node.partition.isr == [2, 3]


def test_before_its_session_ends_a_leader_cut_from_the_controller_is_followed_as_ever():
    node = Replicas(replicas=[2, 3], min_insync_replicas="2")
    node.cluster.cut_network(2, 1, fence_after_ms=9000)
    sent = node.send("x", broker=2, timeout_ms=5000)
    node.settle()
    assert error_of(sent) == ErrorCode.NONE
    node.advance(9000)
    assert node.leadership() == (3, 1, [3])
    node.settle()
    assert node.content(3) == "x"
    node.cluster.heal_network()
    node.advance(60_000)
    assert node.contents() == {2: "x", 3: "x"}


def test_a_follower_cut_from_the_controller_alone_goes_on_fetching_and_is_not_in_the_isr():
    node = Replicas(replicas=[2, 3])
    node.cluster.cut_network(3, 1)
    node.settle()
    assert node.leadership() == (2, 0, [2])
    node.sent("x")
    node.settle()
    assert node.contents() == {2: "x", 3: "x"}
    node.advance(60_000)
    assert node.partition.isr == [2]
    node.cluster.heal_network()
    node.settle()
    assert node.partition.isr == [2, 3]


@pytest.mark.parametrize("how", ["unclean", "controlled"])
def test_a_broker_that_is_fenced_and_stopped_is_not_fenced_again_once_it_runs(how):
    node = Replicas()
    node.cluster.cut_network(3)
    assert node.cluster.brokers[3].fenced
    node.cluster.stop_broker(3, how, fence_after_ms=500)
    node.cluster.heal_network()
    node.cluster.start_broker(3)
    node.advance(3_600_000)
    assert not node.cluster.brokers[3].fenced
    assert node.partition.isr == [1, 2, 3]


def test_a_session_that_has_ended_by_a_pause_ends_no_second_time():
    node = Replicas()
    node.cluster.pause_broker(3, fence_after_ms=0)
    node.cluster.stop_broker(3, "unclean", fence_after_ms=500)
    node.cluster.start_broker(3)
    node.advance(3_600_000)
    assert not node.cluster.brokers[3].fenced


def test_a_session_that_is_running_out_ends_when_it_would_have_ended_anyway():
    """A cut of a paused broker gives it no more time."""
    node = Replicas()
    node.cluster.pause_broker(3, fence_after_ms=1000)
    node.advance(500)
    node.cluster.cut_network(3, fence_after_ms=9000)
    node.advance(499)
    assert not node.cluster.brokers[3].fenced
    node.advance(1)
    assert node.cluster.brokers[3].fenced


def test_followers_behind_a_slow_link_come_back_under_steady_load():
    """The high watermark waits for followers that are caught up and about to join the ISR."""
    node = Replicas(2, configs={"replica.lag.time.max.ms": "1000"})
    node.cluster.stop_broker(2)
    node.sent("a")
    node.cluster.delay_network(2, 1, by_ms=50)
    node.cluster.start_broker(2)
    count = 0
    while node.partition.isr != [1, 2]:
        node.send(f"v{count}")
        node.advance(20)
        count += 1
        assert count < 200, "out for good"


@pytest.mark.parametrize("replicas", [[1], [1, 2, 3]])
def test_what_an_orderly_stop_or_a_start_flushed_survives_the_loss_of_power(replicas):
    node = Replicas(replicas=replicas)
    node.sent("a")
    for node_id in replicas:
        node.cluster.stop_broker(node_id)
    for node_id in replicas:
        node.cluster.start_broker(node_id)
    node.settle()
    for node_id in replicas:
        node.cluster.stop_broker(node_id, "power_loss")
    for node_id in replicas:
        node.cluster.start_broker(node_id)
    node.settle()
    assert node.contents() == dict.fromkeys(replicas, "a")


def test_requests_for_the_controller_are_answered_once_it_is_back_or_after_a_minute():
    from mockbroker.handlers import load_all
    from mockbroker.handlers.base import APIS
    from mockbroker_protocol import ApiKey
    from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

    load_all()
    node = Replicas()
    create = APIS[ApiKey.CREATE_TOPICS].handle
    node.cluster.cut_network(3)

    def asked(name):
        return create(
            node.ctx(5, key=ApiKey.CREATE_TOPICS, broker=3),
            CreateTopicsRequest([CreatableTopic(name, 1, 1)]),
        )

    early, late = asked("early"), None
    node.advance(59_000)
    late = asked("late")
    assert waiting(early)
    node.advance(1_000)
    (topic,) = early.response.topics
    assert (topic.name, topic.error_code) == ("early", ErrorCode.REQUEST_TIMED_OUT)
    assert waiting(late)
    node.cluster.heal_network()
    (topic,) = late.response.topics
    assert (topic.name, topic.error_code) == ("late", ErrorCode.NONE)
    assert set(node.cluster.topics) == {"t", "late"}


def test_changes_made_meanwhile_apply_at_brokers_that_lost_the_controller():
    """Rules, the clock and the cause of what happens are no part of the metadata."""
    node = Replicas()
    node.cluster.cut_network(3)
    broker = node.cluster.processes[3]
    node.cluster.runtime.cause = "somebody"
    assert broker.services.runtime.cause == "somebody"
    epoch = broker.image.epoch
    node.cluster.create_topic("new", 1, 1)
    assert broker.image.epoch == epoch
    assert "new" not in broker.image.topics


def test_a_leader_that_is_elected_while_it_cannot_hear_begins_to_lead_when_it_hears():
    node = Replicas(replicas=[1, 2, 3])
    node.sent("a")
    node.cluster.cut_network(3, [1, 2], fence_after_ms=9000)
    node.cluster.move_leader("t", 0, 3)
    assert node.leadership()[:2] == (3, 1)
    sent = node.send("b", broker=3)
    assert error_of(sent) == ErrorCode.NOT_LEADER_OR_FOLLOWER, "it has not heard of it"
    node.cluster.heal_network()
    node.settle()
    assert node.sent("b").error_code == 0
    node.settle()
    assert node.contents() == {1: "a b", 2: "a b", 3: "a b"}


def test_a_broker_that_led_for_a_moment_and_wrote_nothing_follows_again():
    """Its epoch stands at its log end, and its leader knows nothing of it."""
    node = Replicas(2, replicas=[1, 2])
    node.sent("a")
    node.cluster.move_leader("t", 0, 2)
    node.cluster.cut_network(2, fence_after_ms=0)
    node.settle()
    node.sent("b", acks=1)
    node.cluster.heal_network()
    node.settle()
    assert node.contents() == {1: "a b", 2: "a b"}


def test_a_leader_of_a_partition_that_is_created_meanwhile_leads_when_it_hears():
    node = Replicas()
    node.cluster.cut_network(3, fence_after_ms=9000)
    node.cluster.create_topic("new", assignments={0: [3, 1, 2]})
    node.advance(100)
    node.cluster.heal_network()
    node.settle()
    (partition,) = node.cluster.topics["new"].partitions
    assert (partition.leader_id, partition.isr, partition.own_replicas) == (3, [3, 1, 2], {})


def test_a_question_that_is_lost_on_its_way_is_asked_again():
    """The link is cut and up again before the follower hears of either."""
    node = Replicas(2, configs={"mockbroker.replication": "stepwise"})
    node.settle()
    node.cluster.delay_network(1, 2, by_ms=50)
    node.send("a", acks=1)
    node.advance(10)
    node.cluster.stop_broker(1, "unclean", fence_after_ms=5000)
    node.advance(100)
    node.cluster.heal_network()
    node.cluster.start_broker(1)
    node.advance(60_000)
    assert node.partition.isr == [1, 2]
    assert len(set(node.contents().values())) == 1


def test_what_a_process_fetched_counts_for_no_other_one_of_its_broker():
    """It lost its power after it had fetched everything: it is in sync when it has it again."""
    node = Replicas(2, configs={"mockbroker.replication": "stepwise"})
    node.sent("a")
    node.settle()
    node.cluster.stop_broker(2, "power_loss")
    node.cluster.start_broker(2)
    assert (node.partition.isr, node.content(2)) == ([1], "")
    node.settle()
    assert (node.partition.isr, node.content(2)) == ([1, 2], "a")


def test_a_snapshot_of_a_broker_that_is_about_to_be_fenced_fences_none_that_is_heard_of_again():
    from mockbroker.core.snapshot.capture import capture
    from mockbroker.core.snapshot.restore import restore

    node = Replicas()
    node.cluster.cut_network(2, fence_after_ms=1000)
    image = capture(node.cluster)
    node.cluster.heal_network()
    restore(node.cluster, image)
    node.advance(60_000)
    assert not node.cluster.brokers[2].fenced


def test_a_question_of_a_connection_that_is_closed_replaces_no_newer_one():
    """The follower asked over a slow link, lost it, and asked anew over a fast one."""
    node = Replicas(2, configs={"mockbroker.replication": "stepwise"})
    node.settle()
    node.cluster.delay_network(2, 1, by_ms=1000)
    node.send("a", acks=1)
    node.advance(10)
    node.cluster.cut_network(2, 1, fence_after_ms=9000)
    node.cluster.heal_network()
    node.advance(5000)
    node.send("b", acks=1)
    node.advance(1000)
    assert node.contents() == {1: "a b", 2: "a b"}


def test_a_high_watermark_that_is_released_stays_while_nobody_leads():
    node = Replicas(2, min_insync_replicas="1")
    node.cluster.pause_broker(2)
    node.send("a", acks=1)
    node.cluster.hold_high_watermark("t", 0)
    node.cluster.drop_leader("t", 0)
    node.cluster.hold_high_watermark("t", 0, release=True)
    assert node.partition.high_watermark == 0


def test_the_last_stable_offset_is_held_within_the_log():
    node = Replicas()
    node.cluster.hold_last_stable_offset("t", 0)
    node.sent("a")
    node.cluster.delete_records("t", 0)
    assert (node.partition.log_start_offset, node.partition.last_stable_offset) == (1, 1)


def test_the_last_one_in_sync_leads_again_although_its_leadership_was_dropped():
    node = Replicas(2)
    node.sent("a")
    node.cluster.stop_broker(2)
    node.cluster.drop_leader("t", 0)
    node.cluster.stop_broker(1, "unclean")
    node.cluster.start_broker(1)
    assert (node.partition.leader_id, node.read()) == (1, "a")


def test_an_answer_to_a_replica_of_before_is_none_to_the_replica_of_now():
    """Broker 1 follows 2, leads without hearing of what 2 takes meanwhile, and follows 3."""
    node = Replicas(replicas=[2, 1, 3], configs={"mockbroker.replication": "stepwise"})
    node.settle()
    node.cluster.cut_network(1, 2, both_ways=False)
    node.settle()
    assert node.partition.leader_id == 1
    node.cluster.move_leader("t", 0, 3)
    node.send("lost", acks=1, broker=2)
    node.settle()
    assert node.content(1) == ""
    node.sent("kept", acks=1)
    node.cluster.heal_network()
    node.advance(2000)
    assert node.contents() == dict.fromkeys((2, 1, 3), "kept")


def test_a_replica_that_is_added_again_is_no_eligible_leader():
    """It was eligible before it lost its replica, and begins with nothing."""
    from mockbroker.core.replication.reassignment import reassign

    node = Replicas(min_insync_replicas="2")
    node.cluster.create_topic("first", assignments={0: [1, 2, 3]})
    node.sent("a")
    node.cluster.stop_broker(3)
    node.cluster.stop_broker(2)
    assert node.partition.elr == (2,)
    for target in ([1], [1, 2]):
        reassign(node.cluster.replication_control, "t", 0, target, may_change_factor=True)
    node.cluster.stop_broker(1, "unclean")
    assert 2 not in node.partition.elr
    node.cluster.start_broker(2)
    assert node.partition.leader_id == -1
    node.cluster.start_broker(1)
    assert (node.partition.leader_id, node.read()) == (1, "a")


def test_a_paused_broker_elects_no_controller():
    node = Replicas(4)
    node.cluster.pause_broker(1, fence_after_ms=0)
    node.cluster.pause_broker(2, fence_after_ms=0)
    node.cluster.cut_network([3, 4], [1, 2])
    assert node.cluster.controller_id in (3, 4)


def test_a_partition_that_is_created_again_after_a_restore_has_another_epoch():
    from mockbroker.core.snapshot.capture import capture
    from mockbroker.core.snapshot.restore import restore

    node = Replicas()
    image = capture(node.cluster)
    node.cluster.topic_control.add_partitions(node.cluster.topics["t"], 2, [[3, 1, 2]])
    restore(node.cluster, image)
    node.cluster.topic_control.add_partitions(node.cluster.topics["t"], 2, [[1, 2, 3]])
    assert node.cluster.topics["t"].partitions[1].leader_epoch == 1


def test_a_leader_without_the_controller_that_loses_its_power_takes_its_watermark_along():
    node = Replicas(2, replicas=[2, 1])
    node.sent("a")
    node.cluster.cut_network(2)
    node.cluster.drop_leader("t", 0)
    node.cluster.stop_broker(2, "power_loss")
    (partition,) = node.cluster.topics["t"].partitions
    assert partition.high_watermark <= partition.log_end_offset


def test_a_broker_that_is_added_under_the_id_of_a_removed_one_is_no_eligible_leader():
    node = Replicas(min_insync_replicas="2")
    node.sent("a")
    node.cluster.stop_broker(1)
    node.cluster.stop_broker(3, "power_loss")
    assert node.partition.elr == (3,)
    node.cluster.remove_broker(3)
    node.cluster.stop_broker(2)
    node.cluster.add_broker(3)
    assert node.partition.leader_id == -1
    node.cluster.start_broker(2)
    assert (node.partition.leader_id, node.read()) == (2, "a")
