"""The requests allowed on a secured listener, their order, and refusals."""

from __future__ import annotations

import hashlib
import logging
import socket
import ssl

import pytest

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker.client.errors import ConnectionClosedError
from mockbroker.core.security.sasl.scram_credential import ScramMechanism
from mockbroker.server.config import ListenerSpec
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.core.security.sasl.scram_client import ScramClient
from tests.support.logged import logged
from tests.support.sasl import SaslConnection
from tests.support.waiting import wait_until

USERS = {"alice": "alice-secret", "bob": "bob-secret"}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
REAUTH_MS = 60_000
DELAY_MS = 100


@pytest.fixture(scope="module")
def kafka():
    with Cluster(brokers=1, security_protocol="SASL_PLAINTEXT", users=USERS) as cluster:
        yield cluster


@pytest.fixture
def raw(kafka: Cluster):
    with SaslConnection(kafka) as connection:
        yield connection


def serves(connection: Connection) -> bool:
    return len(connection.send(MetadataRequest(), 12).brokers) == 1


# -- the way in ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_user_with_the_right_password_is_served(raw, version):
    answer = raw.handshake("PLAIN")
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.NONE, MECHANISMS)
    proved = raw.token(b"\0alice\0alice-secret", version)
    assert (proved.error_code, proved.auth_bytes, proved.session_lifetime_ms) == (0, b"", 0)
    assert serves(raw)


@pytest.mark.parametrize("digest", ["sha256", "sha512"])
def test_a_user_proves_itself_by_scram(raw, digest):
    assert raw.scram("bob", "bob-secret", digest).error_code == ErrorCode.NONE
    assert serves(raw)


def test_a_user_proves_itself_by_a_signed_token(kafka, raw):
    raw.handshake("OAUTHBEARER")
    token = kafka.token("carol", lifetime_s=60)
    proved = raw.token(b"n,,\x01auth=Bearer %s\x01\x01" % token.encode())
    assert proved.error_code == ErrorCode.NONE
    assert 50_000 < proved.session_lifetime_ms <= 60_000
    assert serves(raw)


def test_api_versions_may_come_first_in_any_version(raw):
    answer = raw.send(VERSIONS, 4)
    assert answer.error_code == ErrorCode.NONE
    assert {17, 36} <= {api.api_key for api in answer.api_keys}
    assert raw.plain("alice", "alice-secret").error_code == ErrorCode.NONE
    assert raw.send(VERSIONS, 4).error_code == ErrorCode.NONE


def test_api_versions_may_be_asked_again_after_a_refusal(raw):
    bad = ApiVersionsRequest(client_software_name="-", client_software_version="1")
    assert raw.send(bad, 3).error_code == ErrorCode.INVALID_REQUEST
    assert raw.send(VERSIONS, 4).error_code == ErrorCode.NONE
    assert raw.plain("alice", "alice-secret").error_code == ErrorCode.NONE


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_old_clients_send_bare_tokens_after_a_handshake_of_version_0(kafka, raw, mechanism):
    assert raw.handshake(mechanism, 0).error_code == ErrorCode.NONE
    if mechanism == "PLAIN":
        assert raw.raw_token(b"\0alice\0alice-secret") == b""
    else:
        client = ScramClient("alice", "alice-secret")
        assert client.trusts(raw.raw_token(client.final(raw.raw_token(client.first()))))
    assert serves(raw)


def test_large_requests_are_read_only_from_the_proved(kafka, raw):
    topics = [f"t{n}".rjust(200, "x") for n in range(4000)]
    large = MetadataRequest([MetadataRequestTopic(name=topic) for topic in topics])
    raw.plain("alice", "alice-secret")
    assert len(raw.send(large, 12).topics) == len(topics)
    with SaslConnection(kafka) as other, pytest.raises(ConnectionClosedError):
        other.send(SaslAuthenticateRequest(bytes(600_000)), 2)


# -- out of order ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [(MetadataRequest(), 12), (SaslAuthenticateRequest(b"\0alice\0alice-secret"), 2)],
    ids=["Metadata", "SaslAuthenticate"],
)
@pytest.mark.parametrize("asked", [False, True], ids=["at once", "after ApiVersions"])
def test_what_comes_before_the_handshake_closes_the_connection(raw, request_, asked):
    if asked:
        raw.send(VERSIONS, 4)
    with pytest.raises(ConnectionClosedError):
        raw.send(*request_)


