"""Followers with a log of their own: their records, the leader's state of them, and waiting
requests.
"""

from __future__ import annotations

import pytest

from mockbroker.core.events import IsrChanged, WatermarkMoved
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.support.hops import add_hop_rule, remove_rule
from tests.support.replicas import Replicas, error_of, waiting
from tests.support.requests import done, only

STEPWISE = {"mockbroker.replication": "stepwise"}
LAG_MS = 30_000  # replica.lag.time.max.ms


def values(begin: int, end: int) -> list[str]:
    return [str(n) for n in range(begin, end)]


# -- high watermark --------------------------------------------------------------------------------


@pytest.mark.covers("S1", "S2")
def test_consumers_read_up_to_the_smallest_log_end_of_the_isr():
    """Followers stand at 115 and 116, the leader ends at 120: 115 to 119 wait to be seen."""
    node = Replicas()
    node.sent(*values(0, 115))
    node.hold(2)
    node.send("115", acks=1)
    node.settle()
    node.hold(3)
    node.send(*values(116, 120), acks=1)
    node.settle()
    assert node.ends() == {1: 120, 2: 115, 3: 116}
    assert node.partition.high_watermark == 115
    assert node.read() == " ".join(values(0, 115))
    assert node.read(115) == ""
    node.release(2, 3)
    node.settle()
    assert node.ends() == {1: 120, 2: 120, 3: 120}
    assert node.high_watermarks() == {1: 120, 2: 120, 3: 120}
    assert node.read(115) == " ".join(values(115, 120))
    assert node.with_own_replica() == []


@pytest.mark.covers("S3")
def test_followers_get_the_high_watermark_with_the_answer_to_their_next_fetch():
    """The leader's watermark moves by that fetch; its answer comes after 500 ms at the latest."""
    node = Replicas(configs=STEPWISE)
    answer = node.send("m1")
    assert node.high_watermarks() == {1: 0, 2: 0, 3: 0}
    node.settle()
    assert not waiting(answer)
    assert node.ends() == {1: 1, 2: 1, 3: 1}
    assert node.high_watermarks() == {1: 1, 2: 0, 3: 0}
    node.advance(499)
    assert node.high_watermarks() == {1: 1, 2: 0, 3: 0}
    node.advance(1)
    assert node.high_watermarks() == {1: 1, 2: 1, 3: 1}


@pytest.mark.covers("S3")
def test_the_next_records_have_the_watermark_of_the_former_ones():
    node = Replicas(configs=STEPWISE)
    node.sent("m1")
    node.sent("m2")
    assert node.high_watermarks() == {1: 2, 2: 1, 3: 1}
    node.hold(2)
    node.advance(10_000)
    assert node.high_watermarks() == {1: 2, 2: 1, 3: 2}


def test_a_cluster_at_rest_sets_no_timers():
    """A parked fetch that nothing is to be told of costs nothing."""
    node = Replicas(configs=STEPWISE)
    node.sent("m1")
    node.advance(1000)
    deadline = node.cluster.runtime.timers.deadline_ms()
    assert deadline is None or deadline > node.now_ms + 5000


def test_a_follower_serves_consumers_up_to_its_own_high_watermark():
    node = Replicas(configs=STEPWISE)
    node.sent("m1")
    assert (node.read(), node.read(broker=2)) == ("m1", "")
    parked = node.fetch(("t", 0, 0), broker=2, max_wait_ms=5000)
    assert waiting(parked)
    node.advance(500)
    assert len(done(parked).responses) == 1
    assert node.read(broker=2) == "m1"


def test_moves_of_watermarks_are_events():
    node = Replicas(configs=STEPWISE)
    node.sent("m1")
    node.advance(500)
    told = [e for e in node.events if isinstance(e, WatermarkMoved)]
    assert [(e.node_id, e.former, e.high_watermark) for e in told] == [
        (1, 0, 1),
        (2, 0, 1),
        (3, 0, 1),
    ]


# -- acks ------------------------------------------------------------------------------------------


