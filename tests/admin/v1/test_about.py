"""What the admin API shows, and the network, the timers and the state machines."""

from __future__ import annotations

from mockbroker import Cluster
from tests.support.http import HttpClient


def test_a_running_cluster_is_named_with_its_journal(kafka: Cluster, admin: HttpClient) -> None:
    found = admin.get("/v1/about")
    assert (found["source"], found["title"]) == ("cluster", admin.get("/v1/cluster")["cluster_id"])
    assert found["journal"]["last_seq"] == kafka.journal.last_seq
    assert found["journal"]["dropped"] == 0


def test_a_cluster_without_a_journal_has_none() -> None:
    with Cluster(brokers=1, journal_bytes=0) as kafka:
        assert HttpClient(kafka.admin_url).get("/v1/about")["journal"] is None


def test_names_and_states_agree_with_the_views(kafka: Cluster, admin: HttpClient) -> None:
    machines = {each["name"]: each for each in admin.get("/v1/state-machines")}
    assert "PreparingRebalance" in machines["classic group"]["states"]
    assert {"from", "to", "on"} == machines["classic group"]["edges"][0].keys()


def test_the_network_and_the_timers_are_the_same_in_python(
    kafka: Cluster, admin: HttpClient
) -> None:
    links = kafka.network().links
    assert [(each.sender, each.receiver) for each in links] == [
        (each["from"], each["to"]) for each in admin.get("/v1/network")["links"]
    ]
    assert len(kafka.clock.timers(limit=1)) <= 1
    assert {each.name for each in kafka.clock.timers()} == {
        each["name"] for each in admin.get("/v1/timers")
    }
