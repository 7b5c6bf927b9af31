"""Features: levels in force, and the epoch of their changes."""

from __future__ import annotations

from mockbroker.core.metadata.features import Features
from mockbroker.core.metadata.profiles import profile_of


def test_a_new_cluster_has_the_levels_of_its_release():
    features = Features(profile_of("4.3").features)
    assert features.level("transaction.version") == 2
    assert features.level("kraft.version") == 0
    assert features.level("no.such") == 0


def test_a_change_raises_the_epoch_and_drops_encoded_answers():
    features = Features(profile_of("4.3").features)
    features.memo["answer"] = 1
    features.set_levels({"transaction.version": 1, "group.version": 0})
    assert (features.epoch, features.memo) == (1, {})
    assert features.level("transaction.version") == 1
    assert "group.version" not in features.levels