@pytest.mark.covers("S52")
@pytest.mark.parametrize("min_isr", ["1", "2"])
def test_acks_all_waits_for_every_member_of_the_isr(min_isr):
    """One follower gets its data 700 ms late; min.insync.replicas does not shorten that."""
    node = Replicas(min_insync_replicas=min_isr)
    node.cluster.lag_follower("t", 0, node=3, by_ms=700)
    node.settle()
    assert error_of(node.send("quick", acks=1)) == 0
    slow = node.send("slow", timeout_ms=5000)
    node.advance(699)
    assert waiting(slow)
    # The first record was on its way already; the second one takes a fetch of its own.
    node.advance(1)
    assert waiting(slow)
    node.advance(700)
    assert error_of(slow) == 0
    alone = node.send("alone")
    node.advance(699)
    assert waiting(alone)
    node.advance(1)
    assert error_of(alone) == 0


@pytest.mark.covers("S53")
def test_too_small_an_isr_refuses_acks_all_before_anything_is_appended():
    node = Replicas(min_insync_replicas="2")
    node.cluster.stop_broker(2)
    assert node.sent("a").error_code == 0
    node.cluster.stop_broker(3)
    assert error_of(node.send("b")) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert node.partition.log_end_offset == 1
    assert error_of(node.send("c", acks=1)) == 0
    assert (node.partition.log_end_offset, node.partition.high_watermark) == (2, 1)
    node.cluster.start_broker(3)
    node.settle()
    assert node.partition.high_watermark == 2


