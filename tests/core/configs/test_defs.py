"""Config definitions: what text becomes, and what is refused."""

from __future__ import annotations

import pytest

from mockbroker.core.configs.defs import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    GROUP_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
    to_text,
)
from mockbroker.core.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", " 5 ", 5),
        ("retention.ms", "+5", 5),
        ("retention.ms", "-1", -1),
        ("preallocate", "TRUE", True),
        ("cleanup.policy", "delete , compact", ("delete", "compact")),
        ("cleanup.policy", "", ()),
        ("compression.type", " gzip ", "gzip"),
        ("min.cleanable.dirty.ratio", "1e-2", 0.01),
        ("min.cleanable.dirty.ratio", "0.5f", 0.5),
        ("compression.gzip.level", "-1", -1),
        ("leader.replication.throttled.replicas", "*", ("*",)),
        ("leader.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2")),
    ],
)
def test_text_becomes_a_typed_value(name, text, value):
    parsed = TOPIC_CONFIGS[name].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.covers("S304")
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("retention.ms", "never", "Not a number of type LONG"),
        ("retention.ms", "", "Not a number of type LONG"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("retention.ms", "1_000", "Invalid value 1_000 for"),
        ("retention.ms", "9223372036854775808", "Not a number of type LONG"),
        ("segment.bytes", "1048575", "Value must be at least 1048576"),
        ("segment.bytes", "2147483648", "Not a number of type INT"),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("cleanup.policy", "delete,delete", "values must not be duplicated."),
        ("cleanup.policy", "delete,,compact", "values must not be empty."),
        ("cleanup.policy", "remove", "String must be one of: compact, delete"),
        ("compression.type", "GZIP", "Invalid value GZIP for configuration compression.type"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("compression.gzip.level", "10", "Value must be between 1 and 9 or equal to -1"),
        ("compression.zstd.level", "23", "Value must be no more than 22"),
        ("message.timestamp.type", "Never", "String must be one of: CreateTime, LogAppendTime"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "half", "Not a number of type DOUBLE"),
        ("min.insync.replicas", "0", "Value must be at least 1"),
        ("max.message.bytes", "-1", "Value must be at least 0"),
        ("leader.replication.throttled.replicas", "x", "must be the literal '*' or a list"),
        ("leader.replication.throttled.replicas", "*,0:1", "Invalid value [*, 0:1] for"),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(name, text, message):
    with pytest.raises(ConfigError) as refused:
        TOPIC_CONFIGS[name].parse(text)
    assert refused.value.key == name
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("group.consumer.migration.policy", "Upgrade", "sideways"),
        ("controller.quorum.voters", "1@h:9093,2@[::1]:9093", "h:9093"),
        ("controller.quorum.bootstrap.servers", "h:9093", "h"),
        ("remote.log.metadata.manager.class.name", "x", ""),
        ("group.consumer.assignors", "range", ""),
        ("log.cleaner.min.cleanable.ratio", "0.7", "-0.1"),
    ],
)
def test_broker_configs_have_validators_of_their_own(name, good, bad):
    BROKER_CONFIGS[name].parse(good)
    with pytest.raises(ConfigError):
        BROKER_CONFIGS[name].parse(bad)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("latest", True),
        ("by_duration:P1DT2H3M4.5S", True),
        ("by_duration:pt1h", True),
        ("by_duration:PT", False),
        ("by_duration:PT-1H", False),
        ("none", False),
    ],
)
def test_a_share_groups_start_may_be_a_duration(text, fits):
    definition = GROUP_CONFIGS["share.auto.offset.reset"]
    if fits:
        assert definition.parse(text) == text
    else:
        with pytest.raises(ConfigError):
            definition.parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (5, "5"),
        (0.5, "0.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e-5, "1.0E-5"),
        (12345678.5, "1.23456785E7"),
        (100.0, "100.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (("a", "b"), "a,b"),
        ((), ""),
        (None, None),
    ],
)
def test_values_are_shown_as_java_prints_them(value, text):
    assert to_text(value) == text


def test_every_default_is_a_value_of_its_type():
    for table in (BROKER_CONFIGS, TOPIC_CONFIGS, GROUP_CONFIGS):
        for definition in table.values():
            shown = to_text(definition.default_value())
            assert shown == definition.default, definition.name


def test_synonyms_name_configs_that_exist():
    assert TOPIC_SYNONYMS.keys() <= TOPIC_CONFIGS.keys()
    assert {name for names in TOPIC_SYNONYMS.values() for name in names} <= BROKER_CONFIGS.keys()
    assert GROUP_SYNONYMS.keys() <= GROUP_CONFIGS.keys()
    assert set(GROUP_SYNONYMS.values()) <= BROKER_CONFIGS.keys()
