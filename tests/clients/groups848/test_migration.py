"""A group that is moved from one protocol to the other, a member at a time."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker_protocol import ApiKey, ErrorCode
from tests.support.members import look as look_classic
from tests.support.new_members import NewMembers, look
from tests.support.request_log import RequestLog
from tests.support.watched import fill


def test_a_group_is_upgraded_and_downgraded_while_it_works(
    kafka: Cluster, members: NewMembers
) -> None:
    """Partitions, offsets and the epoch go on; members of both kinds share meanwhile."""
    classic = members.classic("g", "t")
    members.until(lambda: look_classic(kafka, "g").state == "Stable")
    generation = look_classic(kafka, "g").generation
    new = members("g", "t")
    owned = members.settle(classic, new, partitions=4)
    assert sorted(map(len, owned.values())) == [2, 2]
    assert look(kafka, "g").epoch > generation
    assert look_classic(kafka, "g").state == "Dead"
    epoch = look(kafka, "g").epoch
    new.close()
    members.until(lambda: len(classic.owned) == 4)
    assert look(kafka, "g").state == "Dead"
    assert look_classic(kafka, "g").state == "Stable"
    assert look_classic(kafka, "g").generation > epoch


def test_a_rolling_upgrade_of_every_member(kafka: Cluster, members: NewMembers) -> None:
    """One after the other, and no record is lost."""
    old = [members.classic("g", "t") for _ in range(2)]
    members.until(
        lambda: (
            look_classic(kafka, "g").state == "Stable"
            and [len(member.owned) for member in old] == [2, 2]
        )
    )
    values = fill(kafka, "t", 100)
    members.collect(len(values))
    for member in old:
        member.commit()
    new = []
    for member in old:
        member.close()
        new.append(members("g", "t"))
        members.until(lambda: sum(len(m.owned) for m in (*old, *new)) == 4)
    members.settle(*new, partitions=4)
    more = fill(kafka, "t", 40)
    members.until(lambda: sum(len(member.records) for member in new) >= len(more))
    assert sorted((v for member in new for v in member.values()), key=int) == more


def test_cooperative_members_share_with_new_ones(kafka: Cluster, members: NewMembers) -> None:
    classic = members.classic("g", "t", partition_assignment_strategy="cooperative-sticky")
    members.until(lambda: len(classic.owned) == 4)
    classic.told()
    new = members("g", "t")
    owned = members.settle(classic, new, partitions=4)
    revoked = [ps for kind, ps in classic.told() if kind == "revoked"]
    assert revoked == [owned[new.name]]


@pytest.mark.mock_kafka(configs={"group.consumer.migration.policy": "disabled"})
def test_protocols_do_not_mix_where_the_policy_forbids_it(
    kafka: Cluster, members: NewMembers, log: RequestLog
) -> None:
    new = members("g", "t")
    members.settle(new, partitions=4)
    classic = members.classic("g", "t")
    members.until(lambda: bool(classic.errors))
    answers = log.of(ApiKey.JOIN_GROUP, client_id=classic.name)
    assert {a.response.error_code for a in answers} == {ErrorCode.INCONSISTENT_GROUP_PROTOCOL}
    members.settle(new, partitions=4)
