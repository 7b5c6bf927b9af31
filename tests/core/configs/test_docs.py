"""Sentences on configs."""

from __future__ import annotations

from mockbroker.core.configs.defs import BROKER_CONFIGS, TOPIC_CONFIGS, TOPIC_SYNONYMS
from mockbroker.core.configs.docs import documentation_of


def test_every_topic_config_is_explained_and_so_is_the_broker_config_behind_it():
    for name, definition in TOPIC_CONFIGS.items():
        assert definition.internal or documentation_of(name, topic=True), name
    for name, names in TOPIC_SYNONYMS.items():
        assert documentation_of(names[0], topic=False), name


def test_only_configs_that_exist_are_explained():
    explained = {name for name in BROKER_CONFIGS if documentation_of(name, topic=False)}
    assert {"num.partitions", "auto.create.topics.enable", "log.retention.ms"} <= explained
    assert documentation_of("retention.ms", topic=False) is None
    assert documentation_of("no.such", topic=True) is None
