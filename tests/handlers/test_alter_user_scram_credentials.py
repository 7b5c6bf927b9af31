"""AlterUserScramCredentials: all changes of a user are applied, or none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mockbroker.core.security.sasl.scram_credential import ScramCredential
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture
def node() -> Node:
    node = nodes(1)
    node.cluster.scram_credentials["old"] = {1: ScramCredential(b"salt", 8192, b"", b"")}
    return node


def iterations(node: Node) -> dict[str, dict[int, int]]:
    return {
        user: {mechanism: credential.iterations for mechanism, credential in credentials.items()}
        for user, credentials in node.cluster.scram_credentials.items()
    }


def alter(
    node: Node, deletions: Sequence[tuple[str, int]], upserts: Sequence[tuple[str, int, int]]
) -> dict[str, tuple[int, bool]]:
    request = AlterUserScramCredentialsRequest(
        [ScramCredentialDeletion(*d) for d in deletions],
        [ScramCredentialUpsertion(*u, b"salt", b"password") for u in upserts],
    )
    results = ask(node, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request).results
    return {r.user: (r.error_code, bool(r.error_message)) for r in results}


def test_credentials_are_set_and_deleted(node):
    assert alter(node, [("old", 1)], [("new", 2, 4096), ("new", 1, 16384)]) == {
        "old": (ErrorCode.NONE, False),
        "new": (ErrorCode.NONE, False),
    }
    assert iterations(node) == {"new": {2: 4096, 1: 16384}}


@pytest.mark.parametrize(
    ("deletions", "upserts", "user", "error"),
    [
        ([("none", 1)], [], "none", ErrorCode.RESOURCE_NOT_FOUND),
        ([("old", 2)], [], "old", ErrorCode.RESOURCE_NOT_FOUND),
        ([], [("u", 1, 4095)], "u", ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([], [("u", 1, 16385)], "u", ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([], [("", 1, 4096)], "", ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([], [("u", 3, 4096)], "u", ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([("old", 1)], [("old", 1, 4096)], "old", ErrorCode.DUPLICATE_RESOURCE),
        ([], [("u", 1, 4096), ("u", 2, 1)], "u", ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_a_refused_user_stays_as_it_was(node, deletions, upserts, user, error):
    assert alter(node, deletions, upserts) == {user: (error, True)}
    assert iterations(node) == {"old": {1: 8192}}
