"""ApiVersions (18): the APIs, versions and features a client may use (KIP-35, 511, 584)."""

from __future__ import annotations

import re

from mockbroker.core.cluster import Cluster
from mockbroker.handlers.authorization import everyone
from mockbroker.handlers.base import APIS, EncodedResponse, RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

# From this level on a feature needs a version of an API: name -> (level, API, version).
_NEEDS: dict[str, tuple[int, ApiKey, int]] = {
    "group.version": (1, ApiKey.CONSUMER_GROUP_HEARTBEAT, 0),
    "transaction.version": (2, ApiKey.END_TXN, 5),
    "share.version": (1, ApiKey.SHARE_GROUP_HEARTBEAT, 1),
    "streams.version": (1, ApiKey.STREAMS_GROUP_HEARTBEAT, 0),
}
# Advertised only with a receiver of metrics, as in Kafka, but always served.
_TELEMETRY = frozenset((ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY))
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)


@api(
    ApiKey.API_VERSIONS,
    versions=(0, 4),
    authorize=everyone("precedes authentication"),
)
def api_versions(
    ctx: RequestContext, request: ApiVersionsRequest
) -> EncodedResponse | ApiVersionsResponse:
    """The response is cached: clients send the request on every connection."""
    version = ctx.api_version
    if version >= 3:
        name, software_version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(software_version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        ctx.connection.software_name = name
        ctx.connection.software_version = software_version
    memo = ctx.cluster.features.memo
    encoded = memo.get(version)
    if not isinstance(encoded, EncodedResponse):
        response = api_versions_response(ctx.cluster, version)
        encoded = EncodedResponse(response_codec(ApiKey.API_VERSIONS, version).encode(response))
        memo[version] = encoded
    return encoded


def api_versions_response(cluster: Cluster, version: int) -> ApiVersionsResponse:
    """The APIs and features of the cluster, for a request of `version`."""
    features = {
        name: (supported.min_level, level)
        for name, supported in cluster.features.supported.items()
        if (level := served_level(cluster, name, supported.max_level)) > 0
    }
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(key, served.advertised_min, min(served.max_version, cap))
            for key, served in sorted(APIS.items())
            if (cap := cluster.profile.max_versions.get(key, -1)) >= served.min_version
            and (key not in _TELEMETRY or cluster.telemetry.receives)
        ],
        supported_features=[
            SupportedFeatureKey(name, low, high)
            for name, (low, high) in features.items()
            if low > 0 or version >= 4  # Java before 4.0 refuses a minimum of 0
        ],
        finalized_features_epoch=cluster.features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name, level, level)
            for name, (_, high) in features.items()
            if (level := min(cluster.features.level(name), high)) > 0
        ],
    )


def served_level(cluster: Cluster, name: str, level: int) -> int:
    """`level` of a feature, or the highest level below it that the served APIs support."""
    if name not in _NEEDS:
        return level
    needed_from, key, version = _NEEDS[name]
    served = APIS.get(int(key))
    if served is not None and served.max_version >= version and cluster.serves(key, version):
        return level
    # transaction.version 1 only changes how the coordinator writes its own log.
    return min(level, needed_from - 1)


def unsupported_version_response(cluster: Cluster) -> ApiVersionsResponse:
    """The answer, in v0's form, to an ApiVersions request of an unsupported version.

    It has the versions of ApiVersions alone, so that the client can repeat the request (KIP-511).
    """
    served = APIS[int(ApiKey.API_VERSIONS)]
    cap = cluster.profile.max_versions[int(ApiKey.API_VERSIONS)]
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[
            ApiVersion(int(ApiKey.API_VERSIONS), served.min_version, min(served.max_version, cap))
        ],
    )
