"""Images of several brokers, and the partition objects that they share."""

from __future__ import annotations

import pytest

from mockbroker.core.metadata.metadata_cache import MetadataCache
from tests.support.replicas import Replicas


@pytest.fixture
def node() -> Replicas:
    """Broker 3 leads t-0, broker 1 is the controller."""
    return Replicas(replicas=[3, 1, 2])


def test_all_brokers_share_the_newest_image_and_its_partitions(node):
    cache: MetadataCache = node.cluster.metadata
    assert (cache.all_have_newest_image, cache.frozen_images()) == (True, [])
    assert all(cache.image_of(each) is cache.image for each in (1, 2, 3))
    assert (cache.has_newest_image(3), cache.has_newest_image(9)) == (True, False)
    assert cache.image_of(9) is cache.image
    partition = node.partition
    assert cache.unshare(partition) is cache.leader_object(partition) is partition
    assert cache.objects_of(partition) == [partition]
    assert list(cache.partitions()) == [partition]
    assert cache.is_leader_object(partition)


def test_a_leader_without_the_controller_keeps_the_object_and_the_others_get_another(node):
    cache = node.cluster.metadata
    old = node.partition
    node.cluster.cut_network(3)
    node.settle()
    new = cache.partition("t", 0)
    assert new is not old
    assert cache.frozen_images() == [cache.image_of(3)]
    assert (cache.has_newest_image(3), cache.has_newest_image(1)) == (False, True)
    assert (cache.image_has(3, old), cache.image_has(1, old), cache.image_has(1, new)) == (
        True,
        False,
        True,
    )
    assert cache.objects_of(new) == cache.objects_of(old) == [new, old]
    assert list(cache.partitions()) == [new, old]
    # Each believes in its own leader, and so does each image in the brokers that are alive.
    assert (old.leader_id, new.leader_id) == (3, 1)
    assert cache.is_leader_object(old)
    assert cache.is_leader_object(new)
    assert (cache.is_alive(old, 3), cache.is_alive(new, 3)) == (True, False)
    node.cluster.heal_network()
    node.settle()
    assert cache.objects_of(new) == [new]
    assert cache.all_have_newest_image


def test_a_change_of_one_topic_keeps_the_derived_data_of_others(node):
    cache = node.cluster.metadata
    topic, other = node.cluster.topics["t"], node.cluster.create_topic("u")
    topic.memo["x"] = other.memo["x"] = cache.image.memo["x"] = 1
    epoch = cache.image.epoch
    cache.changed(topic)
    assert (topic.memo, other.memo, cache.image.memo) == ({}, {"x": 1}, {})
    assert cache.image.epoch == epoch + 1
    cache.changed()
    assert other.memo == {}
