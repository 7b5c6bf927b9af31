"""Groups as administrators see them: described, listed, deleted, found."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from mockbroker import Cluster
from mockbroker_protocol import ApiKey
from tests.support.members import Members, look
from tests.support.request_log import RequestLog


def describe(admin: AdminClient, group: str) -> Any:
    return admin.describe_consumer_groups([group])[group].result(20)


def listed(admin: AdminClient, *states: ConsumerGroupState) -> dict[str, ConsumerGroupState]:
    """Group ids and states, of all groups or of those in these states."""
    future = admin.list_consumer_groups(**({"states": set(states)} if states else {}))
    return {each.group_id: each.state for each in future.result(20).valid}


@pytest.mark.covers("S225", "S191")
def test_a_group_is_described(kafka: Cluster, members: Members, admin: AdminClient) -> None:
    """Client ids, hosts, who has what, the assignor, the state, and the coordinator."""
    one = members("group-24", "t", client_id="one", partition_assignment_strategy="roundrobin")
    two = members(
        "group-24",
        "t",
        client_id="two",
        group_instance_id="the-second",
        partition_assignment_strategy="roundrobin",
    )
    owned = members.settle(one, two, partitions=4)
    described = describe(admin, "group-24")
    assert described.group_id == "group-24"
    assert described.state == ConsumerGroupState.STABLE
    assert described.partition_assignor == "roundrobin"
    assert not described.is_simple_consumer_group
    leader = kafka.call(lambda c: c.topics["__consumer_offsets"].partitions[10].leader_id)
    assert described.coordinator.id == leader
    assert (described.coordinator.host, described.coordinator.port) == kafka.endpoint(leader)
    shown = {
        member.client_id: sorted((p.topic, p.partition) for p in member.assignment.topic_partitions)
        for member in described.members
    }
    assert shown == owned
    by_name = {member.client_id: member for member in described.members}
    assert by_name["one"].member_id.startswith("one-")
    assert by_name["two"].member_id.startswith("the-second-")
    assert (by_name["one"].group_instance_id, by_name["two"].group_instance_id) == (
        None,
        "the-second",
    )
    assert {member.host for member in described.members} == {"/127.0.0.1"}


@pytest.mark.covers("S196")
def test_a_group_is_seen_in_the_middle_of_a_rebalance(
    kafka: Cluster, members: Members, admin: AdminClient, log: RequestLog
) -> None:
    """While the one member that has not heard of it holds up the round, the group is
    PreparingRebalance, is listed by that state only, and shows what was assigned before.
    """
    holds_up = members("g", "t")
    members.settle(holds_up, partitions=4)
    newcomer = members("g", "t")
    # It is told by a heartbeat, but gives its partitions up only when it is polled.
    members.until(lambda: look(kafka, "g").state == "PreparingRebalance", polling=[newcomer])
    described = describe(admin, "g")
    assert described.state == ConsumerGroupState.PREPARING_REBALANCING
    owned = {m.client_id: len(m.assignment.topic_partitions) for m in described.members}
    assert owned == {holds_up.name: 4, newcomer.name: 0}
    assert described.partition_assignor == ""
    preparing = ConsumerGroupState.PREPARING_REBALANCING
    assert listed(admin, preparing) == {"g": preparing}
    assert listed(admin, ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY) == {}
    members.settle(holds_up, newcomer, partitions=4)
    assert listed(admin, ConsumerGroupState.STABLE) == {"g": ConsumerGroupState.STABLE}


@pytest.mark.covers("S196", "S198")
def test_groups_are_listed_from_all_brokers_with_their_state(
    kafka: Cluster, members: Members, admin: AdminClient
) -> None:
    """Each broker knows its own; the list is all of them; who left is Empty, who never was is not
    there.
    """
    groups = [f"group-{n}" for n in range(6)]
    lead = kafka.call(
        lambda cluster: {
            cluster.topics["__consumer_offsets"]
            .partitions[cluster.find_coordinator_partition(group)]
            .leader_id
            for group in groups
        }
    )
    assert lead == {1, 2, 3}
    live = [members(group, "t") for group in groups]
    members.until(lambda: all(len(member.owned) == 4 for member in live))
    assert listed(admin) == dict.fromkeys(groups, ConsumerGroupState.STABLE)
    for member in live[:3]:
        member.commit(("t", 0, 1))
        member.close()
    assert listed(admin, ConsumerGroupState.EMPTY) == dict.fromkeys(
        groups[:3], ConsumerGroupState.EMPTY
    )
    assert describe(admin, "nobody").state == ConsumerGroupState.DEAD


@pytest.mark.covers("S198")
def test_only_a_group_without_members_can_be_deleted(
    kafka: Cluster, members: Members, admin: AdminClient
) -> None:
    """NON_EMPTY_GROUP while somebody is in it; afterwards its offsets are gone with it."""
    member = members("g", "t")
    members.settle(member, partitions=4)
    member.commit(("t", 0, 3))
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups(["g"])["g"].result(20)
    assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    member.close()
    admin.delete_consumer_groups(["g"])["g"].result(20)
    assert listed(admin) == {}
    again = members("g", "t")
    members.settle(again, partitions=4)
    assert again.committed(("t", 0)) == {("t", 0): -1001}
    with pytest.raises(KafkaException) as unknown:
        admin.delete_consumer_groups(["nobody"])["nobody"].result(20)
    assert unknown.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


@pytest.mark.mock_kafka(configs={"group.max.size": 2})
def test_a_full_group_takes_nobody_else(kafka: Cluster, members: Members, log: RequestLog) -> None:
    """GROUP_MAX_SIZE_REACHED to the third; the other two go on."""
    pair = [members("g", "t") for _ in range(2)]
    members.settle(*pair, partitions=4)
    before = look(kafka, "g")
    third = members("g", "t")
    members.until(lambda: bool(third.errors))
    assert third.errors[0].code() == KafkaError.GROUP_MAX_SIZE_REACHED
    assert {e.response.error_code for e in log.of(ApiKey.JOIN_GROUP, client_id=third.name)} == {81}
    assert look(kafka, "g") == before


@pytest.mark.covers("S211")
@pytest.mark.mock_kafka(configs={"group.min.session.timeout.ms": 6_000})
def test_a_session_timeout_below_the_minimum_is_refused(kafka: Cluster, members: Members) -> None:
    """INVALID_SESSION_TIMEOUT for 5 s where 6 s are the least, as they are by default."""
    default = kafka.call(lambda c: c.config("group.min.session.timeout.ms"))
    assert default == 6_000
    hasty = members("g", "t", session_timeout_ms=5_000)
    members.until(lambda: bool(hasty.errors))
    assert hasty.errors[0].code() == KafkaError.INVALID_SESSION_TIMEOUT
    good = members("g", "t", session_timeout_ms=6_000)
    members.settle(good, partitions=4, polling=[good])
