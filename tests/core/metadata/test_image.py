"""The registrations in a metadata image."""

from __future__ import annotations

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.cluster import Cluster


def test_a_broker_is_active_while_it_is_registered_unfenced_and_not_shutting_down():
    cluster = Cluster([BrokerSpec(1), BrokerSpec(2)])
    broker = cluster.brokers[1]
    assert cluster.image.is_active(1)
    broker.shutting_down = True
    assert not cluster.image.is_active(1)
    broker.shutting_down, broker.fenced = False, True
    assert not cluster.image.is_active(1)
    cluster.remove_broker(2)
    assert not cluster.image.is_active(2)
