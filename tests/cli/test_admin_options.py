"""The address of the admin API, and its token."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockbroker.cli import environment
from mockbroker.cli.admin_options import AdminOptions, read_admin_options


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.ADMIN_TOKEN, raising=False)


def options(host: str, *, allow_remote: bool, token_file: Path | None = None) -> AdminOptions:
    found = read_admin_options(
        host,
        admin_port=0,
        no_admin=False,
        allow_remote=allow_remote,
        admin_token_file=token_file,
    )
    assert found is not None
    return found


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "::", "10.0.0.7"])
def test_without_the_flag_it_listens_on_the_loopback_address(host: str) -> None:
    """Wherever the brokers listen."""
    assert options(host, allow_remote=False) == AdminOptions("127.0.0.1", 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "kafka.test"])
def test_elsewhere_there_is_always_a_token(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = options(host, allow_remote=True)
    assert found.host == host
    assert found.secret is not None
    assert len(found.secret) >= 32
    assert found.secret_file is not None
    assert found.secret_file.stat().st_mode & 0o077 == 0
    found.close()
    assert not found.secret_file.exists()
    monkeypatch.setenv(environment.ADMIN_TOKEN, "open sesame")
    assert options(host, allow_remote=True) == AdminOptions(host, 0, "open sesame")
