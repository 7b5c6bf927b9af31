"""Topics: their names, and derived data after changes."""

from __future__ import annotations

import pytest

from mockbroker.core.configs.values import ClusterConfigs
from mockbroker.core.metadata.topic import Topic, why_invalid_name


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "...", "x" * 249, "__consumer_offsets"])
def test_legal_names(name):
    assert why_invalid_name(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a/b", "a b", "ü", "a\0"])
def test_illegal_names_have_a_reason(name):
    assert why_invalid_name(name)


def test_the_internal_topics_are_known_by_name():
    configs = ClusterConfigs({})
    assert Topic("__transaction_state", bytes(16), configs, {}).is_internal
    assert not Topic("__cluster_metadata", bytes(16), configs, {}).is_internal


def test_a_change_of_a_topic_drops_its_derived_data():
    topic = Topic("t", bytes(16), ClusterConfigs({}), {})
    topic.memo["x"] = 1
    topic.touch()
    assert (topic.version, topic.memo) == (1, {})
