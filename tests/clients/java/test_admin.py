"""Admin: topics, configs, partitions, offsets, records, and what it shows of the cluster."""

from __future__ import annotations

import time

import pytest

from tests.clients.java.steps import Steps

pytestmark = pytest.mark.java

NOBODY = "AAAAAAAAAAAAAAAAAAAAFQ"


# -- topics ----------------------------------------------------------------------------------------


@pytest.mark.covers("S31")
def test_a_created_topic_is_described_by_name_and_by_id(java: Steps) -> None:
    name = java.unique("created")
    replicas = min(2, java.peer.brokers)
    spec = {
        "name": name,
        "partitions": 3,
        "replicas": replicas,
        "configs": {"retention.ms": "60000"},
    }
    created = java.create(spec)[name]
    assert (created["partitions"], created["replicas"]) == (3, replicas)
    assert created["configs"]["retention.ms"]["value"] == "60000"
    assert created["configs"]["cleanup.policy"]["value"] == "delete"
    by_name = java.admin("describeTopics", topics=[name])[name]
    by_id = java.admin("describeTopics", ids=[created["id"]])[created["id"]]
    assert by_name == by_id | {"partitions": by_name["partitions"]}
    assert (by_name["id"], by_name["internal"]) == (created["id"], False)
    for number, partition in enumerate(by_name["partitions"]):
        assert partition["partition"] == number
        assert partition["leader"] == partition["replicas"][0]
        assert len(set(partition["replicas"])) == replicas
        assert sorted(partition["isr"]) == sorted(partition["replicas"])


def test_many_partitions_are_described_page_by_page(java: Steps) -> None:
    topic = java.topic(partitions=7)
    described = java.admin("describeTopics", topics=[topic], pageSize=2)[topic]
    assert [each["partition"] for each in described["partitions"]] == list(range(7))


def test_a_manual_assignment_is_kept(java: Steps) -> None:
    brokers = list(range(1, java.peer.brokers + 1))
    name = java.unique("manual")
    assignments = {"0": brokers, "1": brokers[::-1]}
    java.create({"name": name, "assignments": assignments})
    partitions = java.admin("describeTopics", topics=[name])[name]["partitions"]
    assert [each["replicas"] for each in partitions] == [brokers, brokers[::-1]]


def test_defaults_stand_in_for_partitions_and_replicas(java: Steps) -> None:
    name = java.unique("defaults")
    created = java.admin("createTopics", topics=[{"name": name}])[name]
    assert (created["partitions"], created["replicas"]) == (1, 1)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"name": "bad name"}, "InvalidTopicException"),
        ({"name": "x" * 250}, "InvalidTopicException"),
        ({"name": ".."}, "InvalidTopicException"),
        ({"name": "t", "partitions": 0}, "InvalidPartitionsException"),
        ({"name": "t", "replicas": 0}, "InvalidReplicationFactorException"),
        ({"name": "t", "replicas": 9}, "InvalidReplicationFactorException"),
        ({"name": "t", "assignments": {"0": [1, 1]}}, "InvalidReplicaAssignmentException"),
        ({"name": "t", "assignments": {"0": [99]}}, "InvalidReplicaAssignmentException"),
        ({"name": "t", "assignments": {"1": [1]}}, "InvalidReplicaAssignmentException"),
        ({"name": "t", "configs": {"no.such.config": "1"}}, "InvalidConfigurationException"),
        ({"name": "t", "configs": {"retention.ms": "never"}}, "InvalidConfigurationException"),
    ],
    ids=str,
)
def test_bad_topics_are_refused(java: Steps, spec: dict[str, object], error: str) -> None:
    if spec["name"] == "t":
        spec = spec | {"name": java.unique("refused")}
    (outcome,) = java.admin("createTopics", topics=[spec]).values()
    assert outcome["error"] == error
    assert spec["name"] not in java.admin("listTopics")


def test_a_topic_cannot_be_made_twice_nor_by_a_dry_run(java: Steps) -> None:
    topic, dry = java.topic(), java.unique("dry")
    again = java.admin("createTopics", topics=[{"name": topic}])[topic]
    assert again["error"] == "TopicExistsException"
    planned = java.admin("createTopics", topics=[{"name": dry, "partitions": 2}], validateOnly=True)
    assert planned[dry]["partitions"] == 2
    assert dry not in java.admin("listTopics")


def test_topics_that_differ_in_dots_and_underscores_alone_collide(java: Steps) -> None:
    stem = java.unique("collide")
    java.create({"name": f"{stem}.x"})
    outcome = java.admin("createTopics", topics=[{"name": f"{stem}_x"}])[f"{stem}_x"]
    assert outcome["error"] == "InvalidTopicException"


