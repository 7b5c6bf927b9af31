"""Consumer groups of the new protocol (`group.protocol=consumer`, KIP-848)."""

from __future__ import annotations

import pytest

from tests.clients.java.steps import Steps
from tests.support.java_pipe import JavaError

pytestmark = pytest.mark.java


def member(java: Steps, group: str, topics: list[str], **config: object) -> str:
    """A consumer of the new protocol that has subscribed and not yet polled."""
    consumer = open_member(java, group, **config)
    java("subscribe", consumer, topics=topics)
    return consumer


def open_member(java: Steps, group: str, **config: object) -> str:
    settings: dict[str, object] = {
        "bootstrap_servers": java.peer.bootstrap_servers,
        "group_protocol": "consumer",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": "false",
    }
    return java._client("consumer", group, settings | config)


def classic_member(java: Steps, group: str, topics: list[str], **config: object) -> str:
    consumer = java.consumer(group, **config)
    java("subscribe", consumer, topics=topics)
    return consumer


def settle(java: Steps, group: str, *consumers: str, partitions: int) -> dict[str, list[str]]:
    """Poll all until the coordinator is done with them and they own what it says."""
    owned: dict[str, list[str]] = {}

    def is_settled() -> bool:
        owned.update(java.settle(*consumers, partitions=partitions))
        described = java.admin("describeGroups", groups=[group])[group]
        said = {each["client"]: each["assignment"] for each in described["members"]}
        return bool(described["state"] == "Stable" and said == owned)

    java.until(is_settled)
    return owned


def events(java: Steps, consumer: str) -> list[list[object]]:
    """What the consumer's listener was told, without what names no partition."""
    return [event for event in java("events", consumer) if event[1]]


@pytest.mark.covers("S236")
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_coordinator_shares_the_partitions_out(java: Steps, assignor: str) -> None:
    topics = [java.topic(partitions=4), java.topic(partitions=4)]
    group = java.unique("group")
    members = [member(java, group, topics, group_remote_assignor=assignor) for _ in range(3)]
    owned = settle(java, group, *members, partitions=8)
    shares = [2, 2, 4] if assignor == "range" else [2, 3, 3]
    assert sorted(map(len, owned.values())) == shares
    described = java.admin("describeGroups", groups=[group])[group]
    assert (described["type"].lower(), described["assignor"]) == ("consumer", assignor)
    java.close(members.pop())
    owned = settle(java, group, *members, partitions=8)
    assert sorted(map(len, owned.values())) == [4, 4]


def test_members_keep_what_they_need_not_give_up(java: Steps) -> None:
    topic = java.topic(partitions=4)
    group = java.unique("group")
    first = member(java, group, [topic])
    before = set(settle(java, group, first, partitions=4)[first])
    java("events", first)
    second = member(java, group, [topic])
    owned = settle(java, group, first, second, partitions=4)
    moved = sorted(before - set(owned[first]))
    assert events(java, first) == [["revoked", moved]]
    assert events(java, second) == [["assigned", moved]]


def test_records_are_read_and_committed_at_the_members_epoch(java: Steps) -> None:
    topic = java.topic()
    java.fill(topic, range(10))
    group = java.unique("group")
    first = member(java, group, [topic])
    assert len(java.poll(first, 10)) == 10
    java("commit", first, offsets={f"{topic}-0": {"offset": 4, "metadata": "four"}})
    committed = java("committed", first, partitions=[f"{topic}-0"])[f"{topic}-0"]
    assert (committed["offset"], committed["metadata"]) == (4, "four")
    java.close(first)
    second = member(java, group, [topic])
    assert [record["offset"] for record in java.poll(second, 6)] == [4, 5, 6, 7, 8, 9]


def test_a_static_member_comes_back_without_a_rebalance(java: Steps) -> None:
    topic = java.topic(partitions=2)
    group = java.unique("group")
    one = member(java, group, [topic], group_instance_id="one")
    two = member(java, group, [topic], group_instance_id="two")
    owned = settle(java, group, one, two, partitions=2)
    epoch = java("groupMetadata", two)["generation"]
    java("events", two)
    java.close(one)
    again = member(java, group, [topic], group_instance_id="one")
    assert settle(java, group, again, two, partitions=2)[again] == owned[one]
    assert java("groupMetadata", two)["generation"] == epoch
    assert events(java, two) == []
    described = java.admin("describeGroups", groups=[group])[group]
    assert {each["instance"] for each in described["members"]} == {"one", "two"}


