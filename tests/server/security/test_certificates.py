"""The certificates of the test authority, and their files for clients."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from mockbroker.server.security.certificates import Authority, pem_of_pkcs12


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_a_server_certificate_names_its_hosts_once(authority):
    files = authority.server(["localhost", "127.0.0.1", "::1", "localhost"])
    certificate = x509.load_pem_x509_certificates(files.certificate_path.read_bytes())[0]
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]


def test_a_client_is_issued_once_and_named_in_its_subject(authority):
    files = authority.client("alice", organizational_unit="sales")
    certificate = x509.load_pem_x509_certificates(files.certificate_path.read_bytes())[0]
    assert certificate.subject.rfc4514_string() == "CN=alice,OU=sales,O=mockbroker"
    before = files.key_path.read_bytes()
    assert authority.client("alice").key_path.read_bytes() == before


def test_a_clients_name_is_kept_out_of_paths(authority):
    files = authority.client("../a/b")
    assert files.certificate_path.parent == authority.directory
    assert files.certificate_path.name == "___a_b.pem"


def test_the_store_holds_the_same_identity_as_the_pem_files(authority):
    files = authority.client("alice")
    chain, key = pem_of_pkcs12(files.keystore_path.read_bytes(), files.password)
    assert chain == files.certificate_path.read_bytes()
    assert key == files.key_path.read_bytes()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(files.certificate_path, files.key_path)


def test_the_truststore_holds_the_authority(authority):
    store = pkcs12.load_pkcs12(authority.truststore_path.read_bytes(), authority.password.encode())
    (entry,) = store.additional_certs
    ca = x509.load_pem_x509_certificate(authority.ca_path.read_bytes())
    assert entry.certificate == ca
    assert pem_of_pkcs12(authority.truststore_path.read_bytes(), authority.password) == (
        authority.ca_path.read_bytes(),
        b"",
    )


def test_a_wrong_store_password_is_a_value_error(authority):
    with pytest.raises(ValueError, match=r"(?i)password"):
        pem_of_pkcs12(authority.truststore_path.read_bytes(), "wrong")


def test_private_keys_are_the_owners_alone(authority):
    for path in (authority.client().key_path, authority.server(["h"]).key_path):
        assert path.stat().st_mode & 0o077 == 0
