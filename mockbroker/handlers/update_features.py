"""UpdateFeatures (57): raise or lower the levels of features (KIP-584, KIP-778)."""

from __future__ import annotations

from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.control import MIN_ISR
from mockbroker.core.errors import ApiError
from mockbroker.handlers.api_versions import served_level
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

METADATA_VERSION = "metadata.version"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@api(ApiKey.UPDATE_FEATURES, versions=(0, 2))
def update_features(ctx: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Put all levels in force, or none."""
    cluster, updates = ctx.cluster, request.feature_updates
    try:
        for update in updates:
            _check(cluster, update)
    except ApiError as error:
        return UpdateFeaturesResponse(
            error_code=error.error,
            error_message=f"No feature was changed: {error.message}",
        )
    if updates and not request.validate_only:
        _apply(cluster, {update.feature: update.max_version_level for update in updates})
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message=ErrorCode.NONE.name)
            for update in updates
        ],
    )


def _check(cluster: Cluster, update: FeatureUpdateKey) -> None:
    name, level = update.feature, update.max_version_level
    supported = cluster.features.supported.get(name)
    highest = 0 if supported is None else served_level(cluster, name, supported.max_level)
    present = cluster.features.level(name)
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(update, f"There is no upgrade type {update.upgrade_type}.")
    if supported is None or highest == 0:
        raise _invalid(update, "The cluster does not have this feature.")
    if level < 0:
        raise _invalid(update, "Levels begin at 0.")
    if not supported.min_level <= level <= highest:
        raise _invalid(update, f"Its levels are {supported.min_level} to {highest}.")
    if level >= present:
        return
    if update.upgrade_type == UPGRADE:
        raise _invalid(update, "Only a downgrade, safe or unsafe, lowers a level.")
    if name == METADATA_VERSION:
        # Kafka would have to drop metadata that the lower level cannot express.
        raise _invalid(update, f"It cannot go down from {present}.")


def _invalid(update: FeatureUpdateKey, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"{update.feature} cannot be at level {update.max_version_level}. {reason}",
    )


def _apply(cluster: Cluster, levels: dict[str, int]) -> None:
    cluster.features.set_levels(levels)
    if cluster.features.level("eligible.leader.replicas.version") > 0:
        defaults = cluster.configs.dynamic_default
        defaults.setdefault(MIN_ISR, str(cluster.config(MIN_ISR)))
        cluster.configs_changed()
