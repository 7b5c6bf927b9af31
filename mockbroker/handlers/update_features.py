"""UpdateFeatures (57): raise or lower the levels of features (KIP-584, KIP-778)."""

from __future__ import annotations

from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.control import MIN_ISR
from mockbroker.core.configs.resources import ConfigResourceType, set_overrides
from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.api_versions import served_level
from mockbroker.handlers.authorization import clusterwide
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


@api(
    ApiKey.UPDATE_FEATURES,
    versions=(0, 2),
    authorize=clusterwide(AclOperation.ALTER),
    forwarded=True,
)
def update_features(ctx: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Set all levels, or none."""
    cluster, updates = ctx.cluster, request.feature_updates
    try:
        for update in updates:
            _check(cluster, update)
    except ApiError as error:
        raise ApiError(
            error.error,
            "The update failed for all features since the following feature had an error: "
            f"{error.message}",
        ) from error
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
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    controller = f"Local controller {cluster.controller_id}"
    if supported is None or highest == 0:
        reason = f"{controller} does not support this feature."
        raise _invalid(update, reason if level else f"Feature {name} not found.")
    if not supported.min_level <= level <= highest:
        versions = f"{supported.min_level}-{highest}"
        raise _invalid(update, f"{controller} only supports versions {versions}")
    if level >= present:
        return
    if update.upgrade_type == UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if name == METADATA_VERSION:
        # Kafka would have to drop metadata that the lower level has no records for.
        unsafe = update.upgrade_type == UNSAFE_DOWNGRADE
        raise ApiError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid metadata.version {level}. "
            + (
                "Unsafe metadata downgrade is not supported in this version."
                if unsafe
                else "Refusing to perform the requested downgrade because it might delete metadata "
                "information."
            ),
        )


def _invalid(update: FeatureUpdateKey, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.max_version_level} for feature {update.feature}. {reason}",
    )


def _apply(cluster: Cluster, levels: dict[str, int]) -> None:
    cluster.features.set_levels(levels)
    if cluster.features.level("share.version") < 1:
        for broker in cluster.processes.values():
            if broker.has_share_partitions:
                broker.share_partitions.unload()
    if cluster.features.level("eligible.leader.replicas.version") > 0:
        min_isr = {MIN_ISR: str(cluster.config(MIN_ISR))}
        defaults = {**min_isr, **cluster.configs.dynamic_default}
        set_overrides(cluster, ConfigResourceType.BROKER, "", defaults)
