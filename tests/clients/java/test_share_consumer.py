"""Java's KafkaShareConsumer: members take turns at the records of one partition (KIP-932)."""

from __future__ import annotations

import pytest

from tests.clients.java.steps import Json, Steps
from tests.support.java_pipe import JavaError

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]


def offsets(records: list[Json]) -> list[int]:
    return [record["offset"] for record in records]


def counts(records: list[Json]) -> list[tuple[int, int]]:
    """Offset and delivery count of each."""
    return [(record["offset"], record["deliveryCount"]) for record in records]


def test_records_are_acknowledged_by_the_next_poll(java: Steps) -> None:
    """Implicit acknowledgement. A member that closes gives back the records of its last poll."""
    topic, group = java.topic(), java.share_group()
    java.fill(topic, range(10))
    first = java.share_consumer(group, topic)
    assert counts(java.poll(first, 10)) == [(offset, 1) for offset in range(10)]
    java.fill(topic, range(5))
    assert offsets(java.poll(first, 5)) == [10, 11, 12, 13, 14]
    assert java("lockTimeout", first) == 30_000
    told = java.close(first)
    assert {(partition, error) for partition, _, error in told} == {(f"{topic}-0", None)}
    second = java.share_consumer(group, topic)
    assert counts(java.poll(second, 5)) == [(offset, 2) for offset in range(10, 15)]


def test_a_record_is_released_rejected_or_accepted(java: Steps) -> None:
    """A released record comes again with a higher delivery count; a rejected one never does."""
    topic, group = java.topic(), java.share_group()
    java.fill(topic, range(4))
    member = java.share_consumer(group, topic, share_acknowledgement_mode="explicit")
    assert counts(java.poll(member, 4)) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    with pytest.raises(JavaError, match="All records must be acknowledged") as thrown:
        java.poll(member, 1)
    assert thrown.value.name == "IllegalStateException"
    for kind, each in (("ACCEPT", [0, 3]), ("RELEASE", [1]), ("REJECT", [2])):
        java("acknowledge", member, partition=f"{topic}-0", offsets=each, type=kind)
    assert java("commit", member) == {f"{topic}-0": None}
    assert java("told", member) == [[f"{topic}-0", [0, 1, 2, 3], None]]
    assert counts(java.poll(member, 1)) == [(1, 2)]
    java("acknowledge", member, partition=f"{topic}-0", offsets=[1], type="ACCEPT")
    java("commitAsync", member)
    java.until(lambda: not java.poll(member, 1, 50) and java("told", member) != [])
    java.fill(topic, ["last"])
    assert counts(java.poll(member, 1)) == [(4, 1)]


def test_a_renewed_record_stays_with_its_member(java: Steps) -> None:
    """RENEW takes the lock anew, and the record is acknowledged later (KIP-1222)."""
    topic, group = java.topic(), java.share_group()
    java.fill(topic, range(2))
    member = java.share_consumer(group, topic, share_acknowledgement_mode="explicit")
    assert offsets(java.poll(member, 2)) == [0, 1]
    java("acknowledge", member, partition=f"{topic}-0", offsets=[0], type="ACCEPT")
    java("acknowledge", member, partition=f"{topic}-0", offsets=[1], type="RENEW")
    assert java("commit", member) == {f"{topic}-0": None}
    assert counts(java.poll(member, 1)) == [(1, 1)]
    java("acknowledge", member, partition=f"{topic}-0", offsets=[1], type="ACCEPT")
    assert java("commit", member) == {f"{topic}-0": None}
    java.close(member)
    other = java.share_consumer(group, topic)
    java.fill(topic, ["last"])
    assert counts(java.poll(other, 1)) == [(2, 1)]


def test_two_members_share_one_partition(java: Steps) -> None:
    topic, group = java.topic(), java.share_group()
    few = {"max_poll_records": 5, "share_acquire_mode": "record_limit"}
    members = [java.share_consumer(group, topic, **few) for _ in range(2)]
    java.join_share_group(group, *members)
    java.fill(topic, range(200))
    polled = java.poll_all(*members, count=200)
    assert sorted(offset for each in polled.values() for offset in offsets(each)) == [*range(200)]
    assert all(polled.values())


def test_a_member_that_closes_gives_back_what_it_has(java: Steps) -> None:
    topic, group = java.topic(), java.share_group()
    java.fill(topic, range(3))
    member = java.share_consumer(group, topic, share_acknowledgement_mode="explicit")
    assert counts(java.poll(member, 3)) == [(0, 1), (1, 1), (2, 1)]
    java("acknowledge", member, partition=f"{topic}-0", offsets=[1], type="ACCEPT")
    java.close(member)
    other = java.share_consumer(group, topic)
    assert counts(java.poll(other, 2)) == [(0, 2), (2, 2)]