def test_topics_are_deleted_by_name_and_by_id(java: Steps) -> None:
    by_name, by_id = java.topic(), java.topic()
    identity = java.admin("describeTopics", topics=[by_id])[by_id]["id"]
    assert java.admin("deleteTopics", topics=[by_name]) == {by_name: None}
    assert java.admin("deleteTopics", ids=[identity]) == {identity: None}
    java.until(lambda: {by_name, by_id}.isdisjoint(java.admin("listTopics")))
    again = java.admin("deleteTopics", topics=[by_name])[by_name]
    assert again["error"] == "UnknownTopicOrPartitionException"
    assert java.admin("deleteTopics", ids=[NOBODY])[NOBODY]["error"] == "UnknownTopicIdException"


def test_unknown_topics_are_not_described(java: Steps) -> None:
    absent = java.unique("absent")
    by_name = java.admin("describeTopics", topics=[absent])[absent]
    assert by_name["error"] == "UnknownTopicOrPartitionException"
    assert java.admin("describeTopics", ids=[NOBODY])[NOBODY]["error"] == "UnknownTopicIdException"


def test_internal_topics_are_listed_on_demand(java: Steps) -> None:
    topic = java.topic()
    consumer = java.consumer(java.unique("group"))
    java("assign", consumer, partitions=[f"{topic}-0"])
    java("commit", consumer, offsets={f"{topic}-0": 0})
    assert "__consumer_offsets" not in java.admin("listTopics")
    assert "__consumer_offsets" in java.admin("listTopics", internal=True)
    described = java.admin("describeTopics", topics=["__consumer_offsets"])["__consumer_offsets"]
    assert (described["internal"], len(described["partitions"])) == (True, 50)


# -- partitions and configs ------------------------------------------------------------------------


def test_partitions_can_only_grow(java: Steps) -> None:
    topic = java.topic(partitions=2)
    assert java.admin("createPartitions", counts={topic: 4}) == {topic: None}
    java.until(lambda: len(java.described(topic)[0]["partitions"]) == 4)
    for count in (3, 4):
        refused = java.admin("createPartitions", counts={topic: count})[topic]
        assert refused["error"] == "InvalidPartitionsException"
    absent = java.unique("absent")
    refused = java.admin("createPartitions", counts={absent: 4})[absent]
    assert refused["error"] == "UnknownTopicOrPartitionException"


@pytest.mark.covers("S303")
def test_topic_configs_tell_their_source_and_synonyms(java: Steps) -> None:
    topic = java.topic(retention_ms=1234)
    configs = java.admin("describeConfigs", resources=[{"name": topic}])[topic]
    retention, policy = configs["retention.ms"], configs["cleanup.policy"]
    assert (retention["value"], retention["source"]) == ("1234", "DYNAMIC_TOPIC_CONFIG")
    assert retention["type"] == "LONG"
    assert ["retention.ms", "1234", "DYNAMIC_TOPIC_CONFIG"] in retention["synonyms"]
    assert (policy["value"], policy["source"], policy["type"]) == (
        "delete",
        "DEFAULT_CONFIG",
        "LIST",
    )
    assert policy["synonyms"] == [["log.cleanup.policy", "delete", "DEFAULT_CONFIG"]]


def test_broker_configs_are_described(java: Steps) -> None:
    resource = {"type": "BROKER", "name": "1"}
    configs = java.admin("describeConfigs", resources=[resource])["1"]
    assert configs["num.partitions"]["value"] == "1"
    assert configs["node.id"]["value"] == "1"
    assert configs["node.id"]["readOnly"]
    assert not configs["log.cleaner.threads"]["readOnly"]


def test_configs_are_set_appended_subtracted_and_deleted(java: Steps) -> None:
    topic = java.topic()

    def alter(*ops: list[str | None]) -> object:
        return java.admin("incrementalAlterConfigs", resource={"name": topic}, ops=ops)

    def value(name: str) -> tuple[str, str]:
        entry = java.admin("describeConfigs", resources=[{"name": topic}])[topic][name]
        return entry["value"], entry["source"].partition("_")[0]

    assert alter(["SET", "retention.ms", "99"], ["APPEND", "cleanup.policy", "compact"]) is None
    java.until(lambda: value("retention.ms") == ("99", "DYNAMIC"))
    java.until(lambda: value("cleanup.policy") == ("delete,compact", "DYNAMIC"))
    assert alter(["SUBTRACT", "cleanup.policy", "delete"]) is None
    java.until(lambda: value("cleanup.policy") == ("compact", "DYNAMIC"))
    assert alter(["DELETE", "retention.ms", None], ["DELETE", "cleanup.policy", None]) is None
    java.until(lambda: value("retention.ms") == ("604800000", "DEFAULT"))
    java.until(lambda: value("cleanup.policy") == ("delete", "DEFAULT"))


