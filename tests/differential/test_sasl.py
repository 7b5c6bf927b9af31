"""Our SASL listener answers as the real one does: right, wrong, out of order, again and again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.client.errors import ConnectionClosedError
from mockbroker.core.security.sasl.scram_credential import ScramMechanism
from mockbroker_protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.core.security.sasl.scram_client import ScramClient
from tests.support.real_sasl import RealSaslKafka, sasl_configs
from tests.support.sasl import SaslConnection
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.real_kafka, pytest.mark.java, pytest.mark.xdist_group("real_kafka")]

USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
REAUTH_MS = 600_000
ALICE = b"\0alice\0alice-secret"
VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
BAD_VERSIONS = ApiVersionsRequest(client_software_name="-", client_software_version="1")
METADATA = MetadataRequest([MetadataRequestTopic(name="t")])
SALTED = bytes(range(32))

_REAL = sasl_configs(USERS) | {"connections.max.reauth.ms": str(REAUTH_MS)}
_OURS = {name: _REAL[name] for name in ("sasl.enabled.mechanisms", "connections.max.reauth.ms")}


@pytest.fixture(scope="module")
def real() -> Iterator[Any]:
    with RealSaslKafka(configs=_REAL) as kafka:
        _add_scram_user(kafka)
        yield kafka


@pytest.fixture(scope="module")
def ours() -> Iterator[Any]:
    with Cluster(
        brokers=1, security_protocol="SASL_PLAINTEXT", users=USERS, configs=_OURS
    ) as kafka:
        _add_scram_user(kafka)
        yield kafka


def _add_scram_user(kafka: Any) -> None:
    """Give alice a SCRAM credential through the API, and wait until it is known."""
    from hashlib import pbkdf2_hmac

    salted = pbkdf2_hmac("sha256", b"alice-secret", b"salt", 4096)
    upsertion = ScramCredentialUpsertion("alice", 1, 4096, b"salt", salted)
    with SaslConnection(kafka) as admin:
        admin.plain("admin", "admin-secret")
        changed = admin.send(AlterUserScramCredentialsRequest([], [upsertion]), 0)
        assert changed.results[0].error_code == 0

    def is_known() -> bool:
        with SaslConnection(kafka) as alice:
            return bool(alice.scram("alice", "alice-secret").error_code == 0)

    wait_until(is_known)


class Script:
    """One connection's dialogue, and what came back."""

    def __init__(self, kafka: Any) -> None:
        self.connection = SaslConnection(kafka)
        self.connection.timeout_s = 20.0
        self.heard: list[object] = []

    def hear(self, exchange: Callable[[], Any]) -> Any:
        """Note the answer of an exchange, or the close, after which there is nothing to hear."""
        try:
            answer = exchange()
        except ConnectionClosedError:
            self.heard.append("closed")
            return None
        self.heard.append(plain_of(answer))
        return answer

    def send(self, message: object, version: int) -> Any:
        return self.hear(lambda: self.connection.send(message, version))

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.hear(lambda: self.connection.handshake(mechanism, version))

    def token(self, token: bytes, version: int = 2) -> Any:
        return self.hear(lambda: self.connection.token(token, version))

    def raw_token(self, token: bytes) -> Any:
        return self.hear(lambda: self.connection.raw_token(token))

    def end(self) -> None:
        self.heard.append("closed" if self.connection.wait_closed() else "something more")

    def versions(self) -> None:
        """ApiVersions; which APIs are named is compared elsewhere."""
        self.heard.append(self.connection.send(VERSIONS, 4).error_code)


def plain_of(answer: Any) -> object:
    """An answer as data that can be compared."""
    if isinstance(answer, bytes):
        return answer
    fields = {name: getattr(answer, name) for name in answer.__struct_fields__}
    if "mechanisms" in fields:
        fields["mechanisms"] = sorted(fields["mechanisms"])
    return repr(fields)


CASES: dict[str, Callable[[Script], None]] = {}


def case(play: Callable[[Script], None]) -> Callable[[Script], None]:
    CASES[play.__name__] = play
    return play


def refused_plain(name: str, token: bytes) -> None:
    def play(script: Script) -> None:
        script.handshake()
        script.token(token)
        script.end()

    CASES[f"plain_{name}"] = play


