"""The share partitions that a group notes, event by event."""

from __future__ import annotations

from mockbroker.core.groups.share.partitions import (
    NO_PARTITIONS,
    UNKNOWN_TOPIC,
    SharePartitions,
    TopicPartitions,
    moved,
    to_initialize,
)
from mockbroker.core.groups.share.states import PartitionEvent
from tests.support.consumer_playbook import Topics, topic_id

T, U = topic_id("t"), topic_id("u")
TOPICS = Topics(t=3, u=2)


def which(**partitions: str) -> dict[bytes, frozenset[int]]:
    return {topic_id(name): frozenset(map(int, ps)) for name, ps in partitions.items()}


def lines(**partitions: str) -> dict[bytes, TopicPartitions]:
    return {
        topic_id(name): TopicPartitions(name, frozenset(map(int, ps)))
        for name, ps in partitions.items()
    }


def after(share: SharePartitions, event: PartitionEvent, **partitions: str) -> SharePartitions:
    return moved(share, event, which(**partitions), TOPICS)


def test_a_partition_is_initializing_and_then_initialized() -> None:
    begun = after(NO_PARTITIONS, PartitionEvent.INITIALIZE, t="012")
    assert begun == SharePartitions(initializing=lines(t="012"))
    half = after(begun, PartitionEvent.INITIALIZED, t="02")
    assert half == SharePartitions(lines(t="1"), lines(t="02"))
    assert after(half, PartitionEvent.INITIALIZED, t="1") == SharePartitions({}, lines(t="012"))


def test_a_failed_initialization_leaves_what_was_there_before() -> None:
    begun = after(NO_PARTITIONS, PartitionEvent.INITIALIZE, t="01", u="0")
    failed = after(begun, PartitionEvent.FAILED, t="01")
    assert failed == SharePartitions(initializing=lines(u="0"))


def test_an_initialized_partition_may_be_initialized_again() -> None:
    """AlterShareGroupOffsets does so."""
    done = SharePartitions({}, lines(t="012"))
    again = after(done, PartitionEvent.INITIALIZE, t="1")
    assert again == SharePartitions(lines(t="1"), lines(t="012"))
    assert again.with_state() == which(t="012")


def test_the_offsets_of_a_topic_are_deleted_in_two_steps() -> None:
    done = SharePartitions({}, lines(t="012", u="0"))
    begun = after(done, PartitionEvent.DELETE_OFFSETS, t="012")
    assert begun == SharePartitions({}, lines(u="0"), {T: "t"})
    assert after(begun, PartitionEvent.OFFSETS_DELETED, t="") == SharePartitions({}, lines(u="0"))


def test_a_topic_that_is_initialized_again_is_no_longer_deleting() -> None:
    begun = SharePartitions({}, {}, {T: "t", U: "u"})
    assert after(begun, PartitionEvent.INITIALIZE, t="0") == SharePartitions(
        lines(t="0"), {}, {U: "u"}
    )


def test_a_deleted_group_has_deleting_topics_only() -> None:
    share = SharePartitions(lines(t="1"), lines(t="0", u="0"))
    deleting = after(share, PartitionEvent.DELETE_GROUP, t="01", u="0")
    assert deleting == SharePartitions({}, {}, {T: "t", U: "u"})


def test_a_deleted_topic_is_in_no_set() -> None:
    share = SharePartitions(lines(t="1", u="1"), lines(t="0"), {T: "t"})
    assert after(share, PartitionEvent.TOPIC_DELETED, t="") == SharePartitions(lines(u="1"))


def test_a_topic_without_metadata_has_no_name() -> None:
    gone = {topic_id("gone"): frozenset((0,))}
    begun = moved(NO_PARTITIONS, PartitionEvent.INITIALIZED, gone, TOPICS)
    assert [line.name for line in begun.initialized.values()] == [UNKNOWN_TOPIC]


def test_partitions_of_subscribed_topics_without_state_are_initialized() -> None:
    share = SharePartitions(lines(t="0"), lines(t="1"))
    names = {"t", "u", "no-such-topic"}
    assert to_initialize(share, names, TOPICS, retry=False) == which(t="2", u="01")


def test_an_initialization_that_takes_long_is_started_again() -> None:
    share = SharePartitions(lines(t="0"), lines(t="1"))
    assert to_initialize(share, {"t"}, TOPICS, retry=True) == which(t="02")
