"""Clients that do this and that, and a cluster to which this and that happens, from a seed."""

from __future__ import annotations

from random import Random

from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker.core.security.acls import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
)
from mockbroker.core.security.acls import ResourceType as AclType
from mockbroker.core.security.sasl.scram_credential import ScramMechanism, from_password
from mockbroker.core.snapshot.image import ClusterImage
from tests.support.group_node import commit_request
from tests.support.requests import batch_of
from tests.support.stored_clusters import revived
from tests.support.txn_node import Txn, TxnNode


class Life:
    """Clients that do this and that to a cluster of one broker."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.node = TxnNode()
        self.txns = [self.node.txn("x"), self.node.txn("y")]
        self.open: dict[str, list[int]] = {}  # transactional id -> next sequence by partition

    def go_on_as(self, image: ClusterImage) -> None:
        """The cluster is that of an image, and its transactional producers are new ones."""
        node = self.node
        node.now_ms = max(node.now_ms, image.at_ms)
        node.cluster = revived(image, now_ms=lambda: node.now_ms)
        node.cluster.brokers[1].set_endpoint("PLAINTEXT", "127.0.0.1", 9001)
        node.settle()
        self.txns = [node.txn("x again"), node.txn("y again")]

    def step(self) -> None:
        draw = self.draw
        kinds = ["records", "idempotent", "txn", "txn", "txn", "commit", "set", "time", "topic"]
        getattr(self, f"do_{draw.choice(kinds)}")()

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
                AclOperation.READ,
                AclPermissionType.DENY,
            )
        )
        cluster.metadata.changed()

    def do_topic(self) -> None:
        cluster, name = self.node.cluster, f"other{self.draw.randrange(3)}"
        if name in cluster.topics:
            cluster.delete_topic(name)
        else:
            cluster.create_topic(name, self.draw.randint(1, 3), 1)

    def do_time(self) -> None:
        self.node.advance(self.draw.choice([1, 2000]))
