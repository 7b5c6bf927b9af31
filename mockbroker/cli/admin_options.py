"""The options of `serve` for its admin API: its address and its token."""

from __future__ import annotations

import ipaddress
import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from mockbroker.cli import environment
from mockbroker.cli.text_files import why_unread
from mockbroker.server.config import ServerError
from mockbroker.server.private_files import write_private

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_ADMIN_PORT = 9191
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class AdminOptions:
    """The admin API's address, and the token of its clients, if they need one.

    `temporary` is the directory of a token file that was made for this run.
    """

    host: str
    port: int
    secret: str | None = None
    secret_file: Path | None = None
    temporary: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove a token file that was made for this run."""
        if self.temporary is not None:
            self.temporary.cleanup()


LOCAL_ADMIN = AdminOptions(LOOPBACK, 0)
"""An admin API on a free port of this machine, without a token."""


def admin_options(*, default_port: int) -> Callable[[F], F]:
    """Give a command the options that `read_admin_options` reads."""
    port = click.option(
        "--admin-port",
        type=click.IntRange(0, 65535),
        default=default_port,
        show_default=True,
        help="Port of the admin API, /healthz and /metrics; 0 takes a free one.",
    )

    def with_options(command: F) -> F:
        for option in reversed((port, *_OPTIONS)):
            command = option(command)
        return command

    return with_options


_OPTIONS = (
    click.option("--no-admin", is_flag=True, help="Do not serve the admin API."),
    click.option(
        "--allow-remote",
        is_flag=True,
        help="Serve the admin API on the brokers' address. Its clients then need a token.",
    ),
    click.option(
        "--admin-token-file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="File with the admin API's token. Only you may have access to it."
        f"  [default: the token in {environment.ADMIN_TOKEN}]",
    ),
)


def read_admin_options(
    brokers_host: str,
    *,
    admin_port: int,
    no_admin: bool,
    allow_remote: bool,
    admin_token_file: Path | None,
) -> AdminOptions | None:
    """The admin API of the options, None with --no-admin. Raises ServerError for a token file that
    cannot be used. Without a file, the token is MOCKBROKER_ADMIN_TOKEN; with --allow-remote, a
    missing one is made, in a temporary file.
    """
    if no_admin:
        return None
    secret = os.environ.get(environment.ADMIN_TOKEN) or None
    if admin_token_file is not None:
        secret = _read_secret(admin_token_file)
    if not allow_remote or _is_loopback(brokers_host):
        return AdminOptions(LOOPBACK, admin_port, secret, admin_token_file)
    if secret is not None:
        return AdminOptions(brokers_host, admin_port, secret, admin_token_file)
    secret, temporary = secrets.token_urlsafe(32), tempfile.TemporaryDirectory(prefix="mockbroker-")
    token_file = Path(temporary.name) / "admin.token"
    write_private(token_file, secret.encode())
    return AdminOptions(brokers_host, admin_port, secret, token_file, temporary)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_secret(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ServerError(f"--admin-token-file {path}: {why_unread(error)}") from None
    if os.name == "posix" and mode & 0o077:
        raise ServerError(
            f"--admin-token-file {path}: other users can read it; run chmod 600 {path}"
        )
    if not text:
        raise ServerError(f"--admin-token-file {path}: it is empty")
    return text
