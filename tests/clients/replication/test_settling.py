"""`settle`: what a script waits for between two steps, instead of sleeping."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer

from mockbroker import Cluster
from mockbroker.cli import main
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S, poll, produce, settings
from tests.support.replicated import TOPIC, Brokers


def run(kafka: Cluster, *arguments: str) -> tuple[int, str]:
    environment = {"MOCKBROKER_ADMIN": kafka.admin_url}
    result = CliRunner().invoke(main, list(arguments), env=environment)
    return result.exit_code, result.output


@pytest.mark.covers("S283")
def test_a_cluster_has_settled_when_isrs_are_full_leaders_preferred_and_groups_stable(
    kafka: Cluster, brokers: Brokers
) -> None:
    """A storm: brokers die and come back, and a member of a group comes. One command waits for the
    end of it all, and what follows finds the cluster at rest.
    """
    brokers.create((1, 2, 3))
    assert run(kafka, "settle") == (0, "")
    kafka.broker(1).stop(how="unclean")
    produce(brokers.bootstrap, TOPIC, ["a", "b"])
    code, output = run(kafka, "settle", "--timeout", "50ms")
    assert code == 1
    assert f"{TOPIC}-0: broker 1 is not in sync" in output
    assert f"{TOPIC}-0: broker 2 leads it, not broker 1" in output

    consumer = Consumer(settings(brokers.bootstrap, group_id="g", auto_offset_reset="earliest"))
    consumer.subscribe([TOPIC])
    assert len(poll(consumer, 2)) == 2
    kafka.broker(1).start()
    assert run(kafka, "settle") == (0, "")
    told = brokers.metadata()
    assert (told.leader, sorted(told.isrs)) == (1, [1, 2, 3])
    [group] = HttpClient(kafka.admin_url).get("/v1/groups")
    assert (group["group"], group["state"]) == ("g", "Stable")
    consumer.close()


@pytest.mark.covers("S283")
def test_a_group_that_rebalances_is_waited_for(kafka: Cluster, brokers: Brokers) -> None:
    """Its only member is held on its way in; the fixture's `settle` says so."""
    brokers.create((1, 2, 3))
    kafka.settle()
    kafka.faults.add(match={"api": "SyncGroup"}, when={"times": 1}, do={"hold": {}})
    consumer = Consumer(settings(brokers.bootstrap, group_id="g"))
    consumer.subscribe([TOPIC])
    held = kafka.faults.wait_held()
    with pytest.raises(AssertionError, match="group g is CompletingRebalance"):
        kafka.settle(timeout_s=0.05)
    held.release()
    kafka.settle(timeout_s=TIMEOUT_S)
    consumer.close()


def test_a_frozen_cluster_settles_too(kafka: Cluster, brokers: Brokers) -> None:
    brokers.create((1, 2, 3))
    kafka.clock.freeze()
    kafka.broker(1).stop()
    kafka.broker(1).start()
    kafka.settle()
    assert brokers.partition(lambda p: (p.leader_id, sorted(p.isr))) == (1, [1, 2, 3])
