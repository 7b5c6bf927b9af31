"""Clients that come back: static members, restarts that meet the old member."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from mockbroker import Cluster
from mockbroker_protocol import ApiKey, ErrorCode
from tests.support.member_process import MemberProcess
from tests.support.members import Members, look
from tests.support.request_log import RequestLog

PATIENT = {"session_timeout_ms": 60_000}


@pytest.mark.covers("S216")
def test_a_static_member_restarts_without_a_rebalance(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Same partitions, same generation, and the other member is told nothing."""
    one = members("g", "t", group_instance_id="one", **PATIENT)
    two = members("g", "t", group_instance_id="two", **PATIENT)
    owned = members.settle(one, two, partitions=4)
    generation = look(kafka, "g").generation
    one.told()
    two.close()
    assert log.of(ApiKey.LEAVE_GROUP) == []
    again = members("g", "t", group_instance_id="two", client_id=two.name, **PATIENT)
    assert members.settle(one, again, partitions=4) == owned
    assert look(kafka, "g").generation == generation
    assert one.told() == []


@pytest.mark.covers("S216")
def test_a_static_member_that_stays_away_is_out_after_its_session(
    kafka: Cluster, members: Members
) -> None:
    """Killed or closed, its partitions wait for it, but not longer than its session."""
    stays = members("g", "t", session_timeout_ms=600_000, max_poll_interval_ms=600_000)
    with MemberProcess(kafka, "g", "t", group_instance_id="away", **PATIENT) as away:
        members.until(lambda: len(away.owned) == 2 and len(stays.owned) == 2)
        generation = look(kafka, "g").generation
    # It was closed, which says nothing to the cluster.
    kafka.clock.advance("30s", only="group:g", extend_sessions=False)
    assert (look(kafka, "g").generation, len(look(kafka, "g").owned)) == (generation, 2)
    kafka.clock.advance("31s", only="group:g", extend_sessions=False)
    members.settle(stays, partitions=4)
    assert look(kafka, "g").generation == generation + 1


@pytest.mark.covers("S216")
def test_the_second_of_two_static_members_of_one_name_fences_the_first(
    kafka: Cluster, members: Members
) -> None:
    """FENCED_INSTANCE_ID is fatal to the first; the second has its partitions."""
    first = members("g", "t", group_instance_id="only", **PATIENT)
    members.settle(first, partitions=4)
    second = members("g", "t", group_instance_id="only", client_id=first.name, **PATIENT)
    members.until(lambda: bool(first.errors))
    assert first.errors[0].code() == KafkaError._FATAL
    assert "fenced" in str(first.errors[0])
    members.settle(second, partitions=4, polling=[second])


@pytest.mark.covers("S234")
def test_a_client_that_restarts_too_soon_waits_for_its_former_self(
    kafka: Cluster, members: Members, log: RequestLog
) -> None:
    """Killed and started again at once: the new member waits in JoinGroup until the old session
    ends.
    """
    with MemberProcess(kafka, "g", "t", **PATIENT) as old:
        old.wait_for_partitions(4)
        generation = look(kafka, "g").generation
        old.kill()
    new = members("g", "t", **PATIENT)
    members.until(lambda: look(kafka, "g").state == "PreparingRebalance")
    assert len(look(kafka, "g").owned) == 2
    kafka.clock.advance("30s", only="group:g", extend_sessions=False)
    assert look(kafka, "g").state == "PreparingRebalance"
    kafka.clock.advance("31s", only="group:g", extend_sessions=False)
    members.settle(new, partitions=4)
    assert look(kafka, "g").generation == generation + 1
    # The first JoinGroup only gave it an id; the second waited, and was answered well.
    refused, joined = log.of(ApiKey.JOIN_GROUP, client_id=new.name)
    assert refused.response.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert joined.response.error_code == ErrorCode.NONE
