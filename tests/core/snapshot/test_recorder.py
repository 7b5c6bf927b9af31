"""Recording a cluster: at any time its file gives an equal cluster."""

from __future__ import annotations

from random import Random

import pytest

from mockbroker.core.configs.alter import AlterConfigOp, OpType, alter_incrementally
from mockbroker.core.configs.resources import ConfigResourceType
from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker.core.security.acls import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
)
from mockbroker.core.security.acls import ResourceType as AclType
from mockbroker.core.security.sasl.scram_credential import ScramMechanism, from_password
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mockbroker_protocol.records import Record, build_batch
from tests.support.ask import ask
from tests.support.requests import NOW_MS, Node
from tests.support.stored_clusters import Stored, cluster_state, loaded, revived

ACL = AclBinding(
    AclType.TOPIC,
    "t",
    PatternType.LITERAL,
    "User:a",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)


def one_batch(value: bytes = b"v", count: int = 1) -> bytearray:
    return build_batch([Record(at, NOW_MS, b"k", value) for at in range(count)])


@pytest.fixture
def node() -> Node:
    return Node(racks=["a", "b", None])


def check(node: Node, stored: Stored) -> None:
    """The file comes to the cluster as it is."""
    stored.flush()
    assert cluster_state(revived(loaded(stored.data))) == cluster_state(node.cluster)


def test_nothing_is_written_while_nothing_changes(node):
    node.topic("t")
    stored = Stored(node.cluster)
    assert stored.flush() == 0
    assert stored.calls == 0
    check(node, stored)


def test_the_recorder_calls_once_when_there_are_changes(node):
    node.topic("t")
    stored = Stored(node.cluster)
    for _ in range(3):
        node.produce(one_batch())
    assert stored.calls == 1
    stored.flush()
    node.produce(one_batch())
    assert stored.calls == 2


def test_a_batch_costs_little_more_than_itself(node):
    node.topic("t")
    stored = Stored(node.cluster)
    node.produce(one_batch())
    stored.flush()
    batch = one_batch()
    node.produce(batch)
    assert len(batch) < stored.flush() < len(batch) + 160
    check(node, stored)


def test_topics_are_created_changed_extended_and_deleted(node):
    stored = Stored(node.cluster)
    node.topic("t", partitions=3, retention_ms="1000")
    node.topic("gone")
    node.produce(one_batch(), topic="gone")
    check(node, stored)
    topic = node.cluster.topics["t"]
    node.cluster.replace_topic_configs(topic, {"retention.ms": "5"})
    node.cluster.topic_control.add_partitions(topic, 5)
    node.cluster.delete_topic("gone")
    check(node, stored)
    assert loaded(stored.data).topics[0].overrides == {"retention.ms": "5"}
    assert len(loaded(stored.data).topics) == 1


def test_the_deletions_of_the_past_do_not_make_the_next_one_longer(node):
    """Their leaders had changed, and an older snapshot may bring them back."""
    stored = Stored(node.cluster)

    def written_bytes(name: str) -> int:
        node.topic(name)
        partition = node.cluster.topics[name].partitions[0]
        other = next(n for n in partition.replicas if n != partition.leader_id)
        node.cluster.move_leader(name, 0, other)
        stored.flush()
        node.cluster.delete_topic(name)
        return stored.flush()

    first, *_, last = (written_bytes(f"t{number:03}") for number in range(100))
    assert last < first + 100
    check(node, stored)


def test_a_topic_created_again_under_its_name_is_another(node):
    node.topic("t")
    stored = Stored(node.cluster)
    node.produce(one_batch())
    stored.flush()
    node.cluster.delete_topic("t")
    node.topic("t")
    node.produce(one_batch(b"other"))
    check(node, stored)


def test_followers_share_the_written_batches_of_their_leader(node):
    node.topic("t")
    stored = Stored(node.cluster)
    node.produce(one_batch(b"x" * 5000))
    stored.flush()
    node.cluster.stop_broker(2, "unclean")
    node.produce(one_batch())
    assert stored.flush() < 2500
    check(node, stored)
    node.cluster.stop_broker(1, "unclean")
    check(node, stored)
    node.cluster.start_broker(2)
    node.advance(1000)
    node.cluster.start_broker(1)
    check(node, stored)
    node.advance(1000)
    check(node, stored)


