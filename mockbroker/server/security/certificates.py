"""A certificate authority for tests, made on demand, with the files for clients.

Nothing here is secret: keys lie unencrypted in a directory that is removed with the cluster, and
the stores have a well-known password. Needs the extra `tls`, which is imported with the first TLS
listener.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mockbroker.server.private_files import write_private

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import pkcs12
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:  # pragma: no cover - the test environment has it
    from mockbroker.extras import missing
    from mockbroker.server.config import ServerError

    raise ServerError(missing("test certificates need", "cryptography")) from error

STORE_PASSWORD = "mockbroker"  # noqa: S105 - Java requires one; it protects nothing

ORGANIZATION = "mockbroker"
# Clocks of containers and laptops differ: certificates are valid from the day before.
VALID_BEFORE = timedelta(days=1)
VALID_FOR = timedelta(days=3650)
EXPIRED = timedelta(hours=-1)


@dataclass(frozen=True)
class ClientFiles:
    """A client's identity: PEM for most clients, PKCS12 (password `mockbroker`) for Java."""

    certificate_path: Path
    key_path: Path
    keystore_path: Path
    password: str = STORE_PASSWORD


@dataclass(frozen=True)
class ServerFiles:
    """The arguments of `ssl.SSLContext.load_cert_chain`."""

    certificate_path: Path
    key_path: Path


class Authority:
    """A certificate authority with its files in `directory`; an existing one is used.

    `ca_path` is its certificate as PEM, `truststore_path` the same as PKCS12 for Java. Raises
    ValueError if files in the directory are malformed.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca_path = directory / "ca.pem"
        self.truststore_path = directory / "truststore.p12"
        self.password = STORE_PASSWORD
        self._name = _name("mockbroker test CA", "tests")
        key_path = directory / "ca.key"
        if key_path.exists():
            key = serialization.load_pem_private_key(key_path.read_bytes(), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise ValueError(f"{key_path} is not the key of a test authority")
            self._key = key
            self._certificate = x509.load_pem_x509_certificate(self.ca_path.read_bytes())
        else:
            self._key = ec.generate_private_key(ec.SECP256R1())
            self._certificate = self._self_signed()
            _write_key(key_path, self._key)
            self.ca_path.write_bytes(_pem(self._certificate))
            self.truststore_path.write_bytes(
                pkcs12.serialize_java_truststore(
                    [pkcs12.PKCS12Certificate(self._certificate, b"mockbroker")],
                    serialization.BestAvailableEncryption(STORE_PASSWORD.encode()),
                )
            )

    def _self_signed(self) -> x509.Certificate:
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def server(self, hosts: Iterable[str], *, expired: bool = False) -> ServerFiles:
        """A server certificate for these host names and addresses.

        An `expired` one expired an hour ago, and has files of its own.
        """
        names = [_general_name(host) for host in dict.fromkeys(hosts)]
        key, certificate = self._issue(
            _name("mockbroker", "brokers"),
            ExtendedKeyUsageOID.SERVER_AUTH,
            names,
            EXPIRED if expired else VALID_FOR,
        )
        stem = "server-expired" if expired else "server"
        files = ServerFiles(self.directory / f"{stem}.pem", self.directory / f"{stem}.key")
        files.certificate_path.write_bytes(_pem(certificate) + _pem(self._certificate))
        _write_key(files.key_path, key)
        return files

    def client(self, name: str = "client", *, organizational_unit: str = "tests") -> ClientFiles:
        """A client certificate with the subject `CN=name,OU=organizational_unit,O=mockbroker`.

        Its files are named after the client. An existing certificate is returned.
        """
        stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)
        files = ClientFiles(
            self.directory / f"{stem}.pem",
            self.directory / f"{stem}.key",
            self.directory / f"{stem}.p12",
        )
        if files.keystore_path.exists():
            return files
        key, certificate = self._issue(
            _name(name, organizational_unit), ExtendedKeyUsageOID.CLIENT_AUTH, []
        )
        files.certificate_path.write_bytes(_pem(certificate) + _pem(self._certificate))
        _write_key(files.key_path, key)
        files.keystore_path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                name.encode(),
                key,
                certificate,
                [self._certificate],
                serialization.BestAvailableEncryption(STORE_PASSWORD.encode()),
            )
        )
        return files

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: list[x509.GeneralName],
        valid_for: timedelta = VALID_FOR,
    ) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(subject, key.public_key(), valid_for)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return key, builder.sign(self._key, hashes.SHA256())

    def _builder(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        valid_for: timedelta = VALID_FOR,
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - VALID_BEFORE)
            .not_valid_after(now + valid_for)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )


def pem_of_pkcs12(data: bytes, password: str | None) -> tuple[bytes, bytes]:
    """(certificate chain, private key) of a PKCS12 store as PEM. Raises ValueError."""
    key, certificate, more = pkcs12.load_key_and_certificates(
        data, None if password is None else password.encode()
    )
    certificates = [each for each in (certificate, *more) if each is not None]
    chain = b"".join(_pem(each) for each in certificates)
    if key is None:
        return chain, b""
    return chain, key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _name(common_name: str, organizational_unit: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, organizational_unit),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    write_private(path, pem)
