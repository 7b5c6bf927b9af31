"""`mockbroker coordinator`: which partition a group or transactional id is on, and whose it is."""

from __future__ import annotations

import click

from mockbroker.cli.admin_client import AdminClient, admin_command
from mockbroker.cli.common import json_option
from mockbroker.cli.output import print_json


@click.command()
@click.argument("key")
@click.option("--transactional-id", "is_transactional", is_flag=True, help="KEY is no group.")
@json_option
@admin_command
def coordinator(api: AdminClient, key: str, is_transactional: bool, as_json: bool) -> None:
    """Say which partition group KEY is on, by its hash, and which broker coordinates it.

    There need not be such a group.
    """
    asked = "transactional_id" if is_transactional else "group"
    found = api.get("/v1/coordinator", {asked: key})
    if as_json:
        print_json(found)
        return
    hashed, partitions = found["hash"], found["partitions"]
    leader = found["coordinator"]
    click.echo(f"hash         {hashed}")
    click.echo(f"partition    {found['topic']}-{found['partition']} (of {partitions})")
    click.echo(f"coordinator  {'none' if leader < 0 else f'broker {leader}'}")