refused_plain("wrong_password", b"\0alice\0wrong")
refused_plain("unknown_user", b"\0nobody\0x")
refused_plain("no_user", b"\0\0x")
refused_plain("no_password", b"\0alice\0")
refused_plain("two_parts", b"alice\0alice-secret")
refused_plain("empty", b"")
refused_plain("other_authorization_id", b"bob\0alice\0alice-secret")
refused_plain("not_utf8", b"\0\xff\xfe\0\xfd")


@case
def plain_right(script: Script) -> None:
    for version in (0, 1, 2):
        if version == 0:
            script.handshake()
            script.token(ALICE, version)
    script.token(ALICE)
    script.versions()


@case
def plain_with_more_after_the_password(script: Script) -> None:
    script.handshake()
    script.token(ALICE + b"\0more")


@case
def plain_with_its_own_authorization_id(script: Script) -> None:
    script.handshake()
    script.token(b"alice" + ALICE, 1)


@case
def unknown_mechanism(script: Script) -> None:
    script.handshake("GSSAPI")
    script.end()


@case
def unknown_mechanism_of_version_0(script: Script) -> None:
    script.handshake("GSSAPI", 0)
    script.end()


@case
def mechanism_in_lower_case(script: Script) -> None:
    script.handshake("plain")
    script.end()


def scram(
    name: str,
    user: str = "alice",
    password: str = "alice-secret",
    first: bytes | None = None,
    final: bytes | None = None,
    **changes: str,
) -> None:
    def play(script: Script) -> None:
        script.handshake("SCRAM-SHA-256")
        client = ScramClient(user, password)
        # The nonce differs from run to run, and so does all that is said after it.
        challenge = script.connection.token(first or client.first())
        script.heard.append((challenge.error_code, challenge.error_message))
        if challenge.error_code == 0:
            answer = client.final(bytes(challenge.auth_bytes), **changes)
            proof = script.connection.token(final or answer)
            script.heard.append((proof.error_code, proof.error_message, proof.session_lifetime_ms))
            if proof.error_code == 0:
                script.versions()
                return
        script.end()

    CASES[f"scram_{name}"] = play


scram("right")
scram("wrong_password", password="wrong")
scram("unknown_user", user="nobody")
scram("other_nonce", nonce="abcdef")
scram("malformed_first", first=b"hello")
scram("other_authorization_id", first=b"n,a=bob,n=alice,r=abc")
scram("channel_binding_asked_for", first=b"p=tls-unique,,n=alice,r=abc")
scram("malformed_final", final=b"hello")
scram("unknown_delegation_token", first=b"n,,n=x,r=abc,tokenauth=true")


@case
def metadata_first(script: Script) -> None:
    script.send(METADATA, 12)


@case
def metadata_after_versions(script: Script) -> None:
    script.versions()
    script.send(METADATA, 12)


@case
def token_first(script: Script) -> None:
    script.token(ALICE)


@case
def versions_twice(script: Script) -> None:
    script.versions()
    script.send(VERSIONS, 4)


@case
def versions_again_after_a_bad_name(script: Script) -> None:
    script.send(BAD_VERSIONS, 3)
    script.send(BAD_VERSIONS, 3)
    script.versions()
    script.handshake()


AMONG_TOKENS = [
    (VERSIONS, 0),
    (VERSIONS, 4),
    (FindCoordinatorRequest("g"), 2),
    (FindCoordinatorRequest(coordinator_keys=["g"]), 4),
    (ListGroupsRequest(), 4),
    (METADATA, 9),
    (METADATA, 13),
]


def _among_tokens(number: int, message: object, version: int) -> None:
    def play(script: Script) -> None:
        script.handshake()
        script.send(message, version)
        script.end()

    name = type(message).__name__.removesuffix("Request").lower()
    CASES[f"among_tokens_{number}_{name}_v{version}"] = play


for _number, (_message, _version) in enumerate(AMONG_TOKENS):
    _among_tokens(_number, _message, _version)


@case
def handshake_twice(script: Script) -> None:
    script.handshake()
    script.handshake()
    script.end()