def test_an_unclean_election_leaves_two_histories_in_the_file(node):
    partition = node.topic("t", unclean_leader_election_enable="true", min_insync_replicas="1")
    stored = Stored(node.cluster)
    node.produce(one_batch(b"both"))
    node.cluster.stop_broker(2, "unclean")
    node.cluster.stop_broker(3, "unclean")
    node.produce(one_batch(b"lost"))
    stored.flush()
    node.cluster.stop_broker(1, "unclean")
    node.cluster.start_broker(2)
    if partition.leader_id != 2:
        node.cluster.elect_unclean("t", 0, 2)
    node.produce(one_batch(b"kept"), broker=2)
    check(node, stored)
    again = revived(loaded(stored.data)).topics["t"].partitions[0]
    assert b"kept" in b"".join(again.log.batches())
    assert b"lost" in b"".join(again.own_replicas[1].log.batches())


def test_a_replica_that_moved_to_another_directory_stays_there():
    node = Node(configs={"log.dirs": "/a,/b"})
    partition = node.topic("t")
    stored = Stored(node.cluster)
    present = node.cluster.brokers[1].log_dirs.dir_of(partition)
    target = "/b" if present == "/a" else "/a"
    wanted = AlterReplicaLogDir(target, [AlterReplicaLogDirTopic("t", [0])])
    ask(node, ApiKey.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsRequest([wanted]))
    node.advance(1)
    assert stored.flush() > 0
    again = revived(loaded(stored.data))
    moved = again.topics["t"].partitions[0]
    assert again.brokers[1].log_dirs.dir_of(moved) == target


def test_settings_of_every_kind_are_written(node):
    cluster = node.cluster
    node.topic("t")
    stored = Stored(cluster)

    def written(change: object) -> None:
        assert stored.flush() > 0, change
        check(node, stored)

    broker = cluster.brokers[1]
    for kind, name, config, value in (
        (ConfigResourceType.BROKER, "", "message.max.bytes", "5000"),
        (ConfigResourceType.BROKER, "1", "log.cleaner.threads", "2"),
        (ConfigResourceType.GROUP, "g", "consumer.session.timeout.ms", "50000"),
        (ConfigResourceType.CLIENT_METRICS, "m", "interval.ms", "5000"),
        (ConfigResourceType.TOPIC, "t", "retention.ms", "7"),
    ):
        alter_incrementally(
            cluster,
            broker,
            (kind, name),
            [AlterConfigOp(config, OpType.SET, value)],
            validate_only=False,
        )
        written(config)
    cluster.quotas.alter(
        entity_of([("user", None)]), {"producer_byte_rate": 5.0}, validate_only=False
    )
    cluster.metadata.changed()
    written("quota")
    mechanism = ScramMechanism.SCRAM_SHA_256
    cluster.scram_credentials["alice"] = {1: from_password(mechanism, "secret", b"salt")}
    cluster.metadata.changed()
    written("credential")
    cluster.acls.add(ACL)
    written("acl")
    cluster.acls.remove([ACL])
    written("acl gone")
    cluster.features.set_levels({"transaction.version": 1})
    written("feature")
    cluster.set_rack(1, "elsewhere")
    written("rack")
    cluster.add_broker(7, "new")
    written("broker")
    cluster.remove_broker(2)
    written("no broker")
    cluster.pause_broker(3)
    written("pause")
    cluster.runtime.ids.producer_id(1)
    assert stored.flush() > 0
    assert loaded(stored.data).ids.producer_block == cluster.runtime.ids.position[1]


def test_a_new_file_continues_like_the_old_one(node):
    node.topic("t", partitions=2)
    stored = Stored(node.cluster)
    for at in range(20):
        node.produce(one_batch(), partition=at % 2)
        stored.flush()
    node.cluster.stop_broker(3)
    long = len(stored.data)
    stored.begin_again()
    assert len(stored.data) < long
    node.produce(one_batch())
    node.cluster.start_broker(3)
    check(node, stored)


def test_after_a_restart_only_what_changes_is_written(node):
    node.topic("t")
    stored = Stored(node.cluster)
    node.produce(one_batch(b"x" * 4000))
    node.cluster.stop_broker(3, "unclean")
    node.produce(one_batch(b"y" * 4000))
    stored.flush()
    node.cluster = stored.resumed(now_ms=lambda: node.now_ms)
    assert stored.flush() < 200
    node.cluster.start_broker(3)
    node.advance(2000)
    node.produce(one_batch(b"z"))
    node.topic("more")
    assert stored.flush() < 4500  # the follower's own copy of what it lacked among it
    check(node, stored)


