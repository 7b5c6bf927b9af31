"""What clients can ask of a cluster has the same answers after it was saved and loaded."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker.core.security.acls import (
    AclBinding,
    Operation,
    PatternType,
    Permission,
)
from mockbroker.core.security.acls import ResourceType as AclType
from mockbroker.core.security.sasl.scram_credential import ScramMechanism, from_password
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.restore import restore
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.describe_acls import DescribeAclsRequest
from mockbroker_protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from mockbroker_protocol.messages.describe_cluster import DescribeClusterRequest
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from mockbroker_protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from mockbroker_protocol.messages.describe_transactions import DescribeTransactionsRequest
from mockbroker_protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.list_transactions import ListTransactionsRequest
from mockbroker_protocol.messages.metadata import MetadataRequest
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from tests.support.ask import ask
from tests.support.group_node import commit_request
from tests.support.requests import batch_of
from tests.support.stored_clusters import Stored, loaded, revived, whole
from tests.support.txn_node import Txn, TxnNode

GROUPS = ["g0", "g1", "offsets only"]


def questions(node: TxnNode) -> Iterator[tuple[ApiKey, Any]]:
    """Requests that change nothing, about everything."""
    topics = {name: len(topic.partitions) for name, topic in sorted(node.cluster.topics.items())}
    yield ApiKey.METADATA, MetadataRequest(topics=None)
    yield ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest()
    for timestamp in (-1, -2, -3, node.now_ms - 5):
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=timestamp % 2,
            topics=[
                ListOffsetsTopic(
                    name, [ListOffsetsPartition(at, timestamp=timestamp) for at in range(count)]
                )
                for name, count in topics.items()
            ],
        )
        yield ApiKey.LIST_OFFSETS, request
    yield (
        ApiKey.DESCRIBE_CONFIGS,
        DescribeConfigsRequest(
            resources=[
                *(DescribeConfigsResource(2, name) for name in topics),
                DescribeConfigsResource(4, "1"),
                DescribeConfigsResource(4, ""),
            ],
            include_synonyms=True,
        ),
    )
    yield ApiKey.LIST_GROUPS, ListGroupsRequest()
    yield ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=GROUPS)
    yield (
        ApiKey.OFFSET_FETCH,
        OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group, topics=None) for group in GROUPS]
        ),
    )
    producers = [TopicRequest(name, list(range(count))) for name, count in topics.items()]
    yield ApiKey.DESCRIBE_PRODUCERS, DescribeProducersRequest(topics=producers)
    yield ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest()
    yield ApiKey.DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(transactional_ids=["x", "y"])
    yield ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None)
    yield ApiKey.DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest()
    yield ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest(users=None)
    yield (
        ApiKey.DESCRIBE_ACLS,
        DescribeAclsRequest(1, None, 1, None, None, 1, 1),
    )


def answers(node: TxnNode) -> list[Any]:
    """The answers to all questions, and the bytes of every log as two kinds of consumers see it."""
    found = [
        msgspec.to_builtins(ask(node, key, request), str_keys=False)
        for key, request in questions(node)
    ]
    for name, topic in sorted(node.cluster.topics.items()):
        for partition in topic.partitions:
            for isolation in (0, 1):
                read = node.fetched((name, partition.index, 0), isolation_level=isolation)
                records = b"".join(read.records or ())
                found.append((read.high_watermark, read.aborted_transactions, records))
    return found


class Life:
    """Clients that do this and that to a cluster of one broker."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.node = TxnNode()
        self.txns = [self.node.txn("x"), self.node.txn("y")]
        self.open: dict[str, list[int]] = {}  # transactional id -> next sequence by partition

    def step(self) -> None:
        draw = self.draw
        kind = draw.choice(["records", "idempotent", "txn", "txn", "txn", "commit", "set", "time"])
        getattr(self, f"do_{kind}")()

    def do_records(self) -> None:
        values = [self.draw.randbytes(20) for _ in range(self.draw.randint(1, 5))]
        self.node.produce(
            batch_of(*values, timestamp=self.node.now_ms), partition=self.draw.randrange(3)
        )

    def do_idempotent(self) -> None:
        producer_id = self.node.cluster.runtime.ids.producer_id(1)
        batch = batch_of(b"i", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        self.node.produce(batch, partition=1)

    def do_txn(self) -> None:
        txn: Txn = self.draw.choice(self.txns)
        if txn.id not in self.open:
            partition = self.draw.randrange(3)
            assert txn.add(partition) == 0
            answer = txn.produce([b"t"], partition=partition)
            assert answer.error_code == 0
            self.open[txn.id] = [partition]
            return
        del self.open[txn.id]
        assert txn.end(committed=self.draw.random() < 0.5, version=5).error_code == 0
        self.node.advance(1000)

    def do_commit(self) -> None:
        offsets = {("t", self.draw.randrange(3)): self.draw.randrange(100)}
        self.node.ask(commit_request(offsets, "offsets only", metadata="noted"))

    def do_set(self) -> None:
        cluster, draw = self.node.cluster, self.draw
        number = draw.randrange(1000)
        cluster.quotas.alter(
            entity_of([("user", f"u{number % 5}")]),
            {"consumer_byte_rate": number + 1.0},
            validate_only=False,
        )
        cluster.replace_topic_configs(cluster.topics["t"], {"retention.ms": f"{10**9 + number}"})
        mechanism = ScramMechanism.SCRAM_SHA_256
        cluster.scram_credentials[f"u{number % 3}"] = {
            1: from_password(mechanism, "secret", b"%d" % number)
        }
        cluster.acls.add(
            AclBinding(
                AclType.TOPIC,
                f"t{number % 7}",
                PatternType.PREFIXED,
                "User:a",
                "*",
                Operation.READ,
                Permission.DENY,
            )
        )
        cluster.metadata.changed()

    def do_time(self) -> None:
        self.node.advance(self.draw.choice([1, 2000]))


def same_elsewhere(node: TxnNode, data: bytes | bytearray) -> TxnNode:
    other = TxnNode()
    other.now_ms = node.now_ms
    other.cluster = revived(loaded(data), now_ms=lambda: other.now_ms)
    other.cluster.brokers[1].set_endpoint("PLAINTEXT", "127.0.0.1", 9001)
    other.settle()
    return other


@pytest.mark.parametrize("seed", range(3))
def test_every_answer_is_the_same_after_a_save_and_a_load(seed):
    life = Life(seed)
    node = life.node
    for group in GROUPS[:2]:
        node.stable(group, count=life.draw.choice([1, 2]))
    stored = Stored(node.cluster)
    for _ in range(40):
        life.step()
        if life.draw.random() < 0.3:
            stored.flush()
    stored.flush()
    before = answers(node)
    assert answers(same_elsewhere(node, whole(capture(node.cluster)))) == before
    assert answers(same_elsewhere(node, stored.data)) == before
    restore(node.cluster, capture(node.cluster))
    node.settle()
    assert answers(node) == before
