"""Consumer groups of the classic protocol: assignors, rebalances, static members, offsets."""

from __future__ import annotations

import time

import pytest

from tests.clients.java.steps import Steps
from tests.support.java_pipe import JavaError

pytestmark = pytest.mark.java

ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


def member(java: Steps, group: str, topics: list[str], **config: object) -> str:
    """A consumer that has subscribed and not yet polled."""
    consumer = java.consumer(group, **config)
    java("subscribe", consumer, topics=topics)
    return consumer


@pytest.mark.covers("S153", "S225")
@pytest.mark.parametrize("assignor", list(ASSIGNORS))
def test_members_share_the_partitions(java: Steps, assignor: str) -> None:
    topics = [java.topic(partitions=3), java.topic(partitions=3)]
    group = java.unique("group")
    strategy = f"org.apache.kafka.clients.consumer.{ASSIGNORS[assignor]}"
    members = [
        member(java, group, topics, partition_assignment_strategy=strategy) for _ in range(3)
    ]
    owned = java.settle(*members, partitions=6)
    assert sorted(map(len, owned.values())) == [2, 2, 2]
    described = java.admin("describeGroups", groups=[group])[group]
    assert described["state"] == "Stable"
    assert described["assignor"] == assignor
    assert {each["client"]: each["assignment"] for each in described["members"]} == owned
    java.close(members.pop())
    owned = java.settle(*members, partitions=6)
    # The range assignor shares out each topic by itself: two of three to the first, twice.
    shares = [2, 4] if assignor == "range" else [3, 3]
    assert sorted(map(len, owned.values())) == shares


def test_cooperative_members_keep_what_they_own(java: Steps) -> None:
    topic = java.topic(partitions=4)
    group = java.unique("group")
    strategy = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    first = member(java, group, [topic], partition_assignment_strategy=strategy)
    before = set(java.settle(first, partitions=4)[first])
    java("events", first)
    second = member(java, group, [topic], partition_assignment_strategy=strategy)
    owned = java.settle(first, second, partitions=4)
    assert set(owned[first]) < before
    moved = sorted(before - set(owned[first]))
    events = [event for event in java("events", first) if event[1]]
    assert events == [["revoked", moved]]
    assert [event for event in java("events", second) if event[1]] == [["assigned", moved]]


def test_eager_members_give_everything_up_first(java: Steps) -> None:
    topic = java.topic(partitions=4)
    group = java.unique("group")
    strategy = "org.apache.kafka.clients.consumer.RangeAssignor"
    first = member(java, group, [topic], partition_assignment_strategy=strategy)
    everything = java.settle(first, partitions=4)[first]
    java("events", first)
    second = member(java, group, [topic], partition_assignment_strategy=strategy)
    owned = java.settle(first, second, partitions=4)
    assert java("events", first) == [["revoked", everything], ["assigned", owned[first]]]


def test_members_without_a_common_assignor_do_not_mix(java: Steps) -> None:
    topic = java.topic(partitions=2)
    group = java.unique("group")
    package = "org.apache.kafka.clients.consumer"
    first = member(java, group, [topic], partition_assignment_strategy=f"{package}.RangeAssignor")
    java.settle(first, partitions=2)
    other = member(
        java, group, [topic], partition_assignment_strategy=f"{package}.RoundRobinAssignor"
    )
    with pytest.raises(JavaError, match="InconsistentGroupProtocolException"):
        java.poll(other, 1)


@pytest.mark.covers("S42")
def test_a_pattern_subscribes_to_topics_made_later_too(java: Steps) -> None:
    stem = java.unique("pattern")
    spec = {"partitions": 1, "replicas": 1}
    java.create({"name": f"{stem}-a", **spec})
    consumer = java.consumer(java.unique("group"), metadata_max_age_ms=300)
    java("subscribe", consumer, pattern=f"{stem}-[ab]")
    java.settle(consumer, partitions=1)
    java.create({"name": f"{stem}-b", **spec}, {"name": f"{stem}-c", **spec})
    assert java.settle(consumer, partitions=2)[consumer] == [f"{stem}-a-0", f"{stem}-b-0"]


def test_new_partitions_are_assigned_without_a_restart(java: Steps) -> None:
    topic = java.topic(partitions=1)
    consumer = member(java, java.unique("group"), [topic], metadata_max_age_ms=300)
    java.settle(consumer, partitions=1)
    assert java.admin("createPartitions", counts={topic: 3}) == {topic: None}
    java.settle(consumer, partitions=3)


