"""UpdateFeatures: upgrades, and downgrades with an upgrade type for them."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node

ELR = "eligible.leader.replicas.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3


@pytest.fixture
def node() -> Node:
    return nodes(1)


def update(
    node: Node,
    *updates: tuple[str, int, int],
    version: int = 1,
    validate_only: bool = False,
) -> UpdateFeaturesResponse:
    keys = [
        FeatureUpdateKey(name, level, upgrade_type=upgrade_type)
        for name, level, upgrade_type in updates
    ]
    request = UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)
    response = ask(node, ApiKey.UPDATE_FEATURES, request, version)
    assert isinstance(response, UpdateFeaturesResponse)
    return response


@pytest.mark.parametrize("version", [1, 2])
def test_a_feature_goes_down_and_up_and_the_epoch_rises(node, version):
    features = node.cluster.features
    response = update(node, (ELR, 0, SAFE), version=version)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert [(r.feature, r.error_code) for r in response.results] == (
        [(ELR, ErrorCode.NONE)] if version == 1 else []
    )
    assert (features.level(ELR), features.epoch) == (0, 1)
    update(node, (ELR, 1, UPGRADE), version=version)
    assert (features.level(ELR), features.epoch) == (1, 2)


def test_eligible_leaders_bring_min_insync_replicas_for_all(node):
    update(node, (ELR, 0, SAFE))
    node.cluster.configs.dynamic_default.clear()
    node.cluster.configs_changed()
    update(node, (ELR, 1, UPGRADE))
    assert node.cluster.configs.dynamic_default == {"min.insync.replicas": "1"}


def test_validating_changes_nothing(node):
    assert update(node, (ELR, 0, UNSAFE), validate_only=True).error_code == ErrorCode.NONE
    assert (node.cluster.features.level(ELR), node.cluster.features.epoch) == (1, 0)


@pytest.mark.parametrize(
    "asked",
    [
        ("metadata.version", 31, UPGRADE),
        ("metadata.version", 6, UNSAFE),
        ("metadata.version", 29, UPGRADE),
        ("metadata.version", 29, SAFE),
        ("metadata.version", 29, UNSAFE),
        ("bogus", 1, UPGRADE),
        (ELR, -1, UPGRADE),
        (ELR, 2, UPGRADE),
        (ELR, 0, UPGRADE),
        (ELR, 1, 9),
    ],
)
def test_one_bad_update_fails_all_of_them(node, asked):
    response = update(node, ("kraft.version", 1, UPGRADE), asked)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message
    assert response.results == []
    assert (node.cluster.features.level("kraft.version"), node.cluster.features.epoch) == (0, 0)


def test_the_level_in_force_is_no_change_and_no_error(node):
    assert update(node, ("metadata.version", 30, UPGRADE)).error_code == ErrorCode.NONE
    assert update(node).error_code == ErrorCode.NONE
