"""The version of an API to use: the newest of both sides, with a few limits."""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.client.errors import UnsupportedVersionError
from mockbroker_protocol import ApiKey
from mockbroker_protocol.declarations import schema_module
from mockbroker_protocol.declare import Versions


class VersionRange(NamedTuple):
    """Inclusive bounds."""

    lowest: int
    highest: int


# The newest versions that name topics by name: this client keeps no table of topic ids.
HIGHEST = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
}


def choose_version(api_key: ApiKey, offered: VersionRange | None, peer: str) -> int:
    """The version to use. Raises `UnsupportedVersionError` when nothing is in common."""
    declared: Versions = schema_module(api_key.name.lower()).REQUEST.versions
    lowest, highest = declared.low, min(declared.high, HIGHEST.get(api_key, declared.high))
    if offered is None:
        raise UnsupportedVersionError(f"{peer} does not offer {api_key.name}")
    if offered.highest < lowest or highest < offered.lowest:
        raise UnsupportedVersionError(
            f"{peer} offers {api_key.name} {offered.lowest}-{offered.highest}, "
            f"this client speaks {lowest}-{highest}"
        )
    return min(highest, offered.highest)
