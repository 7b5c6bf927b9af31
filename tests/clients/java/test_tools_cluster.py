"""Kafka's own tools while brokers die and partitions move: the same on ours as on three nodes of
Kafka itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mockbroker.client.connection import Connection
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.clients.java.steps import Peer, Steps
from tests.clients.java.test_tools import TOOLS, run
from tests.support.killed_nodes import NOTICED
from tests.support.real_kafka import SEVERAL_NODES
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.parametrize("tour", ["4.3.1"], indirect=True)]

CONFIGS = NOTICED | {"auto.leader.rebalance.enable": "false"}
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"


@dataclass(frozen=True)
class Nodes(Peer):
    """Three brokers, 1 to 3, that can be killed and started."""

    kill: Callable[[int], None]
    start: Callable[[int], None]


@pytest.fixture(
    scope="module",
    params=[
        "mockbroker",
        pytest.param(
            "kafka",
            marks=[
                pytest.mark.real_kafka,
                pytest.mark.slow,
                pytest.mark.xdist_group(SEVERAL_NODES),
            ],
        ),
    ],
)
def peer(request: pytest.FixtureRequest) -> Iterator[Nodes]:
    if request.param == "kafka":
        from tests.support.real_kafka import RealKafka

        with RealKafka(brokers=3, configs=CONFIGS) as nodes:
            kill = lambda node: nodes.stop_node(node, kill=True)  # noqa: E731
            yield Nodes("kafka", nodes.bootstrap_servers, 3, kill, nodes.start_node)
    else:
        from mockbroker import Cluster

        with Cluster(brokers=3, node_ids=[1, 2, 3], configs=CONFIGS) as kafka:
            kill = lambda node: kafka.broker(node).stop(how="unclean")  # noqa: E731
            start = lambda node: kafka.broker(node).start()  # noqa: E731
            yield Nodes("mockbroker", kafka.bootstrap_servers, 3, kill, start)


@dataclass
class Topics:
    """What TopicCommand says of the topics of one test, whose names share a stem."""

    java: Steps
    stem: str

    def name(self, short: str) -> str:
        return f"{self.stem}-{short}"

    def create(self, short: str, *replicas: str, **configs: str) -> str:
        """A topic on these replicas: "1:2" for a partition that broker 1 shall lead."""
        name = self.name(short)
        words = [f"{key.replace('_', '.')}={value}" for key, value in configs.items()]
        options = [word for each in words for word in ("--config", each)]
        assignment = ("--replica-assignment", ",".join(replicas))
        self.tell("--create", "--topic", name, *assignment, *options)
        wait_until(lambda: self.has_leaders_everywhere(name, len(replicas)))
        return name

    def has_leaders_everywhere(self, name: str, partitions: int) -> bool:
        """Whether each broker, which a tool may send its next request to, has read of the topic."""
        topics = [MetadataRequestTopic(name=name)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        for server in self.java.peer.bootstrap_servers.split(","):
            host, _, port = server.rpartition(":")
            with Connection(host, int(port)) as broker:
                (topic,) = broker.send(request).topics
                if sum(each.leader_id >= 0 for each in topic.partitions) < partitions:
                    return False
        return True

    def tell(self, *args: str, exit_code: int = 0) -> str:
        return run(self.java, f"{TOOLS}.TopicCommand", *args, exit_code=exit_code)

    def named(self, *filters: str) -> set[str]:
        """`short-partition` of what `--describe` with these filters lists."""
        listed = self.tell("--describe", *filters)
        found = re.findall(r"^\tTopic: (\S+)\tPartition: (\d+)", listed, re.MULTILINE)
        ours = [f"{topic}-{index}" for topic, index in found if topic.startswith(self.stem)]
        return {each.removeprefix(f"{self.stem}-") for each in ours}

    def partition(self, short: str, index: int = 0) -> tuple[str, list[int], set[int]]:
        """Leader, replicas and ISR of a partition."""
        listed = self.tell("--describe", "--topic", self.name(short))
        found = re.search(
            rf"Partition: {index}\tLeader: (\w+)\tReplicas: ([\d,]*)\tIsr: ([\d,]*)", listed
        )
        assert found is not None, listed
        leader, replicas, isr = found.groups()
        return leader, [int(n) for n in replicas.split(",")], {int(n) for n in isr.split(",") if n}


@pytest.fixture
def topics(java: Steps) -> Topics:
    return Topics(java, java.unique("tools"))


def elect(java: Steps, kind: str, *args: str, exit_code: int = 0) -> str:
    words = ("--election-type", kind, *args)
    return run(java, f"{TOOLS}.LeaderElectionCommand", *words, exit_code=exit_code)


def test_topic_command_names_what_is_not_well_and_leader_election_command_heals_it(
    java: Steps, topics: Topics, tmp_path: Path
) -> None:
    """Broker 3 dies: partitions lack a replica, have just enough or too few of them, or no leader.
    It comes back and leads again when somebody asks for it.
    """
    nodes = java.peer
    assert isinstance(nodes, Nodes)
    topics.create("roomy", "1:2:3")
    topics.create("tight", "1:3", min_insync_replicas="1")
    topics.create("strict", "2:3", min_insync_replicas="2")
    alone = topics.create("alone", "3")
    one, other = topics.create("one", "3:1:2"), topics.create("other", "3:2:1")
    file = tmp_path / "partitions.json"
    file.write_text(
        json.dumps({"partitions": [{"topic": name, "partition": 0} for name in (one, other)]})
    )
    by_file = ("preferred", "--path-to-json-file", str(file))
    ill = "--under-replicated-partitions"
    assert topics.named(ill) == set()
    assert topics.named("--unavailable-partitions") == set()
    assert "Valid replica already elected" in elect(java, *by_file)

    nodes.kill(3)
    # Each command asks one broker, and the others may read of a change later.
    everything = {"roomy-0", "tight-0", "strict-0", "alone-0", "one-0", "other-0"}
    wait_until(lambda: topics.named(ill) == everything)
    wait_until(lambda: topics.named("--unavailable-partitions") == {"alone-0"})
    wait_until(lambda: topics.named("--under-min-isr-partitions") == {"strict-0", "alone-0"})
    wait_until(lambda: topics.named("--at-min-isr-partitions") == {"tight-0"})
    wait_until(lambda: topics.partition("alone") == ("none", [3], set()))
    wait_until(lambda: topics.partition("one") == ("1", [3, 1, 2], {1, 2}))
    refused = elect(java, "preferred", "--topic", one, "--partition", "0", exit_code=1)
    assert "PreferredLeaderNotAvailableException" in refused
    refused = elect(java, "unclean", "--topic", alone, "--partition", "0", exit_code=1)
    assert "EligibleLeadersNotAvailableException" in refused

    nodes.start(3)
    wait_until(lambda: topics.named(ill) == set())
    wait_until(lambda: topics.partition("one")[0] == "1")
    printed = elect(java, "preferred", "--topic", one, "--partition", "0")
    assert f"Successfully completed leader election (PREFERRED) for partitions {one}-0" in printed
    elect(java, *by_file)
    wait_until(lambda: topics.partition("other")[0] == "3")
    wait_until(lambda: topics.partition("one")[0] == "3")
    assert elect(java, "preferred", "--all-topic-partitions") == ""


def test_leader_election_command_knows_no_such_topic(java: Steps, topics: Topics) -> None:
    where = ("--topic", topics.name("none"), "--partition", "0")
    assert "UnknownTopicOrPartitionException" in elect(java, "unclean", *where, exit_code=1)


def test_topic_command_says_what_cannot_be(java: Steps, topics: Topics) -> None:
    name = topics.create("t", "1:2", "2:3")
    assert "already" in topics.tell("--create", "--topic", name, exit_code=1)
    assert topics.tell("--create", "--topic", name, "--if-not-exists") == ""
    assert topics.tell("--delete", "--topic", topics.name("none"), "--if-exists") == ""
    assert "does not exist" in topics.tell("--delete", "--topic", topics.name("none"), exit_code=1)
    fewer = ("--alter", "--topic", name, "--partitions")
    assert "Error while executing topic command" in topics.tell(*fewer, "1", exit_code=1)
    spread = ("--create", "--topic", topics.name("wide"), "--replication-factor", "4")
    assert "Error while executing topic command" in topics.tell(*spread, exit_code=1)
    assert topics.name("wide") not in topics.tell("--list").splitlines()
    described = topics.tell("--describe", "--topic", name)
    (topic_id,) = re.findall(r"TopicId: (\S+)", described)
    assert f"Topic: {name}\t" in topics.tell("--describe", "--topic-id", topic_id)
    topics.tell(*fewer, "4", "--replica-assignment", "1:2,2:3,3:1,1:3")
    wait_until(lambda: len(topics.named("--topic", name)) == 4)
    wait_until(lambda: topics.has_leaders_everywhere(name, 4))
    assert topics.partition("t", 2)[1] == [3, 1]
    assert topics.partition("t", 3)[1] == [1, 3]


class Move:
    """A reassignment, in a file, and what the command says of it."""

    def __init__(self, java: Steps, file: Path, topic: str, replicas: list[int]) -> None:
        self.java, self.file = java, file
        partition = {"topic": topic, "partition": 0, "replicas": replicas}
        file.write_text(json.dumps({"version": 1, "partitions": [partition]}))

    def __call__(self, *args: str, exit_code: int = 0) -> str:
        words = ("--reassignment-json-file", str(self.file), *args)
        return run(self.java, REASSIGN, *words, exit_code=exit_code)


def plans(printed: str) -> list[dict[str, Any]]:
    """The assignments in what the command printed, in its order."""
    lines = [line for line in printed.splitlines() if line.startswith('{"version":1')]
    return [json.loads(line)["partitions"][0] for line in lines]


@pytest.mark.covers("S48", "S309")
def test_reassign_partitions_command_generates_executes_and_verifies(
    java: Steps, topics: Topics, tmp_path: Path
) -> None:
    """From 3, 1 to 2, 1, by the plan that it made, with a throttle that it takes away again."""
    name = topics.create("moved", "3:1")
    java.fill(name, range(5))
    wish = tmp_path / "wish.json"
    wish.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    generate = ("--topics-to-move-json-file", str(wish), "--broker-list", "1,2", "--generate")
    present, proposed = plans(run(java, REASSIGN, *generate))
    assert present["replicas"] == [3, 1]
    assert sorted(proposed["replicas"]) == [1, 2]
    move = Move(java, tmp_path / "plan.json", name, [2, 1])
    started = move("--execute", "--throttle", "1000000")
    assert plans(started)[0]["replicas"] == [3, 1]  # for the way back
    assert f"Successfully started partition reassignment for {name}-0" in started
    completed = f"Reassignment of partition {name}-0 is completed."
    wait_until(lambda: completed in move("--verify"))
    assert "Clearing topic-level throttles" in move("--verify")
    wait_until(lambda: topics.partition("moved") == ("2", [2, 1], {1, 2}))
    values = [record["value"] for record in java.read_all(name, 5)]
    assert values == ["0", "1", "2", "3", "4"]
    assert "No partition reassignments found." in run(java, REASSIGN, "--list")
    assert "None of the specified partition reassignments are active." in move("--cancel")


def test_reassign_partitions_command_refuses_what_is_not_there(
    java: Steps, topics: Topics, tmp_path: Path
) -> None:
    name = topics.create("still", "3:1")
    nowhere = Move(java, tmp_path / "nowhere.json", name, [2, 9])
    assert "Unknown broker id 9" in nowhere("--execute", exit_code=1)
    nothing = Move(java, tmp_path / "nothing.json", topics.name("none"), [1, 2])
    assert "UnknownTopicOrPartitionException" in nothing("--execute", exit_code=1)
    assert topics.partition("still")[1] == [3, 1]


def test_log_dirs_command_shows_where_replicas_lie(java: Steps, topics: Topics) -> None:
    name = topics.create("laid", "1:2", "3:1")
    java.fill(name, range(10), partition=0, timestamp=1000)

    def dirs(*args: str, exit_code: int = 0) -> str:
        return run(java, f"{TOOLS}.LogDirsCommand", "--describe", *args, exit_code=exit_code)

    def replicas() -> dict[int, dict[str, tuple[int, int]]]:
        (line,) = [each for each in dirs("--topic-list", name).splitlines() if each[:1] == "{"]
        return {
            broker["broker"]: {
                each["partition"].removeprefix(name): (each["size"], each["offsetLag"])
                for folder in broker["logDirs"]
                for each in folder["partitions"]
            }
            for broker in json.loads(line)["brokers"]
        }

    size = 141  # one batch of ten records of one byte each
    wait_until(lambda: replicas()[2] == {"-0": (size, 0)})
    assert replicas() == {
        1: {"-0": (size, 0), "-1": (0, 0)},
        2: {"-0": (size, 0)},
        3: {"-1": (0, 0)},
    }
    unknown = dirs("--broker-list", "1,9", exit_code=1)
    assert "The given brokers do not exist from --broker-list: 9" in unknown


def test_feature_command_describes_downgrades_and_upgrades(java: Steps) -> None:
    def features(*args: str, exit_code: int = 0) -> str:
        return run(java, f"{TOOLS}.FeatureCommand", *args, exit_code=exit_code)

    def level(feature: str) -> str:
        found = re.search(rf"{feature} .*FinalizedVersionLevel: (\S+)", features("describe"))
        assert found is not None
        return found[1]

    assert level("transaction.version") == "2"
    assert level("metadata.version").startswith("4.3-IV")
    one = ("--feature", "transaction.version=1")
    assert "can be downgraded" in features("downgrade", *one, "--dry-run")
    assert level("transaction.version") == "2"
    assert "transaction.version was downgraded to 1." in features("downgrade", *one)
    # Another broker of Kafka may answer, which has not heard of it yet.
    wait_until(lambda: level("transaction.version") == "1", what="version 1")
    two = ("--feature", "transaction.version=2")
    assert "transaction.version was upgraded to 2." in features("upgrade", *two)
    wait_until(lambda: level("transaction.version") == "2", what="version 2")
    refused = features("upgrade", "--feature", "transaction.version=9", exit_code=1)
    assert "Could not upgrade transaction.version to 9." in refused
    backwards = features("upgrade", "--release-version", "4.0-IV3", exit_code=1)
    assert "Could not upgrade metadata.version to 25." in backwards
    assert "group.version can be disabled." in features(
        "disable", "--feature", "group.version", "--dry-run"
    )
