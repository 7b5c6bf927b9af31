"""Members that come back, are fenced, or lose their coordinator."""

from __future__ import annotations

from mockbroker import Cluster
from mockbroker_protocol import ApiKey, ErrorCode
from tests.support.member_process import MemberProcess
from tests.support.new_members import NewMembers, look
from tests.support.request_log import RequestLog
from tests.support.sessions import pass_half_sessions

SESSION_MS = 45_000  # by default


def test_a_static_member_restarts_without_a_rebalance(
    kafka: Cluster, members: NewMembers, log: RequestLog
) -> None:
    """It leaves with epoch -2, comes back under another id, and gets what it had."""
    one = members("g", "t", group_instance_id="one")
    two = members("g", "t", group_instance_id="two")
    owned = members.settle(one, two, partitions=4)
    before = look(kafka, "g")
    one.told()
    two.close()
    left = log.of(ApiKey.CONSUMER_GROUP_HEARTBEAT, client_id=two.name)[-1]
    assert left.request.member_epoch == -2
    again = members("g", "t", group_instance_id="two", client_id=two.name)
    assert members.settle(one, again, partitions=4) == owned
    after = look(kafka, "g")
    assert after.epoch == before.epoch
    assert after.members[two.name] != before.members[two.name]
    assert one.told() == []


def test_a_second_member_of_one_instance_does_not_get_in(
    kafka: Cluster, members: NewMembers, log: RequestLog
) -> None:
    """UNRELEASED_INSTANCE_ID, which librdkafka tells its application; the first one goes on."""
    first = members("g", "t", group_instance_id="only")
    members.settle(first, partitions=4)
    second = members("g", "t", group_instance_id="only")
    members.until(lambda: bool(second.errors))
    answers = log.of(ApiKey.CONSUMER_GROUP_HEARTBEAT, client_id=second.name)
    assert {answer.response.error_code for answer in answers} == {ErrorCode.UNRELEASED_INSTANCE_ID}
    members.settle(first, partitions=4)


def test_a_killed_member_is_out_after_its_session(
    kafka: Cluster, members: NewMembers, log: RequestLog
) -> None:
    stays = members("g", "t")
    members.settle(stays, partitions=4)
    with MemberProcess(
        kafka, "g", "t", group_protocol="consumer", heartbeat_interval_ms=None
    ) as killed:
        members.until(lambda: len(killed.owned) == 2)
        killed.kill()
        pass_half_sessions(kafka, log, ApiKey.CONSUMER_GROUP_HEARTBEAT, SESSION_MS)
        members.until(lambda: len(stays.owned) == 4)
    assert len(look(kafka, "g").members) == 1


def test_a_member_that_was_sent_away_joins_again(
    kafka: Cluster, members: NewMembers, log: RequestLog
) -> None:
    """Its session ended while it was thought to be silent: it loses everything and comes back."""
    one = members("g", "t")
    members.settle(one, partitions=4)
    kafka.clock.advance(46_000, extend_sessions=False)
    members.until(lambda: any(kind == "lost" for kind, _ in one.told()), "partitions lost")
    members.settle(one, partitions=4)
    errors = {
        answer.response.error_code
        for answer in log.of(ApiKey.CONSUMER_GROUP_HEARTBEAT, client_id=one.name)
    }
    assert ErrorCode.UNKNOWN_MEMBER_ID in errors


def test_members_outlive_their_coordinator(kafka: Cluster, members: NewMembers) -> None:
    """The next coordinator reads them back, with what they own, and nobody is told anything."""
    one, two = members("g", "t"), members("g", "t")
    owned = members.settle(one, two, partitions=4)
    before = look(kafka, "g")
    one.told()
    coordinator = kafka.call(
        lambda cluster: (
            cluster.topics["__consumer_offsets"]
            .partitions[cluster.find_coordinator_partition("g")]
            .leader_id
        )
    )
    kafka.broker(coordinator).stop()
    assert members.settle(one, two, partitions=4) == owned
    after = look(kafka, "g")
    assert (after.epoch, after.members) == (before.epoch, before.members)
    assert one.told() == []