def test_a_static_member_comes_back_without_a_rebalance(java: Steps) -> None:
    topic = java.topic(partitions=2)
    group = java.unique("group")
    one = member(java, group, [topic], group_instance_id="one")
    two = member(java, group, [topic], group_instance_id="two")
    owned = java.settle(one, two, partitions=2)
    generation = java("groupMetadata", two)["generation"]
    java("events", two)
    java.close(one)
    again = member(java, group, [topic], group_instance_id="one")
    assert java.settle(again, two, partitions=2)[again] == owned[one]
    assert java("groupMetadata", two)["generation"] == generation
    assert java("events", two) == []
    described = java.admin("describeGroups", groups=[group])[group]
    assert {each["instance"] for each in described["members"]} == {"one", "two"}


def test_a_second_member_of_the_same_instance_id_fences_the_first(java: Steps) -> None:
    """It learns that from its commit here: after a fenced heartbeat a commit fails otherwise."""
    topic = java.topic(partitions=1)
    group = java.unique("group")
    first = member(java, group, [topic], group_instance_id="only", heartbeat_interval_ms=30_000)
    java.settle(first, partitions=1)
    second = member(java, group, [topic], group_instance_id="only")
    java.settle(second, partitions=1)
    with pytest.raises(JavaError, match="FencedInstanceIdException"):
        java("commit", first, offsets={f"{topic}-0": 0})


def test_an_admin_removes_a_static_member(java: Steps) -> None:
    topic = java.topic(partitions=2)
    group = java.unique("group")
    one = member(java, group, [topic], group_instance_id="one")
    two = member(java, group, [topic], group_instance_id="two")
    java.settle(one, two, partitions=2)
    java.close(one)
    java.admin("removeMembers", group=group, instances=["one"])
    java.settle(two, partitions=2)


@pytest.mark.covers("S231")
def test_a_member_can_ask_for_a_rebalance(java: Steps) -> None:
    topic = java.topic(partitions=2)
    consumer = member(java, java.unique("group"), [topic])
    java.settle(consumer, partitions=2)
    generation = java("groupMetadata", consumer)["generation"]
    java("enforceRebalance", consumer)
    java.poll(consumer, 1, timeout_ms=300)
    java.settle(consumer, partitions=2)
    assert java("groupMetadata", consumer)["generation"] > generation


@pytest.mark.covers("S125")
def test_a_new_subscription_replaces_the_old_one(java: Steps) -> None:
    first, second = java.topic(), java.topic()
    consumer = member(java, java.unique("group"), [first])
    assert java.settle(consumer, partitions=1)[consumer] == [f"{first}-0"]
    java("subscribe", consumer, topics=[second])
    java.poll(consumer, 1, timeout_ms=300)
    assert java.settle(consumer, partitions=1)[consumer] == [f"{second}-0"]


@pytest.mark.covers("S22", "S183")
def test_committed_offsets_are_where_the_next_member_starts(java: Steps) -> None:
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


def test_a_commit_without_offsets_takes_the_positions(java: Steps) -> None:
    topic = java.topic()
    java.fill(topic, range(10))
    consumer = member(java, java.unique("group"), [topic])
    java.poll(consumer, 10)
    java("commit", consumer)
    committed = java("committed", consumer, partitions=[f"{topic}-0"])[f"{topic}-0"]
    assert (committed["offset"], committed["leaderEpoch"]) == (10, 0)


def test_an_asynchronous_commit_calls_back(java: Steps) -> None:
    topic = java.topic()
    consumer = member(java, java.unique("group"), [topic])
    java.settle(consumer, partitions=1)
    done = java("commitAsync", consumer, offsets={f"{topic}-0": 0})
    assert done[f"{topic}-0"]["offset"] == 0


@pytest.mark.covers("S166")
def test_automatic_commits_happen_on_close(java: Steps) -> None:
    topic = java.topic()
    java.fill(topic, range(10))
    group = java.unique("group")
    consumer = member(java, group, [topic], enable_auto_commit="true")
    java.poll(consumer, 10)
    java.close(consumer)
    offsets = java.admin("groupOffsets", group=group)
    assert offsets[f"{topic}-0"]["offset"] == 10


@pytest.mark.covers("S126")
def test_an_assigned_consumer_commits_without_joining(java: Steps) -> None:
    topic = java.topic()
    group = java.unique("group")
    consumer = java.consumer(group)
    java("assign", consumer, partitions=[f"{topic}-0"])
    java("commit", consumer, offsets={f"{topic}-0": 7})
    described = java.admin("describeGroups", groups=[group])[group]
    assert (described["state"], described["members"]) == ("Empty", [])