@pytest.mark.covers("S53")
def test_an_isr_that_shrinks_below_the_minimum_while_acks_all_waits_ends_in_a_timeout():
    """The watermark stands still then (KIP-966): 7 with the offset, and the record stays. In a
    row of the checklist it is 20, as before Kafka 3.7.
    """
    node = Replicas(2, min_insync_replicas="2")
    node.hold(2)
    answer = node.send("a", timeout_ms=60_000)
    node.advance(30_000)
    assert node.partition.isr == [1]
    assert waiting(answer)
    node.advance(30_000)
    told = only(answer)
    assert (told.error_code, told.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert node.content(1) == "a"


@pytest.mark.covers("S54")
@pytest.mark.parametrize(("brokers", "error"), [(3, 0), (2, ErrorCode.NOT_ENOUGH_REPLICAS)])
def test_with_more_replicas_than_the_minimum_a_broker_may_stop(brokers, error):
    node = Replicas(brokers, min_insync_replicas="2")
    node.cluster.stop_broker(brokers, "unclean")
    assert error_of(node.send("a")) == error


# -- in and out of the ISR -------------------------------------------------------------------------


@pytest.mark.covers("S55")
def test_the_isr_shrinks_and_grows_as_in_the_log_of_a_real_cluster():
    """Leader 3, ISR 3,1,4 -> 3 with HW 115 and LEO 120, and 3 -> 3,4 after 242 ms; 1 stays out."""
    node = Replicas(4, replicas=[3, 1, 4])
    node.sent(*values(0, 115))
    node.hold(1)
    node.send("115", acks=1)
    node.settle()
    node.hold(4)
    node.send(*values(116, 120), acks=1)
    node.advance(30_000)
    node.advance(242)
    node.release(4)
    node.settle()
    assert node.partition.isr == [3, 4]
    shrunk, grown = (e for e in node.events if isinstance(e, IsrChanged))
    assert (shrunk.former, shrunk.isr) == ((3, 1, 4), (3,))
    assert (shrunk.high_watermark, shrunk.log_end_offset) == (115, 120)
    assert grown.at_ms - shrunk.at_ms == 242
    assert (grown.former, grown.isr, grown.high_watermark) == ((3,), (3, 4), 120)
    assert node.leadership() == (3, 0, [3, 4])
    node.advance(100_000)
    assert node.partition.isr == [3, 4]


def test_the_event_of_a_shrinking_isr_has_the_former_watermark():
    node = Replicas()
    node.hold(2)
    node.send("a", acks=1)
    node.advance(30_000)
    (shrunk,) = (e for e in node.events if isinstance(e, IsrChanged))
    assert (shrunk.high_watermark, shrunk.log_end_offset, shrunk.reason) == (0, 1, "lagging")


@pytest.mark.covers("S56")
def test_a_silent_follower_leaves_the_isr_and_comes_back_when_it_has_caught_up():
    node = Replicas(configs={"replica.lag.time.max.ms": "2000"})
    node.hold(3)
    node.send("a", acks=1)
    node.advance(1999)
    assert node.partition.isr == [1, 2, 3]
    node.advance(1)
    assert node.partition.isr == [1, 2]
    node.release(3)
    node.settle()
    assert (node.partition.isr, node.with_own_replica()) == ([1, 2, 3], [])


def test_a_follower_at_the_logs_end_is_not_late_however_long_it_was_silent():
    node = Replicas()
    node.hold(3)
    node.advance(100_000)
    assert node.partition.isr == [1, 2, 3]
    node.send("a", acks=1)
    node.settle()
    assert node.partition.isr == [1, 2], "the last time it was caught up is long ago now"


def test_a_follower_that_waits_for_records_is_caught_up_all_the_time():
    node = Replicas(configs=STEPWISE)
    node.advance(100_000)
    node.sent("a")
    assert node.isr_changes() == []


def test_a_follower_that_never_catches_up_leaves_although_it_fetches():
    """It is always one answer behind: caught up is who was at the end at the time of a fetch."""
    node = Replicas(configs={"replica.lag.time.max.ms": "2000"})
    node.cluster.lag_follower("t", 0, node=3, by_ms=3000)
    node.settle()
    for second in range(4):
        node.send(str(second), acks=1)
        node.advance(1000)
    assert node.partition.isr == [1, 2]


def test_slow_links_between_brokers_delay_acks():
    node = Replicas()
    node.cluster.replication.network.delay([(2, 1), (1, 2)], 20)
    node.cluster.replication.links_changed()
    node.advance(100)
    answer = node.send("a")
    node.advance(39)
    assert waiting(answer)
    node.advance(1)
    assert error_of(answer) == 0


# -- purgatory -------------------------------------------------------------------------------------


@pytest.mark.covers("S76")
def test_the_fetch_that_moves_the_watermark_wakes_all_that_wait_for_it():
    """A Produce, a Fetch and a DeleteRecords: none of them waits for its timeout."""
    node = Replicas(configs=STEPWISE)
    node.sent("a")
    node.advance(1000)
    node.hold(2)
    produce = node.send("b", timeout_ms=60_000)
    fetch = node.fetch(("t", 0, 1), max_wait_ms=60_000)
    delete = done_later(node, offset=1)
    node.advance(1000)
    assert waiting(produce)
    assert waiting(fetch)
    assert waiting(delete)
    before_ms = node.now_ms
    node.release(2)
    node.settle()
    assert error_of(produce) == 0
    assert done(fetch).responses[0].partitions[0].high_watermark == 2
    assert done(delete).topics[0].partitions[0].low_watermark == 1
    assert node.now_ms == before_ms


def done_later(node: Replicas, offset: int):
    """A DeleteRecords that waits for its replicas."""
    from mockbroker.handlers.delete_records import delete_records

    request = DeleteRecordsRequest(
        [DeleteRecordsTopic("t", [DeleteRecordsPartition(0, offset)])], 60_000
    )
    assert ApiKey.DELETE_RECORDS == 21
    return delete_records(node.ctx(2), request)


@pytest.mark.covers("S5")
def test_deleted_records_go_everywhere():
    node = Replicas(configs=STEPWISE)
    node.sent("a", "b", "c")
    node.advance(1000)
    node.partition.delete_records(2)
    assert (node.starts(), node.partition.low_watermark) == ({1: 2, 2: 0, 3: 0}, 0)
    node.advance(500)
    assert (node.starts(), node.partition.low_watermark) == ({1: 2, 2: 2, 3: 2}, 2)


# -- fetching above the watermark ------------------------------------------------------------------


@pytest.mark.covers("S57")
def test_a_replica_reads_what_consumers_do_not_see_yet():
    """Up to the log end, open transactions included; ordinary consumers stop at the watermark."""
    node = Replicas()
    node.sent("a")
    node.hold(2)
    node.send("b", "c", acks=1)
    as_replica = node.fetched(("t", 0, 0), replica_id=3, isolation_level=0)
    assert len(b"".join(as_replica.records)) > 0
    assert as_replica.high_watermark == 1
    assert node.read() == "a"


# -- rules -----------------------------------------------------------------------------------------


def test_a_lag_continues_after_a_change_of_leaders():
    node = Replicas()
    node.hold(3)
    node.cluster.move_leader("t", 0, 2)
    node.send("a", acks=1)
    node.settle()
    assert node.ends() == {1: 1, 2: 1, 3: 0}


def test_a_lost_fetch_is_repeated_after_the_socket_timeout():
    node = Replicas(configs=STEPWISE | {"replica.lag.time.max.ms": "90000"})
    rule = add_hop_rule(node.cluster, {"drop_reply": {}}, api="Fetch", from_broker=2)
    node.send("a", acks=1)  # answers the fetch that was under way before the rule came
    node.settle()
    node.send("b", acks=1)
    node.settle()
    assert node.ends() == {1: 2, 2: 1, 3: 2}
    remove_rule(node.cluster, rule)
    node.advance(29_999)
    assert node.ends()[2] == 1
    node.advance(1)
    assert node.ends()[2] == 2


def test_an_answer_about_the_isr_that_comes_after_the_leadership_starts_nothing():
    """Else a former leader would ask the controller again and again."""
    node = Replicas(replicas=[2, 3])
    rule = add_hop_rule(node.cluster, {"drop_request": {}}, api="AlterPartition")
    node.hold(3)
    node.sent("a", acks=1)
    replication, partition = node.cluster.replication, node.partition
    lag_ms = node.cluster.config_int("replica.lag.time.max.ms")
    node.advance(lag_ms)
    assert rule.hits == 1
    replication.forget(partition)
    node.advance(2 * node.cluster.config_int("controller.socket.timeout.ms"))
    assert (rule.hits, list(partition.isr_in_flight)) == (1, [])


def test_a_fetch_of_a_process_that_has_ended_lets_no_other_into_the_isr():
    """The process that follows may have lost the records that the former one had: it has to ask."""
    node = Replicas(replicas=[2, 3, 1])
    node.hold(1)  # so the leader has a follower with a replica of its own all the time
    node.cluster.delay_network(2, 3, by_ms=1)
    node.send("a", acks=1)
    node.advance(100)
    node.cluster.stop_broker(3, "unclean")  # while its fetch waits at the leader
    node.cluster.heal_network()
    node.cluster.start_broker(3)
    node.advance(1_000)
    assert (3 in node.partition.isr, node.with_own_replica()) == (True, [1])
    node.cluster.stop_broker(3, "power_loss")
    node.cluster.start_broker(3)
    assert 3 not in node.partition.isr
    node.advance(1_000)
    assert (3 in node.partition.isr, node.content(3)) == (True, "a")


def test_the_high_watermark_waits_for_a_request_that_the_controller_may_still_carry_out():
    """AlterPartition is on its way for longer than controller.socket.timeout.ms. The follower that
    it adds to the ISR lags by then; when it leads, it has every acknowledged record.
    """
    node = Replicas(replicas=[2, 3], configs={"replica.lag.time.max.ms": "1000"})
    node.cluster.stop_broker(3, "unclean")
    node.sent("a")
    node.cluster.delay_network(2, to=1, by_ms=40_000, both_ways=False)
    node.cluster.start_broker(3)
    node.advance(35_000)
    assert list(node.partition.isr_in_flight) == [2, 3]
    node.cluster.lag_follower("t", 0, node=3)
    node.advance(2_000)
    answer = node.send("b", timeout_ms=60_000)
    assert not answer.done
    node.advance(4_000)
    assert node.partition.isr == [2, 3]
    node.cluster.stop_broker(2, "unclean")
    assert (node.partition.leader_id, error_of(answer)) == (3, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_former_leader_refuses_the_fetches_that_wait_there():
    """A follower that does not know the new leader yet repeats its fetch after the backoff."""
    node = Replicas(4, replicas=[2, 3, 4])
    rule = add_hop_rule(node.cluster, {"observe": {}}, api="Fetch", from_broker=3)
    node.sent("a")
    node.cluster.cut_network(1, 3)
    hits = rule.hits
    node.cluster.move_leader("t", 0, 4)
    node.advance(node.cluster.config_int("replica.fetch.backoff.ms"))
    assert rule.hits > hits


def test_a_request_for_another_isr_is_sent_until_it_is_answered():
    node = Replicas(replicas=[2, 3])
    node.cluster.stop_broker(3, "unclean")
    rule = add_hop_rule(node.cluster, {"drop_request": {}}, {"times": 2}, api="AlterPartition")
    node.cluster.start_broker(3)
    node.advance(59_000)
    assert (rule.hits, node.partition.isr) == (2, [2])
    node.advance(2_000)
    assert node.partition.isr == [2, 3]


def test_a_change_of_the_isr_that_could_not_be_sent_is_requested_once_the_controller_is_back():
    """The leader's image is an old one by then, because of another topic."""
    node = Replicas(replicas=[2, 3])
    node.hold(3)
    node.cluster.cut_network(2, to=1, fence_after_ms=2 * LAG_MS)
    node.cluster.create_topic("other", assignments={0: [1]})
    node.send("a", acks=1)
    node.advance(LAG_MS)
    assert (list(node.partition.isr_in_flight), node.partition.isr) == ([2], [2, 3])
    node.cluster.heal_network()
    node.advance(LAG_MS)
    assert (list(node.partition.isr_in_flight), node.partition.isr) == ([], [2])


def test_a_paused_leader_removes_nobody_from_the_isr_before_it_is_resumed():
    node = Replicas(replicas=[2, 3])
    node.hold(3)
    node.send("a", acks=1)
    node.cluster.pause_broker(2, fence_after_ms=3 * LAG_MS)
    node.advance(2 * LAG_MS)
    assert (node.partition.isr, list(node.partition.isr_in_flight)) == ([2, 3], [])
    node.cluster.resume_broker(2)
    node.settle()
    assert node.partition.isr == [2]


def test_a_follower_joins_the_isr_once_it_has_all_that_the_leader_had_at_its_election():
    """Records of the epoch before may be above the leader's high watermark, and acknowledged."""
    node = Replicas(configs=STEPWISE, min_insync_replicas="2")
    node.sent("a")
    node.advance(1000)
    node.cluster.shrink_isr("t", 0, nodes=[3])
    node.sent("b")
    node.cluster.stop_broker(1, "unclean")
    assert (node.leadership(), node.high_watermarks()[2]) == ((2, 1, [2]), 1)
    node.cluster.delay_network(3, to=2, by_ms=100, both_ways=False)
    node.release(3)
    node.advance(199)
    assert node.partition.isr == [2]
    node.advance(1)
    assert (node.partition.isr, node.content(3)) == ([2, 3], "a b")


def test_each_follower_hears_of_the_watermark_at_the_end_of_its_own_wait():
    node = Replicas(configs=STEPWISE)
    node.advance(1)
    node.cluster.delay_network(3, to=1, by_ms=200, both_ways=False)
    node.advance(200)
    node.send("a", acks=1)
    node.advance(499)
    assert node.high_watermarks() == {1: 1, 2: 0, 3: 0}
    node.advance(1)
    assert node.high_watermarks() == {1: 1, 2: 1, 3: 0}
    node.advance(199)
    assert node.high_watermarks() == {1: 1, 2: 1, 3: 0}
    node.advance(1)
    assert node.high_watermarks() == {1: 1, 2: 1, 3: 1}


def test_a_follower_that_has_waited_long_hears_of_the_watermark_at_the_end_of_a_later_wait():
    """It stands for one that repeats its fetch every 500 ms."""
    node = Replicas(configs=STEPWISE)
    node.hold(3)
    node.send("a", acks=1)
    node.advance(1200)
    node.release(3)
    node.advance(299)
    assert node.high_watermarks() == {1: 1, 2: 0, 3: 0}
    node.advance(1)
    assert node.high_watermarks()[2] == 1


def test_followers_may_wait_for_no_time_at_all():
    node = Replicas(configs=STEPWISE | {"replica.fetch.wait.max.ms": "0"})
    node.sent("a")
    node.advance(1)
    assert node.high_watermarks() == {1: 1, 2: 1, 3: 1}


def test_a_deletion_is_answered_when_the_last_follower_has_the_new_log_start():
    """The high watermark stands still meanwhile."""
    node = Replicas(configs=STEPWISE)
    node.sent("a", "b")
    node.advance(1000)
    answer = done_later(node, offset=1)
    assert waiting(answer)
    node.advance(499)
    assert waiting(answer)
    node.advance(1)
    assert done(answer).topics[0].partitions[0].low_watermark == 1