def test_a_second_member_of_the_same_instance_id_does_not_get_in(java: Steps) -> None:
    topic = java.topic(partitions=1)
    group = java.unique("group")
    first = member(java, group, [topic], group_instance_id="only")
    settle(java, group, first, partitions=1)
    second = member(java, group, [topic], group_instance_id="only")
    with pytest.raises(JavaError, match="UnreleasedInstanceIdException"):
        java.poll(second, 1)
    settle(java, group, first, partitions=1)


def test_an_admin_removes_a_static_member(java: Steps) -> None:
    topic = java.topic(partitions=2)
    group = java.unique("group")
    one = member(java, group, [topic], group_instance_id="one")
    two = member(java, group, [topic], group_instance_id="two")
    settle(java, group, one, two, partitions=2)
    java.close(one)
    java.admin("removeMembers", group=group, instances=["one"])
    settle(java, group, two, partitions=2)


def test_new_partitions_are_assigned_without_a_restart(java: Steps) -> None:
    topic = java.topic(partitions=1)
    group = java.unique("group")
    consumer = member(java, group, [topic], metadata_max_age_ms=300)
    settle(java, group, consumer, partitions=1)
    assert java.admin("createPartitions", counts={topic: 3}) == {topic: None}
    settle(java, group, consumer, partitions=3)


@pytest.mark.covers("S42")
def test_a_pattern_is_looked_up_by_the_coordinator(java: Steps) -> None:
    """The whole name has to match."""
    if java.tour.version < "4":
        pytest.skip("3.9 has no SubscriptionPattern")
    stem = java.unique("pattern")
    spec = {"partitions": 1, "replicas": 1}
    names = [f"{stem}-{ending}" for ending in ("topi", "topic", "topicc", "topic1", "my-topic")]
    java.create(*({"name": name, **spec} for name in names))
    group = java.unique("group")
    consumer = open_member(java, group)
    java("subscribe", consumer, re2=f"{stem}-topic*")
    owned = settle(java, group, consumer, partitions=3)[consumer]
    assert owned == [f"{stem}-topi-0", f"{stem}-topic-0", f"{stem}-topicc-0"]


def test_what_is_no_regex_of_re2_is_refused(java: Steps) -> None:
    if java.tour.version < "4":
        pytest.skip("3.9 has no SubscriptionPattern")
    consumer = open_member(java, java.unique("group"))
    java("subscribe", consumer, re2="(?=a)")
    with pytest.raises(JavaError, match="InvalidRegularExpression"):
        java.poll(consumer, 1)


def test_a_pattern_of_the_clients_own_works_as_before(java: Steps) -> None:
    stem = java.unique("pattern")
    spec = {"partitions": 1, "replicas": 1}
    java.create({"name": f"{stem}-a", **spec})
    group = java.unique("group")
    consumer = open_member(java, group, metadata_max_age_ms=300)
    java("subscribe", consumer, pattern=f"{stem}-[ab]")
    settle(java, group, consumer, partitions=1)
    java.create({"name": f"{stem}-b", **spec}, {"name": f"{stem}-c", **spec})
    assert settle(java, group, consumer, partitions=2)[consumer] == [f"{stem}-a-0", f"{stem}-b-0"]


def test_members_of_both_protocols_share(java: Steps) -> None:
    """The group is upgraded with the first new member, and downgraded after the last."""
    topic = java.topic(partitions=4)
    group = java.unique("group")
    old = classic_member(java, group, [topic])
    settle(java, group, old, partitions=4)
    new = member(java, group, [topic])
    owned = settle(java, group, old, new, partitions=4)
    assert sorted(map(len, owned.values())) == [2, 2]
    described = java.admin("describeGroups", groups=[group])[group]
    assert described["type"].lower() == "consumer"
    java.close(new)
    settle(java, group, old, partitions=4)
    described = java.admin("describeGroups", groups=[group])[group]
    assert (described["type"].lower(), described["state"]) == ("classic", "Stable")


def test_a_group_with_members_is_not_deleted(java: Steps) -> None:
    topic = java.topic()
    group = java.unique("group")
    consumer = member(java, group, [topic])
    settle(java, group, consumer, partitions=1)
    listed = java.admin("listGroups")[group]
    assert (listed["state"], listed["type"].lower()) == ("Stable", "consumer")
    assert "GroupNotEmpty" in java.admin("deleteGroups", groups=[group])[group]["error"]
    java.close(consumer)
    assert java.admin("deleteGroups", groups=[group]) == {group: None}
    assert group not in java.admin("listGroups")
