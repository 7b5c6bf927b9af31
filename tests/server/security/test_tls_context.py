"""Kafka's ssl.* configs become a server's TLS context, or an error that names the wrong one."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.server.config import ListenerSpec, ServerConfig, ServerError
from mockbroker.server.security.certificates import Authority
from mockbroker.server.security.listeners import ListenerConfigs, Security
from mockbroker.server.security.tls_context import server_context


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def made(tmp_path: Path, protocol: str = "SSL", **configs: str) -> tuple[ssl.SSLContext, Security]:
    """The context of one listener whose own configs these are; `a_b` means a.b."""
    own = {name.replace("_", "."): value for name, value in configs.items()}
    listener = ListenerSpec("L", security_protocol=protocol, configs=own)
    config = ServerConfig(brokers=1, listeners=(listener,), security_directory=tmp_path / "files")
    cluster = Cluster(seed=1, configs=config.broker_configs())
    security = Security(config, cluster)
    settings = ListenerConfigs(listener, config.listener_configs(listener), cluster)
    return server_context(security, settings), security


def handshake(server: ssl.SSLContext, ca: Path) -> ssl.SSLObject:
    """The client's end of a handshake with the context, through memory."""
    context = ssl.create_default_context(cafile=ca)
    a, b = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = server.wrap_bio(a, b, server_side=True)
    far = context.wrap_bio(b, a, server_hostname="localhost")
    done: set[ssl.SSLObject] = set()
    while len(done) < 2:
        for side in (far, near):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass
    return far


def test_without_a_keystore_the_test_authority_vouches_for_the_broker(tmp_path):
    context, security = made(tmp_path)
    certificate = handshake(context, security.authority.ca_path).getpeercert()
    assert certificate is not None
    names = {value for _, value in certificate["subjectAltName"]}  # type: ignore[union-attr]
    assert {"localhost", "127.0.0.1"} <= names
    assert context.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("protocols", "low", "high"),
    [
        ("TLSv1.2,TLSv1.3", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
        ("TLSv1.3", ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3),
        ("TLSv1,TLSv1.2", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2),
    ],
)
def test_the_enabled_protocols_are_the_limits(tmp_path, protocols, low, high):
    context, _ = made(tmp_path, ssl_enabled_protocols=protocols)
    assert (context.minimum_version, context.maximum_version) == (low, high)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("none", ssl.CERT_NONE),
        ("requested", ssl.CERT_OPTIONAL),
        ("required", ssl.CERT_REQUIRED),
    ],
)
def test_client_certificates_are_asked_for_as_configured(tmp_path, text, mode):
    assert made(tmp_path, ssl_client_auth=text)[0].verify_mode is mode
    assert made(tmp_path, "SASL_SSL", ssl_client_auth=text)[0].verify_mode is mode


def store_configs(authority: Authority, kind: str, tmp_path: Path) -> dict[str, str]:
    """A keystore of the given kind, as a user would configure it."""
    server = authority.server(["localhost"])
    certificate, key = server.certificate_path.read_text(), server.key_path.read_text()
    match kind:
        case "PEM file":
            path = tmp_path / "keystore.pem"
            path.write_text(f"a comment\n{certificate}{key}")
            return {"ssl_keystore_location": str(path), "ssl_keystore_type": "PEM"}
        case "PEM text":
            return {"ssl_keystore_certificate_chain": certificate, "ssl_keystore_key": key}
        case _:
            files = authority.client("localhost")
            return {
                "ssl_keystore_location": str(files.keystore_path),
                "ssl_keystore_password": files.password,
            }


@pytest.mark.parametrize("kind", ["PEM file", "PEM text"])
def test_a_keystore_of_the_users_own_is_shown(tmp_path, authority, kind):
    context, security = made(tmp_path, **store_configs(authority, kind, tmp_path))
    assert handshake(context, authority.ca_path)
    assert not security.has_authority


def test_a_keystore_may_be_pkcs12(tmp_path, authority):
    context, security = made(tmp_path, **store_configs(authority, "PKCS12", tmp_path))
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        handshake(context, authority.ca_path)  # it is shown, but it is a client's
    assert not security.has_authority


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "text"])
def test_a_truststore_says_whose_clients_are_let_in(tmp_path, authority, kind):
    trust = {
        "PEM": {"ssl_truststore_location": str(authority.ca_path)},
        "PKCS12": {
            "ssl_truststore_location": str(authority.truststore_path),
            "ssl_truststore_password": authority.password,
        },
        "text": {"ssl_truststore_certificates": authority.ca_path.read_text()},
    }[kind]
    context, _ = made(tmp_path, ssl_client_auth="required", **trust)
    (trusted,) = context.get_ca_certs()
    assert (("commonName", "mockbroker test CA"),) in trusted["subject"]


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"ssl_enabled_protocols": "SSLv3"}, "neither TLSv1.2 nor TLSv1.3"),
        ({"ssl_keystore_location": "/does/not/exist"}, "cannot read /does/not/exist"),
        ({"ssl_keystore_certificate_chain": "x"}, "needs ssl.keystore.key"),
        (
            {"ssl_keystore_certificate_chain": "x", "ssl_keystore_key": "y"},
            "keystore of listener L cannot be used",
        ),
        (
            {"ssl_client_auth": "required", "ssl_truststore_certificates": "x"},
            "truststore of listener L cannot be used",
        ),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path, configs, message):
    with pytest.raises(ServerError, match=message):
        made(tmp_path, **configs)


def test_a_java_keystore_is_named_as_such(tmp_path):
    path = tmp_path / "keystore.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed" + bytes(20))
    with pytest.raises(ServerError, match="make it PKCS12 or PEM"):
        made(tmp_path, ssl_keystore_location=str(path))


@pytest.mark.parametrize("data", [b"", b"nonsense"])
def test_a_file_that_is_no_store_is_named(tmp_path, data):
    path = tmp_path / "keystore"
    path.write_bytes(data)
    with pytest.raises(ServerError, match="neither PEM nor a PKCS12"):
        made(tmp_path, ssl_keystore_location=str(path))


def test_a_wrong_password_of_a_store_is_said(tmp_path, authority):
    configs = store_configs(authority, "PKCS12", tmp_path)
    configs["ssl_keystore_password"] = "wrong"
    with pytest.raises(ServerError, match="PKCS12"):
        made(tmp_path, **configs)


def test_an_encrypted_key_without_its_password_does_not_prompt(tmp_path, authority):
    from cryptography.hazmat.primitives import serialization

    server = authority.server(["localhost"])
    key = serialization.load_pem_private_key(server.key_path.read_bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"word"),
    ).decode()
    chain = server.certificate_path.read_text()
    configs = {"ssl_keystore_certificate_chain": chain, "ssl_keystore_key": encrypted}
    with pytest.raises(ServerError, match="keystore of listener L"):
        made(tmp_path, **configs)
    context, _ = made(tmp_path, ssl_key_password="word", **configs)
    assert handshake(context, authority.ca_path)
