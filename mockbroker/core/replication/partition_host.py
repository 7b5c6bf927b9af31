"""The environment of a partition, as interfaces: configs, metadata, log manager, recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.limits import BatchLimits
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.replication.replica import FollowerState
    from mockbroker.core.runtime import Runtime


class PartitionMetadata(Protocol):
    """The metadata that a partition's leader uses (see `MetadataCache`)."""

    def has_newest_image(self, node_id: int) -> bool:
        """Whether the broker exists and has the newest image."""
        ...

    def is_leader_object(self, partition: Partition) -> bool:
        """Whether the leader's image has this object for the partition."""
        ...

    def is_alive(self, partition: Partition, node_id: int) -> bool:
        """Whether a broker is registered and unfenced in the leader's image."""
        ...

    def is_isr_eligible(self, partition: Partition, state: FollowerState) -> bool:
        """Whether, by the leader's image, the controller would accept a follower into the ISR."""
        ...


class PartitionRecorder(Protocol):
    """Records what changes in partitions."""

    def partition_changed(self, partition: Partition) -> None:
        """The metadata, the log, a watermark or a replica of the partition changed."""
        ...


class LogMaintenance(Protocol):
    """Retention and the cleaner (see `LogManager`)."""

    def schedule(self, partition: Partition) -> None:
        """Visit the partition's log in the next round: it has changed."""
        ...


class PartitionHost(Protocol):
    """The environment of all partitions (ReplicaManager)."""

    walks_all_records: bool
    batch_limits: BatchLimits
    recorder: PartitionRecorder | None

    @property
    def runtime(self) -> Runtime: ...
    @property
    def configs(self) -> ClusterConfigs: ...
    @property
    def metadata(self) -> PartitionMetadata: ...
    @property
    def log_manager(self) -> LogMaintenance: ...
