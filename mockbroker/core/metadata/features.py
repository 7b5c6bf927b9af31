"""The features of the cluster and their levels (KIP-584), as in ApiVersions.

Java producers choose the transaction protocol by `transaction.version`. A client accepts levels
only from an answer with a higher epoch, so every change raises `epoch`.
"""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.core.metadata.profiles import Feature


class Features:
    """The supported ranges of a release and the levels now in force ("finalized")."""

    __slots__ = ("epoch", "levels", "memo", "supported")

    def __init__(self, supported: Mapping[str, Feature]) -> None:
        self.supported = dict(supported)
        self.levels: dict[str, int] = {
            name: feature.level for name, feature in supported.items() if feature.level > 0
        }
        self.epoch = 0
        # Encoded ApiVersions answers; dropped when a level changes.
        self.memo: dict[object, object] = {}

    def level(self, name: str) -> int:
        """The level in force; 0 for a feature that is off or unknown."""
        return self.levels.get(name, 0)

    def set_levels(self, levels: Mapping[str, int]) -> None:
        """Put levels in force; 0 switches a feature off."""
        self.levels.update(levels)
        self.levels = {name: level for name, level in self.levels.items() if level > 0}
        self.epoch += 1
        self.memo.clear()
