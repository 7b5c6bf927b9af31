"""`mockbroker token`: an OAUTHBEARER token, signed with the key of a cluster's --security-dir."""

from __future__ import annotations

import time
from pathlib import Path

import click

from mockbroker.cli.common import name_values


@click.command()
@click.argument("user")
@click.option(
    "--key",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    required=True,
    help="Signing key: tokens.key in the cluster's --security-dir.",
)
@click.option(
    "--lifetime",
    type=click.FloatRange(min=0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="Lifetime of the token.",
)
@click.option(
    "--claim",
    "claims",
    multiple=True,
    callback=name_values,
    metavar="NAME=VALUE",
    help="Add a claim. May be repeated.",
)
def token(user: str, key: Path, lifetime: float, claims: dict[str, str]) -> None:
    """Print a token for USER."""
    from mockbroker.server.security.token_keys import TokenKeys

    try:
        keys = TokenKeys(lambda: time.time_ns() // 1_000_000, key.read_bytes())
    except ValueError as error:
        raise click.ClickException(f"{key} is not a token key: {error}") from None
    click.echo(keys.sign(user, lifetime_s=lifetime, claims=claims))
