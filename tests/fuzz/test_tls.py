"""The target of TLS connections finds what it is for."""

from __future__ import annotations

import ssl

import pytest

from mockbroker.server.security.tls_transport import TlsTransport
from tests.fuzz.targets.all import TARGETS
from tests.fuzz.targets.tls import CHANGES, HANDSHAKE
from tests.fuzz.work import Broken

RECORD = bytes([HANDSHAKE, 3, 3, 0, 8]) + bytes(range(8))


@pytest.mark.parametrize("phase", ["handshake", "receive_into"])
def test_an_error_of_openssl_that_is_no_end_of_the_connection_is_found(
    monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    sound = getattr(TlsTransport, phase)

    async def failing(*arguments: object, **options: object) -> object:
        try:
            return await sound(*arguments, **options)
        except ssl.SSLError as error:
            raise ValueError("not expected") from error

    monkeypatch.setattr(TlsTransport, phase, failing)
    target = TARGETS["tls"]
    with pytest.raises(Broken, match="a broker logs an error, connection"):
        target.check(target.draw(0))


@pytest.mark.parametrize("change", list(dict.fromkeys(CHANGES)))
def test_each_change_makes_another_record_and_depends_on_its_generator_alone(change) -> None:
    made = [b"".join(change(TARGETS["tls"].rng(7), RECORD)) for _ in range(2)]
    assert made[0] == made[1] != RECORD
