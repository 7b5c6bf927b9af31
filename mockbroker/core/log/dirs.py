"""The log directories of one broker: which replica is in which, and which have failed.

A broker has the directories of `log.dirs`. A new replica goes to the directory with the fewest
replicas (LogManager.nextLogDirs), unless AlterReplicaLogDirs has set another one. A replica that
moves has a *future* replica in its new directory until the copy is complete. Nothing is written: a
directory is a name. The replicas of a failed directory are offline until the broker is restarted.

Source: LogManager, ReplicaManager.alterReplicaLogDirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.replication.partition import Partition, PartitionKey


class LogDirs:
    """The directories of one broker. With one directory, no state is kept per replica."""

    __slots__ = ("_configs", "_dirs", "_preferred", "failed", "futures", "recovery_points")

    def __init__(self, configs: ClusterConfigs) -> None:
        self._configs = configs
        self._dirs: dict[PartitionKey, str] = {}
        # The directories for replicas that this broker does not have yet, by topic and partition.
        self._preferred: dict[tuple[str, int], str] = {}
        self.futures: dict[PartitionKey, str] = {}  # replicas that move to another directory
        self.failed: set[str] = set()
        # The recovery points at the last clean shutdown or start.
        self.recovery_points: dict[PartitionKey, int] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """All directories, failed ones included."""
        paths = self._configs.get("log.dirs") or self._configs.get("log.dir")
        assert isinstance(paths, tuple)
        return paths

    def dir_of(self, partition: Partition) -> str:
        """The directory of a replica of this broker; the first call chooses it."""
        paths = self.paths
        if len(paths) == 1:
            return paths[0]
        path = self._dirs.get(partition.key)
        if path is None:
            preferred = self._preferred.pop((partition.topic.name, partition.index), None)
            path = self._dirs[partition.key] = preferred or self._next_dir()
        return path

    def set_dir(self, partition: Partition, path: str) -> None:
        """Set the directory of a replica."""
        self._dirs[partition.key] = path

    @property
    def has_several(self) -> bool:
        return len(self.paths) > 1

    def _next_dir(self) -> str:
        """The online directory with the fewest replicas, the first of several."""
        counts = dict.fromkeys((p for p in self.paths if p not in self.failed), 0)
        for path in self._dirs.values():
            if path in counts:
                counts[path] += 1
        return min(counts, key=counts.__getitem__, default=self.paths[0])

    def prefer(self, topic: str, index: int, path: str) -> None:
        """Set the directory of a replica that the broker does not have yet (KIP-113)."""
        self._preferred[topic, index] = path

    def begin_move(self, partition: Partition, path: str) -> bool:
        """Start to move a replica to `path`, in path of an earlier move; False if it is there."""
        self.futures.pop(partition.key, None)
        if self.dir_of(partition) == path:
            return False
        self.futures[partition.key] = path
        return True

    def end_move(self, partition: Partition) -> None:
        """End a move: the future replica replaces the current one."""
        path = self.futures.pop(partition.key, None)
        if path is not None and path not in self.failed:
            self._dirs[partition.key] = path

    def remove(self, partition: Partition) -> None:
        """Remove the replica, because the broker no longer holds it."""
        self._dirs.pop(partition.key, None)
        self.futures.pop(partition.key, None)
        self.recovery_points.pop(partition.key, None)

    def is_online(self, partition: Partition) -> bool:
        """Whether the directory of a replica of this broker has not failed."""
        return not self.failed or self.dir_of(partition) not in self.failed

    def is_offline(self, partition: Partition) -> bool:
        """Whether the replica is in a failed directory; requests for it get KAFKA_STORAGE_ERROR."""
        return bool(self.failed) and self._dirs.get(partition.key) in self.failed
