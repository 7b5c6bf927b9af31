from __future__ import annotations

import pytest

from mockbroker.client import UnsupportedVersionError
from mockbroker.client.versions import VersionRange, choose_version
from mockbroker_protocol import ApiKey


@pytest.mark.parametrize(
    ("api_key", "offered", "chosen"),
    [
        (ApiKey.METADATA, (0, 5), 5),
        (ApiKey.METADATA, (0, 99), 13),
        (ApiKey.FETCH, (4, 18), 12),
        (ApiKey.FETCH, (4, 7), 7),
        (ApiKey.PRODUCE, (0, 13), 12),
    ],
)
def test_the_newest_common_version_is_chosen(api_key, offered, chosen):
    assert choose_version(api_key, VersionRange(*offered), "peer") == chosen


def test_ranges_that_do_not_meet_are_named():
    with pytest.raises(UnsupportedVersionError, match=r"peer offers FETCH 0-3, .* speaks 4-12"):
        choose_version(ApiKey.FETCH, VersionRange(0, 3), "peer")
    with pytest.raises(UnsupportedVersionError, match="FETCH 13-18"):
        choose_version(ApiKey.FETCH, VersionRange(13, 18), "peer")
    with pytest.raises(UnsupportedVersionError, match="does not offer FETCH"):
        choose_version(ApiKey.FETCH, None, "peer")
