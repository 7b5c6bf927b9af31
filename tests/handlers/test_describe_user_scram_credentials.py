"""DescribeUserScramCredentials: mechanisms and iterations, never the secrets."""

from __future__ import annotations

import pytest

from mockbroker.core.security.sasl.scram_credential import ScramCredential
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.support.ask import ask, nodes


def describe(*names: str, everyone: bool = False) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    node = nodes(1)
    for user, iterations in {"u": {1: 4096, 2: 8192}, "v": {1: 5000}}.items():
        node.cluster.scram_credentials[user] = {
            mechanism: ScramCredential(b"salt", count, b"", b"")
            for mechanism, count in iterations.items()
        }
    users = None if everyone else [UserName(name) for name in names]
    request = DescribeUserScramCredentialsRequest(users)
    results = ask(node, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, request).results
    return {
        r.user: (r.error_code, [(c.mechanism, c.iterations) for c in r.credential_infos])
        for r in results
    }


@pytest.mark.parametrize("everyone", [True, False])
def test_without_names_everyone_is_described(everyone):
    assert describe(everyone=everyone) == {
        "u": (ErrorCode.NONE, [(1, 4096), (2, 8192)]),
        "v": (ErrorCode.NONE, [(1, 5000)]),
    }


def test_each_name_is_answered_once():
    assert describe("v", "u", "u", "none") == {
        "v": (ErrorCode.NONE, [(1, 5000)]),
        "u": (ErrorCode.DUPLICATE_RESOURCE, []),
        "none": (ErrorCode.RESOURCE_NOT_FOUND, []),
    }
