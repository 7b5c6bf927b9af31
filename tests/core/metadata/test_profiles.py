"""Releases: the versions and features that `--kafka-version` caps."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mockbroker.core.errors import ConfigError
from mockbroker.core.metadata.profiles import LATEST, RELEASES, profile_of
from mockbroker_protocol import ApiKey


def version(release: str, key: ApiKey) -> int | None:
    return profile_of(release).max_versions.get(int(key))


@pytest.mark.parametrize(
    ("release", "key", "highest"),
    [
        ("2.8", ApiKey.PRODUCE, 9),
        ("2.8", ApiKey.FETCH, 12),
        ("2.8", ApiKey.CONSUMER_GROUP_HEARTBEAT, None),
        ("3.1", ApiKey.FETCH, 13),
        ("3.4", ApiKey.LIST_OFFSETS, 7),
        ("3.6", ApiKey.ADD_PARTITIONS_TO_TXN, 4),
        ("3.9", ApiKey.FETCH, 17),
        ("3.9", ApiKey.METADATA, 12),
        ("4.0", ApiKey.METADATA, 13),
        ("4.1", ApiKey.PRODUCE, 13),
        ("4.2", ApiKey.OFFSET_COMMIT, 10),
        ("4.3", ApiKey.DESCRIBE_LOG_DIRS, 5),
        ("4.2", ApiKey.DESCRIBE_LOG_DIRS, 4),
    ],
)
def test_each_release_has_its_versions(release, key, highest):
    assert version(release, key) == highest


def test_versions_only_grow_from_release_to_release():
    for older, newer in pairwise(RELEASES):
        before, after = profile_of(older).max_versions, profile_of(newer).max_versions
        assert before.keys() <= after.keys()
        assert all(after[key] >= highest for key, highest in before.items())


def test_features_come_with_their_release():
    assert profile_of("3.2").features == {}
    assert profile_of("3.9").feature_level("metadata.version") == 21
    assert profile_of("3.9").feature_level("transaction.version") == 0
    assert profile_of("4.0").feature_level("transaction.version") == 2
    assert profile_of("4.0").feature_level("eligible.leader.replicas.version") == 0
    assert profile_of("4.1").feature_level("eligible.leader.replicas.version") == 1
    assert profile_of(LATEST).features["metadata.version"][:2] == (7, 30)


def test_a_patch_level_is_that_of_its_release():
    assert profile_of("3.9.1") == profile_of("3.9")


@pytest.mark.parametrize("unknown", ["", "2.7", "4.4", "5", "latest", "4.x", "4.3.1.0"])
def test_an_unknown_release_is_refused(unknown):
    with pytest.raises(ConfigError, match=r"2\.8 to 4\.3"):
        profile_of(unknown)