@case
def token_after_the_proof(script: Script) -> None:
    script.handshake()
    script.token(ALICE)
    script.token(ALICE)
    script.versions()


@case
def bare_tokens(script: Script) -> None:
    script.handshake("PLAIN", 0)
    script.raw_token(ALICE)
    script.versions()


@case
def bare_token_that_is_wrong(script: Script) -> None:
    script.handshake("PLAIN", 0)
    script.raw_token(b"\0alice\0wrong")


@case
def bare_token_that_is_malformed(script: Script) -> None:
    script.handshake("PLAIN", 0)
    script.raw_token(b"\0\0")


@case
def renewed(script: Script) -> None:
    for _ in range(2):
        script.handshake()
        script.token(ALICE)
    script.versions()


@case
def renewed_by_another_user(script: Script) -> None:
    script.handshake()
    script.token(ALICE)
    script.handshake()
    script.token(b"\0bob\0bob-secret")
    script.end()


@case
def renewed_with_a_wrong_password(script: Script) -> None:
    script.handshake()
    script.token(ALICE)
    script.handshake()
    script.token(b"\0alice\0wrong")
    script.end()


@case
def renewed_with_nonsense(script: Script) -> None:
    script.handshake()
    script.token(ALICE)
    script.handshake()
    script.token(b"\0\0")
    script.end()


@case
def renewed_by_an_unknown_mechanism(script: Script) -> None:
    script.handshake()
    script.token(ALICE)
    script.handshake("GSSAPI")
    script.end()


@case
def renewed_by_another_mechanism(script: Script) -> None:
    script.handshake()
    script.token(ALICE)
    script.handshake("SCRAM-SHA-256")
    script.token(b"n,,n=alice,r=abc")


@case
def renewed_twice_within_a_second(script: Script) -> None:
    for _ in range(2):
        script.handshake()
        script.token(ALICE)
    script.handshake()
    script.versions()


@case
def metadata_while_renewing(script: Script) -> None:
    script.handshake()
    script.token(ALICE)
    script.handshake()
    script.send(ListGroupsRequest(), 4)
    script.end()


def _credentials(name: str, request: object) -> None:
    def play(script: Script) -> None:
        script.connection.plain("admin", "admin-secret")
        answer = script.connection.send(request, 0)
        found = {each.user: (each.error_code, each.error_message) for each in answer.results}
        script.heard.append((answer.throttle_time_ms, found))

    CASES[f"credentials_{name}"] = play


def _upsert(user: str = "u", mechanism: int = 1, iterations: int = 4096) -> Any:
    return ScramCredentialUpsertion(user, mechanism, iterations, b"salt", SALTED)


_TOO_MANY = AlterUserScramCredentialsRequest([], [_upsert(iterations=16385)])
for _name, _request in {
    "too_few_iterations": AlterUserScramCredentialsRequest([], [_upsert(iterations=4095)]),
    "too_many_iterations": _TOO_MANY,
    "unknown_mechanism": AlterUserScramCredentialsRequest([], [_upsert(mechanism=9)]),
    "no_user": AlterUserScramCredentialsRequest([], [_upsert("")]),
    "twice": AlterUserScramCredentialsRequest([], [_upsert(), _upsert()]),
    "deletion_of_nothing": AlterUserScramCredentialsRequest(
        [ScramCredentialDeletion("nobody", int(ScramMechanism.SCRAM_SHA_256))], []
    ),
    "describe_nobody": DescribeUserScramCredentialsRequest([UserName("nobody")]),
    "describe_twice": DescribeUserScramCredentialsRequest([UserName("alice"), UserName("alice")]),
    "describe_alice": DescribeUserScramCredentialsRequest([UserName("alice")]),
}.items():
    _credentials(_name, _request)


def play(name: str, kafka: Any) -> list[object]:
    script = Script(kafka)
    with script.connection:
        CASES[name](script)
    return script.heard


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_answers_are_those_of_the_real_listener(name: str, real: Any, ours: Any) -> None:
    expected, found = play(name, real), play(name, ours)
    assert expected, "a case that hears nothing shows nothing"
    for number, (theirs, mine) in enumerate(itertools.zip_longest(expected, found)):
        assert mine == theirs, f"exchange {number}"
