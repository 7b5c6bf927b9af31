"""Where a cluster differs from Kafka on purpose, and how it does as Kafka does."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.core.configs.defs import BROKER_CONFIGS
from mockbroker.core.configs.differences import DIFFERENCES, Difference, strict_configs
from mockbroker.core.configs.values import static_configs
from mockbroker.server.config import ServerConfig
from tests.support.replicas import Replicas


@pytest.mark.parametrize("each", DIFFERENCES, ids=lambda each: each.config)
def test_each_difference_is_a_broker_config_with_our_value_as_its_default(each: Difference) -> None:
    definition = BROKER_CONFIGS[each.config]
    assert static_configs({}, 3).get(each.config, definition.default) == each.ours
    assert definition.parse(each.kafka) != definition.parse(each.ours)


def test_a_strict_cluster_has_kafkas_values_and_what_it_is_given_on_top() -> None:
    config = ServerConfig(strict=True, configs={"record.validation": "headers"})
    assert config.broker_configs() == {**strict_configs(), "record.validation": "headers"}
    assert ServerConfig().broker_configs() == {}


def test_the_fixtures_cluster_can_be_strict() -> None:
    with Cluster(brokers=1, strict=True) as kafka:
        for each in DIFFERENCES:
            shown = kafka.call(lambda c, name=each.config: c.configs.static[name])  # type: ignore[misc]
            assert shown == each.kafka


@pytest.mark.parametrize("how", ["kill", "cut"])
def test_a_failed_broker_is_fenced_when_its_session_expires(how: str) -> None:
    node = Replicas(3, configs={"mockbroker.failure.detection": "session"})
    if how == "kill":
        node.cluster.stop_broker(3, "unclean")
    else:
        node.cluster.cut_network(3)
    timeout_ms = node.cluster.config_int("broker.session.timeout.ms")
    node.advance(timeout_ms - 1)
    assert not node.cluster.brokers[3].fenced
    node.advance(1)
    assert node.cluster.brokers[3].fenced