def test_records_of_a_broker_without_the_controller_are_in_its_own_log_only(node):
    """After a restart of everything it is back with the others, and cuts off what they lack."""
    node.topic("t")
    stored = Stored(node.cluster)
    node.produce(one_batch(b"everywhere"))
    node.cluster.cut_network(1)
    stored.flush()
    node.produce(one_batch(b"nowhere"), acks=1)
    assert stored.flush() > 0
    node.cluster = stored.resumed(now_ms=lambda: node.now_ms)
    (partition,) = node.cluster.topics["t"].partitions
    assert b"nowhere" not in b"".join(partition.log.batches())
    assert b"nowhere" in b"".join(partition.replica(1).log.batches())
    node.advance(2000)
    assert b"nowhere" not in b"".join(partition.replica(1).log.batches())


ACTIONS = (
    "produce", "produce", "produce", "produce", "topic", "delete", "stop", "kill", "start",
    "pause", "resume", "cut", "heal", "lag", "release", "move", "unclean", "records", "config",
    "retention", "later", "later", "flush", "anew", "isr", "restart",
)  # fmt: skip


def act(node: Node, draw: Random, stored: Stored) -> None:  # noqa: C901 - a list of actions
    cluster = node.cluster
    action = draw.choice(ACTIONS)
    broker = draw.choice([1, 2, 3])
    topic = draw.choice(sorted(cluster.topics) or ["none"])
    match action:
        case "produce":
            leader = cluster.topics[topic].partitions[0].leader_id if topic != "none" else -1
            if leader in cluster.brokers:
                node.produce(
                    one_batch(draw.randbytes(draw.choice([3, 300])), draw.choice([1, 4])),
                    topic=topic,
                    acks=draw.choice([-1, 1]),
                    broker=leader,
                )
        case "topic":
            policy = draw.choice(["delete", "compact"])
            name = f"t{draw.randrange(6)}"
            cluster.create_topic(
                name,
                assignments={0: draw.sample([1, 2, 3], 3), 1: [broker]},
                configs={
                    "cleanup.policy": policy,
                    "unclean.leader.election.enable": draw.choice(["true", "false"]),
                    "retention.ms": "5000",
                    "segment.ms": "2000",
                },
            )
        case "delete":
            cluster.delete_topic(topic)
        case "stop" | "kill":
            cluster.stop_broker(broker, "controlled" if action == "stop" else "unclean")
        case "start":
            cluster.start_broker(broker)
        case "pause":
            cluster.pause_broker(broker, draw.choice([0, 3000]))
        case "resume":
            cluster.resume_broker(broker)
        case "cut":
            cluster.cut_network(broker)
        case "heal":
            cluster.heal_network()
        case "lag":
            cluster.lag_follower(topic, 0, node=broker)
        case "release":
            cluster.lag_follower(topic, 0, node=broker, release=True)
        case "move":
            cluster.move_leader(topic, 0, broker)
        case "unclean":
            cluster.elect_unclean(topic, 0, broker)
        case "isr":
            cluster.shrink_isr(topic, 0, nodes=[broker])
        case "records":
            partition = cluster.topics[topic].partitions[0]
            partition.delete_records(draw.randint(0, max(partition.high_watermark, 0)))
        case "config":
            cluster.replace_topic_configs(
                cluster.topics[topic], {"retention.ms": str(draw.randrange(9000))}
            )
        case "retention":
            cluster.run_retention()
            cluster.run_compaction().run()
        case "later":
            node.advance(draw.choice([1, 700, 4000]))
        case "flush":
            stored.flush()
        case "anew":
            stored.begin_again()
        case "restart":
            cluster.heal_network()
            stored.flush()
            node.cluster = stored.resumed(now_ms=lambda: node.now_ms)


@pytest.mark.parametrize("seed", range(25))
def test_any_history_of_a_cluster_is_the_same_in_its_file(seed):
    draw = Random(seed)
    node = Node(racks=["a", None, "b"])
    node.topic("t0", partitions=2)
    stored = Stored(node.cluster)
    for _ in range(60):
        try:
            act(node, draw, stored)
        except (ActionError, ApiError, KeyError):
            continue
    node.cluster.heal_network()
    # A follower that lags is written with the next change of its partition.
    for topic in node.cluster.topics.values():
        for partition in topic.partitions:
            partition.notify()
    check(node, stored)