def test_api_versions_twice_closes_the_connection(raw):
    raw.send(VERSIONS, 4)
    with pytest.raises(ConnectionClosedError):
        raw.send(VERSIONS, 4)


@pytest.mark.parametrize("version", [3, 4])
def test_a_request_among_the_tokens_is_told_34_in_its_own_shape(raw, version):
    raw.handshake("PLAIN")
    answer = raw.send(VERSIONS, version)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert raw.wait_closed()


def test_a_second_handshake_among_the_tokens_is_told_34(raw):
    raw.handshake("PLAIN")
    assert raw.handshake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert raw.wait_closed()


def test_a_handshake_or_token_after_the_proof_is_told_34_and_does_no_harm(raw):
    raw.plain("alice", "alice-secret")
    assert raw.handshake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    answer = raw.token(b"\0alice\0alice-secret")
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert (
        answer.error_message == "SaslAuthenticate request received after successful authentication"
    )
    assert serves(raw)


def test_a_frame_without_an_api_key_closes_the_connection(raw):
    raw.send_raw(b"\0\0\0\1\0")
    assert raw.wait_closed()


def test_a_request_of_no_known_version_among_the_tokens_closes_the_connection(raw):
    raw.handshake("PLAIN")
    raw.send_raw(b"\0\0\0\x0a\0\3\0\x63\0\0\0\1\xff\xff")
    assert raw.wait_closed()


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
def test_an_unknown_mechanism_is_told_33_and_those_on_offer(raw, version):
    answer = raw.handshake("GSSAPI", version)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == MECHANISMS
    assert raw.wait_closed()


@pytest.mark.covers("S290")
@pytest.mark.parametrize(
    ("user", "password"), [("alice", "wrong"), ("nobody", "alice-secret"), ("alice", "bob-secret")]
)
def test_wrong_credentials_are_told_58_and_why(raw, user, password):
    answer = raw.plain(user, password)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert raw.wait_closed()


@pytest.mark.covers("S290")
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "alice-secret")])
@pytest.mark.parametrize("digest", ["sha256", "sha512"])
def test_scram_tells_58_without_telling_which_part_is_wrong(raw, user, password, digest):
    answer = raw.scram(user, password, digest)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL"
        f" mechanism SCRAM-SHA-{digest[3:]}"
    )
    assert raw.wait_closed()


def test_a_refused_token_is_told_as_a_challenge_and_then_58(kafka, raw):
    raw.handshake("OAUTHBEARER")
    unsigned = kafka.token("carol", algorithm="none")
    challenge = raw.token(b"n,,\x01auth=Bearer %s\x01\x01" % unsigned.encode())
    assert (challenge.error_code, challenge.auth_bytes) == (0, b'{"status":"invalid_token"}')
    denied = raw.token(b"\x01")
    assert denied.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert denied.error_message == '{"status":"invalid_token"}'
    assert raw.wait_closed()


def test_after_a_handshake_of_version_0_a_refusal_is_the_close_alone(raw):
    raw.handshake("PLAIN", 0)
    with pytest.raises(ConnectionClosedError):
        raw.raw_token(b"\0alice\0wrong")


def test_nothing_is_read_after_a_refusal(raw):
    raw.handshake("PLAIN")
    wrong, right = b"\0alice\0wrong", b"\0alice\0alice-secret"
    raw.write(SaslAuthenticateRequest(wrong), 2)
    raw.write(SaslAuthenticateRequest(right), 2)
    assert raw.read(36, 2).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert raw.wait_closed()


def test_a_refusal_is_one_log_line_that_holds_no_secret(kafka, raw, caplog):
    with caplog.at_level(logging.DEBUG, logger="mockbroker"):
        raw.plain("alice", "bob-secret")
        assert raw.wait_closed()
    (line,) = [r.getMessage() for r in logged(caplog) if r.levelno >= logging.WARNING]
    assert "failed authentication (PLAIN)" in line
    assert "-secret" not in caplog.text


def test_a_refusal_is_counted(kafka, raw):
    before = kafka.server.stats.failed_authentications
    raw.plain("alice", "wrong")
    assert raw.wait_closed()
    assert kafka.server.stats.failed_authentications == before + 1


