from __future__ import annotations

import json
from collections.abc import Iterator

import confluent_kafka
import pytest

from mockbroker import Cluster
from mockbroker.client import Client
from tests.cli.conftest import Run, table
from tests.support.share_members import RELEASE, PartitionMember
from tests.support.streams_member import StreamsMember, assign_at_once


@pytest.fixture(autouse=True)
def group(mock_kafka: Cluster) -> None:
    """Topic t with 100 records; group g has come to 40 of them."""
    mock_kafka.topic("t").create(2)
    with Client(mock_kafka.bootstrap_servers) as client:
        client.produce("t", [b"x"] * 100, partition=0)
        client.groups.commit("g", {("t", 0): 40})


@pytest.fixture
def member(mock_kafka: Cluster) -> Iterator[confluent_kafka.Consumer]:
    """A librdkafka consumer in group live that has its partitions."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": mock_kafka.bootstrap_servers,
            "group.id": "live",
            "client.id": "the-client",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["t"])
    message = consumer.poll(30)
    assert message is not None
    consumer.commit(asynchronous=False)
    yield consumer
    consumer.close()


def test_groups_are_listed(on_cluster: Run):
    head, row = table(on_cluster("groups", "list"))
    assert head == ["GROUP", "STATE", "PROTOCOL", "TYPE", "TYPE"]
    assert row[:2] == ["g", "Empty"]
    [listed] = json.loads(on_cluster("groups", "list", "--json").stdout)
    assert (listed["group"], listed["state"], listed["type"]) == ("g", "Empty", "classic")


@pytest.mark.covers("S12")
def test_lag_is_shown_for_each_partition(on_cluster: Run):
    title, head, row = table(on_cluster("groups", "describe", "g"))
    assert title == ["g", "Empty"]
    assert head == ["TOPIC", "PARTITION", "COMMITTED", "LOG", "END", "LAG"]
    assert row == ["t", "0", "40", "100", "60"]
    described = json.loads(on_cluster("groups", "describe", "g", "--json").stdout)
    assert (described["lag"], described["members"]) == (60, [])


def test_members_are_shown_with_what_they_are_assigned(
    on_cluster: Run, member: confluent_kafka.Consumer
):
    described = json.loads(on_cluster("groups", "describe", "live", "--json").stdout)
    [shown] = described["members"]
    assert described["state"] == "Stable"
    assert shown["client_id"] == "the-client"
    assert shown["assigned"] == {"t": [0, 1]}
    assert "t:0,1" in on_cluster("groups", "describe", "live").stdout


@pytest.mark.parametrize(
    ("to", "committed"), [("earliest", 0), ("latest", 100), ("7", 7), ("1000", 100)]
)
def test_offsets_are_reset(on_cluster: Run, to: str, committed: int):
    result = on_cluster("groups", "reset", "g", "t", "--to", to)
    assert table(result)[1] == ["t", "0", str(committed)]
    described = json.loads(on_cluster("groups", "describe", "g", "--json").stdout)
    assert described["partitions"][0]["committed"] == committed


def test_offsets_of_a_group_with_members_are_not_reset(
    on_cluster: Run, member: confluent_kafka.Consumer
):
    result = on_cluster("groups", "reset", "live", "t", "--to", "earliest", status=1)
    assert result.stderr.endswith("(UNKNOWN_MEMBER_ID)\n")


@pytest.mark.parametrize("to", ["soon", "-1", ""])
def test_resetting_to_nowhere_is_wrong_usage(on_cluster: Run, to: str):
    result = on_cluster("groups", "reset", "g", "t", f"--to={to}", status=2)
    assert result.stderr.startswith("mockbroker groups reset: Invalid value for --to")
    assert result.stderr.count("\n") == 1


def test_a_group_is_deleted(on_cluster: Run):
    assert on_cluster("groups", "delete", "g").stdout == "deleted group g\n"
    result = on_cluster("groups", "describe", "g", status=1)
    assert result.stderr.startswith("mockbroker: group g: ")
    again = on_cluster("groups", "delete", "g", status=1)
    assert again.stderr.endswith("(GROUP_ID_NOT_FOUND)\n")


def test_a_share_group_has_start_offsets_and_lag(on_cluster: Run, mock_kafka: Cluster):
    with PartitionMember(mock_kafka, "sharing", "t", "m1") as member:
        mock_kafka.topic("t").produce("new", partition=0)
        assert member.acquired() == [(100, 100, 1)]
        member.acknowledged((100, 100, [RELEASE]))
        described = json.loads(on_cluster("groups", "describe", "sharing", "--json").stdout)
        assert (described["type"], described["state"]) == ("share", "Stable")
        assert [each["member_id"] for each in described["members"]] == ["m1"]
        [row] = [each for each in described["partitions"] if each["partition"] == 0]
        assert row == {"topic": "t", "partition": 0, "start_offset": 100, "lag": 1}
        title, head, *_ = table(on_cluster("groups", "describe", "sharing"))
        assert (title, head) == (
            ["sharing", "Stable"],
            ["TOPIC", "PARTITION", "START", "OFFSET", "LAG"],
        )


def test_a_share_partition_is_shown_with_the_counts_that_are_not_zero(
    on_cluster: Run, mock_kafka: Cluster
):
    with PartitionMember(mock_kafka, "counted", "t", "m1") as member:
        mock_kafka.topic("t").produce("new", partition=0)
        assert member.acquired() == [(100, 100, 1)]
        shown = on_cluster("show", "share-partitions", "--admin", mock_kafka.admin_url).stdout
        assert "COUNTS" in shown
        assert "acquired 1" in shown
        assert "{" not in shown
        assert "archived" not in shown


def test_a_streams_group_has_tasks(on_cluster: Run, mock_kafka: Cluster):
    mock_kafka.call(lambda cluster: assign_at_once(cluster, "app"))
    with Client(mock_kafka.bootstrap_servers) as client:
        member = StreamsMember(client, "app", "t", "m1")
        member.until(active=[0, 1])
        described = json.loads(on_cluster("groups", "describe", "app", "--json").stdout)
        [shown] = described["members"]
        assert (described["type"], shown["active"]) == ("streams", {"0": [0, 1]})
        assert "0:0,1" in on_cluster("groups", "describe", "app").stdout
