"""The log directories of one broker: which replica lies where, and which directories have failed.

A broker has the directories of `log.dirs`. A new replica goes to the one with the fewest replicas
(LogManager.nextLogDirs), unless AlterReplicaLogDirs asked for another beforehand. Nothing is
written: a directory is a name, and a failed one takes its replicas away until the broker restarts
with it mended.

Source: LogManager, ReplicaManager.alterReplicaLogDirs, DescribeLogDirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.configs import ClusterConfigs
    from mockbroker.core.partition import Partition


class LogDirs:
    """Directories by path. As long as there is only one, nothing is kept per replica."""

    __slots__ = ("_configs", "_places", "failed")

    def __init__(self, configs: ClusterConfigs) -> None:
        self._configs = configs
        self._places: dict[Partition, str] = {}
        self.failed: set[str] = set()

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
        place = self._places.get(partition)
        if place is None:
            place = self._places[partition] = self._emptiest()
        return place

    def _emptiest(self) -> str:
        """The live directory with the fewest replicas, the first of several."""
        counts = dict.fromkeys((p for p in self.paths if p not in self.failed), 0)
        for place in self._places.values():
            if place in counts:
                counts[place] += 1
        return min(counts, key=counts.__getitem__, default=self.paths[0])

    def move(self, partition: Partition, path: str) -> None:
        """Let a replica lie in `path` from now on."""
        if len(self.paths) > 1:
            self._places[partition] = path

    def forget(self, partition: Partition) -> None:
        """The broker holds no replica of the partition any more."""
        self._places.pop(partition, None)

    def has(self, partition: Partition) -> bool:
        """Whether the replica's directory is there; a failed one answers KAFKA_STORAGE_ERROR."""
        return not self.failed or self.place_of(partition) not in self.failed
