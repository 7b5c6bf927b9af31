"""The profile of each Kafka release: the highest version of every API, and its features.

`--kafka-version` caps the cluster at one release, to test a client against an older broker. Only
maxima are capped; minima stay those of 4.3, because no older record format is ever written. The
maxima are those of the `kafka-clients` jar of each release, for client listeners: ZooKeeper-mode
brokers up to 3.2, KRaft brokers from 3.3 on, with the few APIs that only the former had.
"""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.core.errors import ConfigError

LATEST = "4.3"

_KAFKA_2_8 = (
    {0: 9, 1: 12, 2: 6, 3: 11, 8: 8, 9: 7, 10: 3, 11: 7, 12: 4, 13: 4, 14: 5, 15: 5, 16: 4, 17: 1}
    | {18: 3, 19: 7, 20: 6, 21: 2, 22: 4, 23: 4, 24: 3, 25: 3, 26: 3, 27: 1, 28: 3, 29: 2, 30: 2}
    | {31: 2, 32: 4, 33: 2, 34: 2, 35: 2, 36: 2, 37: 3, 38: 2, 39: 2, 40: 2, 41: 2, 42: 2, 43: 2}
    | {44: 1, 45: 0, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 51: 0, 57: 0, 60: 0, 61: 0}
)

# Added or raised by each later release: API key -> highest version.
_RAISED: dict[str, dict[int, int]] = {
    "3.0": {2: 7, 9: 8, 10: 4, 65: 0, 66: 0},
    "3.1": {1: 13, 3: 12},
    "3.2": {11: 9, 13: 5, 35: 3},
    "3.3": {29: 3, 30: 3, 31: 3, 35: 4, 38: 3, 41: 3, 55: 1, 57: 1, 64: 0},
    "3.4": {},
    "3.5": {1: 15, 2: 8},
    "3.6": {24: 4},
    "3.7": {0: 10, 1: 16, 8: 9, 9: 9, 60: 1, 68: 0, 71: 0, 72: 0, 74: 0},
    "3.8": {0: 11, 10: 5, 16: 5, 22: 5, 24: 5, 25: 4, 26: 4, 28: 4, 66: 1, 69: 0, 75: 0},
    "3.9": {1: 17, 2: 9, 10: 6, 18: 4, 55: 2, 80: 0, 81: 0},
    "4.0": {0: 12, 2: 10, 3: 13, 15: 6, 26: 5, 28: 5, 57: 2, 60: 2, 68: 1, 69: 1},
    "4.1": {0: 13, 1: 18, 45: 1, 66: 2, 74: 1, 76: 1, 77: 1, 78: 1, 79: 1}
    | {83: 0, 84: 0, 85: 0, 86: 0, 87: 0, 90: 0, 91: 0, 92: 0},
    "4.2": {2: 11, 8: 10, 9: 10, 27: 2, 78: 2, 79: 2, 80: 1, 85: 1, 87: 1, 88: 0, 89: 0, 90: 1},
    "4.3": {35: 5},
}


class Feature(NamedTuple):
    """A feature of a release: the levels it supports, and the level in a new cluster."""

    min_level: int
    max_level: int
    level: int


# metadata.version by release: lowest and highest level (MetadataVersion.featureLevel).
_METADATA_VERSIONS: dict[str, tuple[int, int]] = {
    "3.3": (1, 7),
    "3.4": (1, 8),
    "3.5": (1, 11),
    "3.6": (1, 14),
    "3.7": (1, 19),
    "3.8": (1, 20),
    "3.9": (1, 21),
    "4.0": (7, 25),
    "4.1": (7, 27),
    "4.2": (7, 29),
    "4.3": (7, 30),
}

# Other features: the release that added them, the release that enabled them, and their top level.
# kraft.version stays at 0: the quorum of one voter is static.
_FEATURES: tuple[tuple[str, str, str | None, int], ...] = (
    ("kraft.version", "3.9", None, 1),
    ("group.version", "4.0", "4.0", 1),
    ("transaction.version", "4.0", "4.0", 2),
    ("eligible.leader.replicas.version", "4.0", "4.1", 1),
    ("share.version", "4.1", "4.2", 1),
    ("streams.version", "4.1", "4.2", 1),
)


_NO_BUMP_SINCE = 12  # the first metadata.version of 3.6


class Profile(NamedTuple):
    """One release: its highest API versions by key, and its features by name."""

    release: str
    max_versions: dict[int, int]
    features: dict[str, Feature]

    def feature_level(self, name: str) -> int:
        """The level in a new cluster; 0 if the release lacks the feature."""
        feature = self.features.get(name)
        return 0 if feature is None else feature.level

    @property
    def has_kraft(self) -> bool:
        """Whether a quorum of controllers keeps the metadata, instead of ZooKeeper."""
        return self.feature_level("metadata.version") > 0

    @property
    def bumps_epoch_on_isr_shrink(self) -> bool:
        """Whether the controller raises the leader epoch when the ISR shrinks (KAFKA-15021)."""
        return 0 < self.feature_level("metadata.version") < _NO_BUMP_SINCE


RELEASES: tuple[str, ...] = ("2.8", *_RAISED)


def profile_of(kafka_version: str) -> Profile:
    """The profile of a release such as "3.9" or "3.9.1"; ConfigError if it is unknown."""
    release = ".".join(kafka_version.split(".")[:2])
    parts = kafka_version.split(".")
    if release not in RELEASES or len(parts) > 3 or not all(part.isdigit() for part in parts):
        known = f"{RELEASES[0]} to {RELEASES[-1]}"
        raise ConfigError("kafka-version", f"{kafka_version!r} is not a release from {known}")
    position = RELEASES.index(release)
    max_versions = dict(_KAFKA_2_8)
    for earlier in RELEASES[1 : position + 1]:
        max_versions.update(_RAISED[earlier])
    return Profile(release, max_versions, _features_of(release, position))


def _features_of(release: str, position: int) -> dict[str, Feature]:
    features: dict[str, Feature] = {}
    if release in _METADATA_VERSIONS:
        low, high = _METADATA_VERSIONS[release]
        features["metadata.version"] = Feature(low, high, high)
    for name, since, on_since, top in _FEATURES:
        if position >= RELEASES.index(since):
            on = on_since is not None and position >= RELEASES.index(on_since)
            features[name] = Feature(0, top, top if on else 0)
    return features
