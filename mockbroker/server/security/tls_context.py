"""A server's `ssl.SSLContext` from Kafka's `ssl.*` configs.

Keystores and truststores may be PEM or PKCS12, not Java's JKS. Without a keystore, brokers get a
certificate of the test authority. Without a truststore, they trust its clients.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from mockbroker.server.config import ServerError
from mockbroker.server.private_files import write_private

if TYPE_CHECKING:
    from mockbroker.server.security.listeners import ListenerConfigs, Security

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_JKS_MAGIC = b"\xfe\xed\xfe\xed"


def server_context(security: Security, settings: ListenerConfigs) -> ssl.SSLContext:
    """The context of one listener. Raises ServerError that names the faulty file or config."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _limit_versions(context, settings)
    # An unread session ticket turns the FIN of a closing client into a RST, and the last requests
    # of a producer with acks=0 would be lost.
    context.num_tickets = 0
    # On SASL_SSL only the listener's own config counts (KIP-684): clients authenticate by SASL.
    own = settings.own("ssl.client.auth")
    client_auth = own if settings.listener.is_sasl else settings.get("ssl.client.auth")
    context.verify_mode = _CLIENT_AUTH[str(client_auth or "none")]
    _load_keys(context, security, settings)
    if context.verify_mode is not ssl.CERT_NONE:
        _load_trust(context, security, settings)
    return context


def expired_context(security: Security, settings: ListenerConfigs) -> ssl.SSLContext:
    """As `server_context`, with an expired certificate of the test authority."""
    context = server_context(security, settings)
    files = security.authority.server(security.hosts(), expired=True)
    context.load_cert_chain(files.certificate_path, files.key_path)
    return context


def _limit_versions(context: ssl.SSLContext, settings: ListenerConfigs) -> None:
    versions = [_VERSIONS[v] for v in settings.texts("ssl.enabled.protocols") if v in _VERSIONS]
    if not versions:
        raise ServerError(
            f"listener {settings.listener.name}: ssl.enabled.protocols has neither TLSv1.2 nor"
            " TLSv1.3"
        )
    context.minimum_version = min(versions)
    context.maximum_version = max(versions)


def _load_keys(context: ssl.SSLContext, security: Security, settings: ListenerConfigs) -> None:
    location = settings.text("ssl.keystore.location")
    chain = settings.text("ssl.keystore.certificate.chain")
    if location is None and chain is None:
        files = security.authority.server(security.hosts())
        context.load_cert_chain(files.certificate_path, files.key_path)
        return
    key_password = settings.text("ssl.key.password")
    if chain is not None:
        key = settings.text("ssl.keystore.key")
        if key is None:
            raise ServerError("ssl.keystore.certificate.chain needs ssl.keystore.key beside it")
        pem = f"{chain}\n{key}\n".encode()
    else:
        assert location is not None
        password = settings.text("ssl.keystore.password")
        certificates, key_pem = _read_store(location, password)
        if not certificates.startswith(b"-----"):
            raise ServerError(f"{location} holds no certificate")
        pem = certificates + key_pem
        key_password = key_password or password
    path = security.directory / f"keystore-{settings.listener.name.lower()}.pem"
    write_private(path, pem)
    try:
        # Without a password, OpenSSL would prompt for the one of an encrypted key.
        context.load_cert_chain(path, password=key_password or "")
    except ssl.SSLError as error:
        raise ServerError(
            f"the keystore of listener {settings.listener.name} cannot be used: {_reason(error)}"
        ) from None


def _load_trust(context: ssl.SSLContext, security: Security, settings: ListenerConfigs) -> None:
    location = settings.text("ssl.truststore.location")
    certificates = settings.text("ssl.truststore.certificates")
    if location is None and certificates is None:
        context.load_verify_locations(security.authority.ca_path)
        return
    if location is not None:
        pem, _ = _read_store(location, settings.text("ssl.truststore.password"))
        certificates = pem.decode()
    try:
        context.load_verify_locations(cadata=certificates)
    except ssl.SSLError as error:
        raise ServerError(
            f"the truststore of listener {settings.listener.name} cannot be used: {_reason(error)}"
        ) from None


def _read_store(location: str, password: str | None) -> tuple[bytes, bytes]:
    """Certificates and key as PEM, from a PEM or PKCS12 file."""
    try:
        data = Path(location).read_bytes()
    except OSError as error:
        raise ServerError(f"cannot read {location}: {error.strerror}") from None
    if b"-----BEGIN " in data:
        return data[data.index(b"-----BEGIN ") :], b""
    if data.startswith(_JKS_MAGIC):
        raise ServerError(f"{location} is a Java keystore (JKS); make it PKCS12 or PEM")
    from mockbroker.server.security.certificates import pem_of_pkcs12

    try:
        return pem_of_pkcs12(data, password)
    except ValueError as error:
        raise ServerError(f"{location} is neither PEM nor a PKCS12 store: {error}") from None


def _reason(error: ssl.SSLError) -> str:
    return str(error.reason or error).replace("_", " ").lower()
