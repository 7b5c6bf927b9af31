"""The controller's state of topics and partitions.

The functions that change it take a `ReplicationControl`: those of `elections` for leaders and ISRs,
of `reassignment` for replicas, and of `topic_plans` for new topics and partitions.

Source: ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.log.leader_epoch_cache import NO_EPOCH

if TYPE_CHECKING:
    from mockbroker.core.metadata.image import MetadataImage
    from mockbroker.core.replication.partition import Partition, PartitionKey
    from mockbroker.core.replication.replica_manager import ReplicaManager
    from mockbroker.core.services import Services

ELR_FEATURE = "eligible.leader.replicas.version"


class Reassignment(NamedTuple):
    """Replicas that a reassignment adds to a partition's replicas and removes from them."""

    adding: list[int]
    removing: list[int]


NOT_REASSIGNED = Reassignment([], [])


class ReplicationControl:
    """The topics and partitions of one cluster, in the controller's image."""

    __slots__ = (
        "_features",
        "_unified_names",
        "configs",
        "deleted_epoch",
        "former_epochs",
        "metadata",
        "on_leader_elected",
        "profile",
        "reassignments",
        "replication",
        "runtime",
    )

    def __init__(self, services: Services, replication: ReplicaManager) -> None:
        self.runtime = services.runtime
        self.configs = services.configs
        self.profile = services.profile
        self.metadata = services.metadata
        self.replication = replication
        self._features = services.features
        self._unified_names: dict[str, set[str]] = {}
        # The highest leader epoch of all partitions of deleted topics. A snapshot may restore such
        # a topic.
        self.deleted_epoch = NO_EPOCH
        # The last leader epochs of partitions that a restored snapshot took from a topic, by topic
        # id and index. CreatePartitions may create them again.
        self.former_epochs: dict[bytes, dict[int, int]] = {}
        # Reassignments whose target replicas are not all in sync.
        self.reassignments: dict[PartitionKey, Reassignment] = {}
        # Called with a partition after a change of its leader or leader epoch.
        self.on_leader_elected: list[Callable[[Partition], None]] = []

    @property
    def image(self) -> MetadataImage:
        """The newest image, which the controller changes in place."""
        return self.metadata.image

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are kept (KIP-966)."""
        return self._features.level(ELR_FEATURE) > 0

    def reassignment_of(self, partition: Partition) -> Reassignment:
        """The reassignment of the partition; empty lists without one."""
        return self.reassignments.get(partition.key, NOT_REASSIGNED)

    # -- names of topics that would collide --------------------------------------------------------

    def colliding_topic(self, name: str) -> str | None:
        """A topic whose name equals `name` with dots as underscores; None without one."""
        if "." not in name and "_" not in name:
            return None
        return min(self._unified_names.get(name.replace(".", "_"), ()), default=None)

    def name_added(self, name: str) -> None:
        """Record that a topic of this name was created."""
        if "." in name or "_" in name:
            self._unified_names.setdefault(name.replace(".", "_"), set()).add(name)

    def name_removed(self, name: str) -> None:
        """Record that the topic of this name was deleted."""
        names = self._unified_names.get(name.replace(".", "_"))
        if names is not None:
            names.discard(name)