@pytest.mark.parametrize(
    ("op", "error"),
    [
        (["SET", "retention.ms", "never"], "InvalidConfigurationException"),
        (["SET", "no.such.config", "1"], "InvalidConfigurationException"),
        (["APPEND", "retention.ms", "1"], "InvalidConfigurationException"),
    ],
    ids=str,
)
def test_bad_config_changes_are_refused(java: Steps, op: list[str], error: str) -> None:
    topic = java.topic()
    outcome = java.tour(
        "admin.incrementalAlterConfigs",
        bootstrap=java.peer.bootstrap_servers,
        resource={"name": topic},
        ops=[op],
    )
    assert outcome["error"] == error


def test_configs_of_an_unknown_topic_are_refused(java: Steps) -> None:
    absent = java.unique("absent")
    described = java.admin("describeConfigs", resources=[{"name": absent}])[absent]
    assert described["error"] == "UnknownTopicOrPartitionException"


# -- offsets and records ---------------------------------------------------------------------------


def test_offsets_are_listed_by_every_spec(java: Steps) -> None:
    topic = java.topic()
    now = int(time.time() * 1000) - 50_000
    for after in (0, 5000, 2000):
        java.fill(topic, ["v"], timestamp=now + after)
    partition = f"{topic}-0"
    wanted = {
        "earliest": (0, -1),
        "latest": (3, -1),
        "max": (1, now + 5000),
        str(now + 1): (1, now + 5000),
        str(now + 9000): (-1, -1),
    }
    found = {spec: java.admin("listOffsets", specs={partition: spec})[partition] for spec in wanted}
    assert {spec: (each["offset"], each["timestamp"]) for spec, each in found.items()} == wanted


def test_the_max_timestamp_of_an_empty_log_is_unknown(java: Steps) -> None:
    partition = f"{java.topic()}-0"
    found = java.admin("listOffsets", specs={partition: "max"})[partition]
    assert (found["offset"], found["timestamp"]) == (-1, -1)


@pytest.mark.covers("S307")
def test_deleted_records_move_the_log_start(java: Steps) -> None:
    topic = java.topic()
    partition = f"{topic}-0"
    java.fill(topic, range(10))
    assert java.admin("deleteRecords", before={partition: 4}) == {partition: 4}
    assert java.admin("listOffsets", specs={partition: "earliest"})[partition]["offset"] == 4
    assert [each["value"] for each in java.read_all(topic, 6)] == [str(n) for n in range(4, 10)]
    beyond = java.admin("deleteRecords", before={partition: 11})[partition]
    assert beyond["error"] == "OffsetOutOfRangeException"
    assert java.admin("deleteRecords", before={partition: -1}) == {partition: 10}


def test_records_of_a_compacted_topic_are_not_deleted(java: Steps) -> None:
    partition = f"{java.topic(cleanup_policy='compact')}-0"
    refused = java.admin("deleteRecords", before={partition: -1})[partition]
    assert refused["error"] == "PolicyViolationException"


# -- the cluster -----------------------------------------------------------------------------------


def test_the_cluster_names_its_nodes_and_a_controller(java: Steps) -> None:
    cluster = java.admin("describeCluster")
    addresses = [f"{node['host']}:{node['port']}" for node in cluster["nodes"]]
    assert ",".join(addresses) == java.peer.bootstrap_servers
    ids = [node["id"] for node in cluster["nodes"]]
    assert ids == list(range(1, java.peer.brokers + 1))
    assert cluster["controller"] in ids
    assert len(cluster["id"]) == 22


@pytest.mark.covers("S1")
def test_log_directories_show_each_replica(java: Steps) -> None:
    topic = java.topic(partitions=2, replicas=java.peer.brokers)
    java.fill(topic, ["x" * 1000], partition=1)
    ids = list(range(1, java.peer.brokers + 1))
    dirs = java.admin("describeLogDirs", brokers=ids)
    for broker in map(str, ids):
        empty, filled = dirs[broker][f"{topic}-0"], dirs[broker][f"{topic}-1"]
        assert (empty["size"], empty["lag"]) == (0, 0)
        assert 1000 < filled["size"] < 1200
        assert filled["lag"] == 0


def test_the_metadata_quorum_has_a_leader_and_voters(java: Steps) -> None:
    quorum = java.admin("describeQuorum")
    assert quorum["leader"] in quorum["voters"]
    assert quorum["highWatermark"] > 0
    assert quorum["epoch"] > 0


def test_the_features_are_those_of_the_release(java: Steps) -> None:
    features = java.admin("describeFeatures")
    assert "metadata.version" in features["finalized"]
    assert "transaction.version" in features["supported"]


def test_preferred_leaders_need_no_election(java: Steps) -> None:
    partition = f"{java.topic()}-0"
    outcome = java.admin("electLeaders", partitions=[partition])
    assert outcome[partition]["error"] == "ElectionNotNeededException"
