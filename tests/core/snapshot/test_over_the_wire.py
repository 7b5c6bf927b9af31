"""Clients get the same answers from a cluster after it was saved and loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

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
from tests.support.life import Life
from tests.support.stored_clusters import Stored, loaded, revived, whole
from tests.support.txn_node import TxnNode

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
