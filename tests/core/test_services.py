"""Services: one set for all parts of a cluster, and one for each cluster."""

from __future__ import annotations

from mockbroker.core.cluster import Cluster


def test_every_part_of_a_cluster_has_the_same_services():
    cluster, other = Cluster(seed=1), Cluster(seed=1)
    services = cluster.services
    assert (services.runtime, services.metadata) == (cluster.runtime, cluster.metadata)
    assert all(broker.services is services for broker in cluster.brokers.values())
    assert cluster.replication.network is services.network
    assert cluster.replication_control.configs is services.configs
    assert all(a is not b for a, b in zip(services, other.services, strict=True) if a != b)
    assert services.runtime is not other.services.runtime


def test_a_broker_that_joins_later_has_them_too():
    cluster = Cluster(seed=1)
    cluster.add_broker(4)
    assert cluster.brokers[4].services is cluster.services
