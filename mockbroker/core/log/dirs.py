"""The log directories of one broker: which replica is in which, and which have failed.

A broker has the directories of `log.dirs`. A new replica goes to the one with the fewest replicas
(LogManager.nextLogDirs), unless AlterReplicaLogDirs asked for another beforehand. A replica that is
moved has a *future* in its new directory until that has everything. Nothing is written: a directory
is a name, and a failed one takes its replicas away until the broker is started again, mended.

Source: LogManager, ReplicaManager.alterReplicaLogDirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.replication.partition import Partition, PartitionKey


class LogDirs:
    """Directories by path. As long as there is only one, nothing is kept per replica."""

    __slots__ = ("_configs", "_places", "_wanted", "failed", "futures", "recovery_points")

    def __init__(self, configs: ClusterConfigs) -> None:
        self._configs = configs
        self._places: dict[PartitionKey, str] = {}
        # Where a replica is to go that is not here yet, by topic and partition.
        self._wanted: dict[tuple[str, int], str] = {}
        self.futures: dict[PartitionKey, str] = {}  # replicas on their way to another directory
        self.failed: set[str] = set()
        # Below these offsets everything was flushed, at the last orderly end or start.
        self.recovery_points: dict[PartitionKey, int] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """All directories, failed ones included."""
        paths = self._configs.get("log.dirs") or self._configs.get("log.dir")
        assert isinstance(paths, tuple)
        return paths

    def place_of(self, partition: Partition) -> str:
        """The directory of a replica that this broker holds; decided when first asked."""
        paths = self.paths
        if len(paths) == 1:
            return paths[0]
        place = self._places.get(partition.key)
        if place is None:
            wanted = self._wanted.pop((partition.topic.name, partition.index), None)
            place = self._places[partition.key] = wanted or self._emptiest()
        return place

    def put(self, partition: Partition, path: str) -> None:
        """Set the directory of a replica."""
        self._places[partition.key] = path

    @property
    def are_several(self) -> bool:
        return len(self.paths) > 1

    def _emptiest(self) -> str:
        """The live directory with the fewest replicas, the first of several."""
        counts = dict.fromkeys((p for p in self.paths if p not in self.failed), 0)
        for place in self._places.values():
            if place in counts:
                counts[place] += 1
        return min(counts, key=counts.__getitem__, default=self.paths[0])

    def want(self, topic: str, index: int, path: str) -> None:
        """Let a replica go to `path` when it comes to be."""
        self._wanted[topic, index] = path

    def begin_move(self, partition: Partition, path: str) -> bool:
        """Start to copy a replica to `path`, instead of wherever it was on its way to; False if it
        is there already.
        """
        self.futures.pop(partition.key, None)
        if self.place_of(partition) == path:
            return False
        self.futures[partition.key] = path
        return True

    def end_move(self, partition: Partition) -> None:
        """The copy has everything: it takes the replica's place."""
        path = self.futures.pop(partition.key, None)
        if path is not None and path not in self.failed:
            self._places[partition.key] = path

    def forget(self, partition: Partition) -> None:
        """The broker holds no replica of the partition any more."""
        self._places.pop(partition.key, None)
        self.futures.pop(partition.key, None)
        self.recovery_points.pop(partition.key, None)

    def has(self, partition: Partition) -> bool:
        """Whether the directory of a replica, which the broker holds, is there."""
        return not self.failed or self.place_of(partition) not in self.failed

    def lost(self, partition: Partition) -> bool:
        """Whether the broker held a replica in a directory that has failed: requests for it are
        answered KAFKA_STORAGE_ERROR.
        """
        return bool(self.failed) and self._places.get(partition.key) in self.failed
