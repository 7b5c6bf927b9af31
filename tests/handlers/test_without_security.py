"""APIs of security on a cluster without it: the refusals of a PLAINTEXT listener."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_acls import AclCreation, CreateAclsRequest
from mockbroker_protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from mockbroker_protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from mockbroker_protocol.messages.describe_acls import DescribeAclsRequest
from mockbroker_protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from mockbroker_protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from mockbroker_protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from mockbroker_protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from mockbroker_protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.ask import ask, nodes
from tests.support.requests import Node


@pytest.fixture(scope="module")
def node() -> Node:
    return nodes(1)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_there_are_no_acls_without_an_authorizer(node, version):
    described = ask(
        node, ApiKey.DESCRIBE_ACLS, DescribeAclsRequest(1, None, 1, None, None, 1, 1), version
    )
    assert (described.error_code, described.resources) == (ErrorCode.SECURITY_DISABLED, [])
    assert described.error_message
    creations = CreateAclsRequest([AclCreation(2, name, 3, "User:u", "*", 3, 3) for name in "ab"])
    created = ask(node, ApiKey.CREATE_ACLS, creations, version).results
    assert [r.error_code for r in created] == [ErrorCode.SECURITY_DISABLED] * 2
    filters = DeleteAclsRequest([DeleteAclsFilter(2, "a", 3, None, None, 1, 1)])
    (deleted,) = ask(node, ApiKey.DELETE_ACLS, filters, version).filter_results
    assert (deleted.error_code, deleted.matching_acls) == (ErrorCode.SECURITY_DISABLED, [])
    assert ask(node, ApiKey.CREATE_ACLS, CreateAclsRequest([]), version).results == []


@pytest.mark.parametrize(
    ("key", "request_", "versions"),
    [
        (ApiKey.CREATE_DELEGATION_TOKEN, CreateDelegationTokenRequest(), (1, 2, 3)),
        (ApiKey.RENEW_DELEGATION_TOKEN, RenewDelegationTokenRequest(b"x"), (1, 2)),
        (ApiKey.EXPIRE_DELEGATION_TOKEN, ExpireDelegationTokenRequest(b"x"), (1, 2)),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, DescribeDelegationTokenRequest(None), (1, 2, 3)),
    ],
)
def test_delegation_tokens_are_not_for_unauthenticated_clients(node, key, request_, versions):
    for version in versions:
        response = ask(node, key, request_, version)
        assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_refused_token_names_who_asked(node):
    response = ask(node, ApiKey.CREATE_DELEGATION_TOKEN, CreateDelegationTokenRequest(None, None))
    assert (response.principal_type, response.principal_name) == ("User", "ANONYMOUS")
    assert response.token_requester_principal_name == "ANONYMOUS"
    assert response.issue_timestamp_ms == response.expiry_timestamp_ms == -1


@pytest.mark.parametrize("version", [0, 1])
def test_a_sasl_handshake_is_out_of_place(node, version):
    response = ask(node, ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN"), version)
    assert (response.error_code, response.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_sasl_tokens_are_out_of_place(node, version):
    response = ask(node, ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(b"x"), version)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert response.error_message