def test_an_unproved_client_is_not_told_before_the_delay_is_over():
    """The delay is the cluster's time, like everything else."""
    with (
        Cluster(brokers=1, security_protocol="SASL_PLAINTEXT", users=USERS) as kafka,
        SaslConnection(kafka) as raw,
    ):
        kafka.clock.freeze()
        now_ms = kafka.clock.now_ms
        raw.handshake("PLAIN")
        raw.write(SaslAuthenticateRequest(b"\0alice\0wrong"), 2)
        wait_until(
            lambda: (
                kafka.call(lambda cluster: cluster.runtime.timers.deadline_ms())
                == now_ms + DELAY_MS
            )
        )
        kafka.clock.advance(DELAY_MS - 1)
        assert not readable(raw)
        kafka.clock.advance(2)  # a deadline may lie a fraction of a millisecond later
        assert raw.read(36, 2).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def readable(connection: Connection) -> bool:
    sock = socket.socket(fileno=socket.dup(connection.fileno()))
    with sock:
        sock.setblocking(False)
        try:
            return bool(sock.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False


def test_the_journal_has_the_reason_of_a_refusal():
    with (
        Cluster(brokers=1, security_protocol="SASL_PLAINTEXT", users=USERS) as kafka,
        SaslConnection(kafka) as raw,
    ):
        raw.plain("alice", "x")
        assert raw.wait_closed()
        (event,) = kafka.journal.wait(kind="connection", change="closed")
        assert event.reason == (
            "failed authentication (PLAIN): Authentication failed: Invalid username or password"
        )


def test_without_a_delay_a_refusal_is_told_at_once():
    with (
        Cluster(
            brokers=1,
            security_protocol="SASL_PLAINTEXT",
            users=USERS,
            configs={"connection.failed.authentication.delay.ms": 0},
        ) as kafka,
        SaslConnection(kafka) as raw,
    ):
        kafka.clock.freeze()
        assert raw.plain("alice", "x").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert raw.wait_closed()
        with SaslConnection(kafka) as other:
            other.handshake("PLAIN")
            assert other.send(VERSIONS, 4).error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert other.wait_closed()


# -- sessions that end (KIP-368) -------------------------------------------------------------------


@pytest.fixture
def expiring():
    with Cluster(
        brokers=1,
        security_protocol="SASL_PLAINTEXT",
        users=USERS,
        configs={"connections.max.reauth.ms": REAUTH_MS},
    ) as cluster:
        cluster.clock.freeze()
        yield cluster


def test_a_session_is_renewed_on_its_connection(expiring):
    with SaslConnection(expiring) as raw:
        for _ in range(3):
            assert raw.plain("alice", "alice-secret").session_lifetime_ms == REAUTH_MS
            assert serves(raw)
            expiring.clock.advance(REAUTH_MS - 1)
            assert serves(raw)


def test_an_expired_session_ends_with_the_next_request(expiring):
    with SaslConnection(expiring) as raw:
        raw.plain("alice", "alice-secret")
        expiring.clock.advance(REAUTH_MS + 1)
        with pytest.raises(ConnectionClosedError):
            raw.send(MetadataRequest(), 12)


def test_an_expired_session_may_still_be_renewed(expiring):
    with SaslConnection(expiring) as raw:
        raw.plain("alice", "alice-secret")
        expiring.clock.advance(REAUTH_MS + 1)
        assert raw.plain("alice", "alice-secret").error_code == ErrorCode.NONE
        assert serves(raw)


def test_a_renewed_session_keeps_its_user(expiring):
    expiring.clock.thaw()
    with SaslConnection(expiring) as raw:
        raw.plain("alice", "alice-secret")
        answer = raw.plain("bob", "bob-secret")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == (
            "Cannot change principals during re-authentication from User.alice: User.bob"
        )
        assert raw.wait_closed()


def test_a_renewed_session_keeps_its_mechanism(expiring, caplog):
    expiring.clock.thaw()
    with SaslConnection(expiring) as raw:
        raw.plain("alice", "alice-secret")
        assert raw.handshake("SCRAM-SHA-256").error_code == ErrorCode.NONE
        with pytest.raises(ConnectionClosedError):
            raw.token(b"n,,n=alice,r=abc")
    assert "not supported for re-authentication of mechanism 'PLAIN'" in caplog.text


def test_a_mechanism_that_is_not_offered_ends_a_session_without_an_answer(expiring):
    with SaslConnection(expiring) as raw:
        raw.plain("alice", "alice-secret")
        with pytest.raises(ConnectionClosedError):
            raw.handshake("GSSAPI")


def test_a_session_is_renewed_with_bare_tokens_too(expiring):
    with SaslConnection(expiring) as raw:
        for _ in range(2):
            raw.handshake("PLAIN", 0)
            assert raw.raw_token(b"\0alice\0alice-secret") == b""
            assert serves(raw)
            expiring.clock.advance(REAUTH_MS)


def test_a_session_ends_with_the_token_that_proved_it(kafka):
    with Cluster(brokers=1, security_protocol="SASL_PLAINTEXT") as cluster:
        cluster.clock.freeze()
        with SaslConnection(cluster) as raw:
            raw.handshake("OAUTHBEARER")
            token = cluster.token("carol", lifetime_s=5)
            answer = raw.token(b"n,,\x01auth=Bearer %s\x01\x01" % token.encode())
            assert answer.session_lifetime_ms == 5000
            cluster.clock.advance(5001)
            with pytest.raises(ConnectionClosedError):
                raw.send(MetadataRequest(), 12)


# -- credentials -----------------------------------------------------------------------------------


def test_scram_credentials_can_be_changed_while_the_cluster_runs(kafka):
    mechanism = ScramMechanism.SCRAM_SHA_512
    salted = hashlib.pbkdf2_hmac("sha512", b"new-secret", b"salty", 5000)
    with SaslConnection(kafka) as admin:
        admin.plain("alice", "alice-secret")
        upsert = ScramCredentialUpsertion("dave", int(mechanism), 5000, b"salty", salted)
        changed = admin.send(AlterUserScramCredentialsRequest([], [upsert]))
        assert [r.error_code for r in changed.results] == [ErrorCode.NONE]
        with SaslConnection(kafka) as dave:
            assert dave.scram("dave", "new-secret", "sha512").error_code == ErrorCode.NONE
        with SaslConnection(kafka) as dave:
            assert dave.scram("dave", "new-secret", "sha256").error_code != ErrorCode.NONE
        deletion = ScramCredentialDeletion("dave", int(mechanism))
        admin.send(AlterUserScramCredentialsRequest([deletion], []))
        with SaslConnection(kafka) as dave:
            assert dave.scram("dave", "new-secret", "sha512").error_code != ErrorCode.NONE


def test_the_users_of_the_start_have_credentials_that_can_be_described(raw):
    raw.plain("alice", "alice-secret")
    described = raw.send(DescribeUserScramCredentialsRequest(None)).results
    assert {
        r.user: [(c.mechanism, c.iterations) for c in r.credential_infos] for r in described
    } == {"alice": [(1, 4096), (2, 4096)], "bob": [(1, 4096), (2, 4096)]}


def test_the_principal_is_known_to_handlers(kafka, raw):
    raw.scram("bob", "bob-secret")
    assert {"User:bob"} == principals(kafka, raw)


def principals(kafka: Cluster, connection: Connection) -> set[str]:
    """The principals of this client's connections, as handlers see them."""
    _, port = connection._socket.getsockname()
    return kafka.call(
        lambda _: {
            each._info.principal
            for host in kafka.server.socket_servers.values()
            for each in host._connections
            if each._info.client_port == port
        }
    )


# -- TLS -------------------------------------------------------------------------------------------


def over_tls(kafka: Cluster, client: str | None = None) -> SaslConnection:
    """A connection over TLS, with the certificate of `client`."""
    context = ssl.create_default_context(cafile=kafka.tls.ca_path)
    if client is not None:
        files = kafka.tls.client(client)
        context.load_cert_chain(files.certificate_path, files.key_path)
    return SaslConnection(kafka, context=context)


@pytest.mark.parametrize(
    ("options", "client", "principal"),
    [
        ({}, None, "User:ANONYMOUS"),
        ({}, "alice", "User:ANONYMOUS"),
        ({"ssl.client.auth": "requested"}, None, "User:ANONYMOUS"),
        ({"ssl.client.auth": "requested"}, "alice", "User:CN=alice,OU=tests,O=mockbroker"),
        ({"ssl.client.auth": "required"}, "alice", "User:CN=alice,OU=tests,O=mockbroker"),
        (
            {
                "ssl.client.auth": "required",
                "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/U,DEFAULT",
            },
            "alice",
            "User:ALICE",
        ),
    ],
)
def test_a_client_certificate_is_a_principal_where_it_is_asked_for(options, client, principal):
    with (
        Cluster(brokers=1, security_protocol="SSL", configs=options) as kafka,
        over_tls(kafka, client) as connection,
    ):
        assert serves(connection)
        assert principals(kafka, connection) == {principal}


def test_a_client_without_the_certificate_it_needs_is_told_by_an_alert(caplog):
    configs = {"ssl.client.auth": "required"}
    with Cluster(brokers=1, security_protocol="SSL", configs=configs) as kafka:
        with (
            over_tls(kafka) as connection,
            pytest.raises(ConnectionClosedError, match=r"(?i)certificate.required"),
        ):
            connection.send(VERSIONS, 4)
        until_closed(kafka)
    assert "TLS handshake failed: peer did not return a certificate" in caplog.text


def test_a_certificate_that_no_rule_fits_closes_the_connection(caplog):
    configs = {
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=bob,.*$/bob/",
    }
    with (
        Cluster(brokers=1, security_protocol="SSL", configs=configs) as kafka,
        over_tls(kafka, "alice") as connection,
    ):
        assert connection.wait_closed()
    assert "no principal mapping rule matches CN=alice" in caplog.text


def test_a_client_that_speaks_no_tls_is_one_log_line(caplog):
    with Cluster(brokers=1, security_protocol="SSL") as kafka:
        with Connection(*kafka.endpoint(1)) as plain, pytest.raises(ConnectionClosedError):
            plain.send(VERSIONS, 4)
        until_closed(kafka)
    assert "TLS handshake failed" in caplog.text


def test_a_client_of_tls_on_a_plain_listener_is_one_log_line(caplog):
    with Cluster(brokers=1) as kafka:
        with pytest.raises(OSError, match=r"(?i)eof|reset"):
            SaslConnection(kafka, context=ssl.create_default_context())
        until_closed(kafka)
    assert "the client speaks TLS, which this listener does not" in caplog.text


def test_a_paused_broker_shakes_no_hands():
    with Cluster(brokers=1, security_protocol="SSL") as kafka:
        kafka.broker(1).pause()
        sock = socket.create_connection(kafka.endpoint(1), timeout=0.2)
        context = ssl.create_default_context(cafile=kafka.tls.ca_path)
        with pytest.raises(TimeoutError):
            context.wrap_socket(sock, server_hostname="127.0.0.1")
        kafka.broker(1).resume()
        with over_tls(kafka) as connection:
            assert serves(connection)


def until_closed(kafka: Cluster) -> None:
    """Return once every connection is over, and what is to be logged has been."""
    wait_until(lambda: kafka.call(lambda _: kafka.server.stats.connections_open) == 0)


def test_sasl_over_tls_takes_its_user_for_the_principal():
    listener = ListenerSpec(
        "SECURE", security_protocol="SASL_SSL", configs={"ssl.client.auth": "requested"}
    )
    with (
        Cluster(brokers=1, listeners=[listener], users=USERS) as kafka,
        over_tls(kafka, "carol") as connection,
    ):
        connection.plain("alice", "alice-secret")
        assert serves(connection)
        assert principals(kafka, connection) == {"User:alice"}


def test_sasl_over_tls_asks_for_no_certificate_unless_the_listener_does():
    """KIP-684: ssl.client.auth of the broker is for SSL listeners."""
    configs = {"ssl.client.auth": "required"}
    with (
        Cluster(brokers=1, security_protocol="SASL_SSL", configs=configs, users=USERS) as kafka,
        over_tls(kafka) as connection,
    ):
        connection.plain("alice", "alice-secret")
        assert serves(connection)


def test_each_listener_asks_in_its_own_way():
    listeners = [
        ListenerSpec("OPEN"),
        ListenerSpec(
            "LOGIN",
            security_protocol="SASL_PLAINTEXT",
            configs={"sasl.enabled.mechanisms": "PLAIN", "plain.connections.max.reauth.ms": "7000"},
        ),
    ]
    with Cluster(brokers=2, listeners=listeners, users=USERS) as kafka:
        with Connection(*kafka.endpoint(1, "OPEN")) as open_:
            found = {b.port for b in open_.send(MetadataRequest(), 12).brokers}
            assert found == {kafka.endpoint(n, "OPEN")[1] for n in (1, 2)}
        with SaslConnection(kafka, 1, "LOGIN") as login:
            assert login.handshake("SCRAM-SHA-256").mechanisms == ["PLAIN"]
        with SaslConnection(kafka, 1, "LOGIN") as login:
            assert login.plain("alice", "alice-secret").session_lifetime_ms == 7000
            found = {b.port for b in login.send(MetadataRequest(), 12).brokers}
            assert found == {kafka.endpoint(n, "LOGIN")[1] for n in (1, 2)}
