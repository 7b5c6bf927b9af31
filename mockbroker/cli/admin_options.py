"""The options of `serve` for its admin API: where it listens, and who may use it."""

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

from mockbroker.actors.config import ServerError
from mockbroker.actors.private_files import write_private

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_ADMIN_PORT = 9191
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class AdminOptions:
    """Where the admin API listens. `secret` is what its clients have to show, if anything."""

    host: str
    port: int
    secret: str | None = None
    secret_file: Path | None = None


def admin_options(command: F) -> F:
    """Give a command the options that `read_admin_options` reads."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--admin-port",
        type=click.IntRange(0, 65535),
        default=DEFAULT_ADMIN_PORT,
        show_default=True,
        help="Port of the admin API, /healthz and /metrics; 0 takes a free one.",
    ),
    click.option("--no-admin", is_flag=True, help="Serve no admin API."),
    click.option(
        "--allow-remote",
        is_flag=True,
        help="Let the admin API listen where the brokers do; its clients need a token then.",
    ),
    click.option(
        "--admin-token-file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The token for the admin API, in a file that only you can read.",
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
    """What the options come to; None for no admin API. Raises ServerError where they do not fit.

    With --allow-remote and no token file a token is made, in a file of its own.
    """
    if no_admin:
        return None
    secret = None if admin_token_file is None else _read_secret(admin_token_file)
    if not allow_remote or _is_loopback(brokers_host):
        return AdminOptions(LOOPBACK, admin_port, secret, admin_token_file)
    if secret is None:
        secret = secrets.token_urlsafe(32)
        admin_token_file = Path(tempfile.mkdtemp(prefix="mockbroker-")) / "admin.token"
        write_private(admin_token_file, secret.encode())
    return AdminOptions(brokers_host, admin_port, secret, admin_token_file)


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
        raise ServerError(f"--admin-token-file {path}: {error}") from None
    if os.name == "posix" and mode & 0o077:
        raise ServerError(f"--admin-token-file {path}: others can read it; chmod 600 {path}")
    if not text:
        raise ServerError(f"--admin-token-file {path}: it is empty")
    return text
