"""What all APIs of share groups check first (KIP-932).

Source: KafkaApis.isShareGroupProtocolEnabled, isMemberIdValid.
"""

from __future__ import annotations

from mockbroker.handlers.base import RequestContext

FEATURE = "share.version"
MEMBER_ID_CHARS_MAX = 36  # a UUID as text


def share_groups_enabled(ctx: RequestContext) -> bool:
    """Whether the feature is on; else every API of share groups answers UNSUPPORTED_VERSION."""
    return ctx.cluster.features.level(FEATURE) > 0


def is_member_id_valid(member_id: str | None) -> bool:
    """Whether a member id is neither missing nor too long."""
    return bool(member_id) and len(member_id or "") <= MEMBER_ID_CHARS_MAX