@pytest.mark.covers("S126")
def test_a_simple_commit_into_a_group_with_members_is_refused(java: Steps) -> None:
    topic = java.topic()
    group = java.unique("group")
    java.settle(member(java, group, [topic]), partitions=1)
    simple = java.consumer(group)
    java("assign", simple, partitions=[f"{topic}-0"])
    with pytest.raises(JavaError, match="CommitFailedException"):
        java("commit", simple, offsets={f"{topic}-0": 7})


def test_groups_are_listed_and_described_with_their_state(java: Steps) -> None:
    topic = java.topic()
    group, absent = java.unique("group"), java.unique("absent")
    consumer = member(java, group, [topic])
    java.settle(consumer, partitions=1)
    listed = java.admin("listGroups")[group]
    assert (listed["state"], listed["simple"]) == ("Stable", False)
    described = java.admin("describeGroups", groups=[group])[group]
    (only,) = described["members"]
    assert only["client"] == consumer
    assert only["member"].startswith(f"{consumer}-")
    assert only["host"] == "/127.0.0.1"
    assert only["assignment"] == [f"{topic}-0"]
    assert absent not in java.admin("listGroups")
    gone = java.admin("describeGroups", groups=[absent])[absent]
    if java.tour.version == "3.9.1":
        assert gone["state"] == "Dead"
    else:
        assert gone["error"] == "GroupIdNotFoundException"


def test_only_an_empty_group_can_be_deleted(java: Steps) -> None:
    topic = java.topic()
    group = java.unique("group")
    consumer = member(java, group, [topic])
    java.settle(consumer, partitions=1)
    java("commit", consumer, offsets={f"{topic}-0": 3})
    refused = java.admin("deleteGroups", groups=[group])[group]
    assert refused["error"] == "GroupNotEmptyException"
    java.close(consumer)
    assert java.admin("deleteGroups", groups=[group]) == {group: None}
    assert java.admin("groupOffsets", group=group) == {}
    again = java.admin("deleteGroups", groups=[group])[group]
    assert again["error"] == "GroupIdNotFoundException"


def test_an_admin_sets_lists_and_deletes_offsets(java: Steps) -> None:
    topic = java.topic(partitions=2)
    group = java.unique("group")
    offsets = {f"{topic}-0": 3, f"{topic}-1": 4}
    assert java.admin("alterGroupOffsets", group=group, offsets=offsets) == dict.fromkeys(offsets)
    listed = java.admin("groupOffsets", group=group)
    assert {partition: each["offset"] for partition, each in listed.items()} == offsets
    deleted = java.admin("deleteGroupOffsets", group=group, partitions=[f"{topic}-0"])
    assert deleted == {f"{topic}-0": None}
    assert list(java.admin("groupOffsets", group=group)) == [f"{topic}-1"]


def test_offsets_of_a_live_group_are_protected(java: Steps) -> None:
    topic, other = java.topic(), java.topic()
    group = java.unique("group")
    consumer = member(java, group, [topic])
    java.settle(consumer, partitions=1)
    java("commit", consumer, offsets={f"{topic}-0": 1, f"{other}-0": 1})
    altered = java.admin("alterGroupOffsets", group=group, offsets={f"{topic}-0": 0})
    assert altered[f"{topic}-0"]["error"] == "UnknownMemberIdException"
    deleted = java.admin("deleteGroupOffsets", group=group, partitions=[f"{topic}-0", f"{other}-0"])
    assert deleted[f"{topic}-0"]["error"] == "GroupSubscribedToTopicException"
    assert deleted[f"{other}-0"] is None


def test_a_member_that_stops_polling_leaves_the_group(java: Steps) -> None:
    topic = java.topic(partitions=2)
    group = java.unique("group")
    idle = member(java, group, [topic], max_poll_interval_ms=1000)
    awake = member(java, group, [topic])
    java.settle(idle, awake, partitions=2)
    assert len(java.settle(awake, partitions=2)[awake]) == 2


@pytest.mark.covers("S210")
def test_a_static_member_that_stays_away_is_removed_after_its_session(java: Steps) -> None:
    topic = java.topic(partitions=2)
    group = java.unique("group")
    away = member(java, group, [topic], group_instance_id="away", session_timeout_ms=6000)
    here = member(java, group, [topic])
    java.settle(away, here, partitions=2)
    begun = time.monotonic()
    java.close(away)  # a static member says no goodbye
    assert len(java.settle(here, partitions=2)[here]) == 2
    assert 5 < time.monotonic() - begun < 30
