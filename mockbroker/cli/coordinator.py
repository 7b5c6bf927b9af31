"""`mockbroker coordinator`: partition and coordinator of a group or transactional id."""

from __future__ import annotations

import click

from mockbroker.cli.admin_client import AdminClient, admin_command
from mockbroker.cli.common import json_option
from mockbroker.cli.output import print_json


@click.command()
@click.argument("key")
@click.option(
    "--transactional-id", "is_transactional", is_flag=True, help="KEY is a transactional id."
)
@json_option
@admin_command
def coordinator(api: AdminClient, key: str, is_transactional: bool, as_json: bool) -> None:
    """Print hash, partition and coordinator of group KEY.

    The group need not exist.
    """
    key_type = "transactional_id" if is_transactional else "group"
    found = api.get("/v1/coordinator", {key_type: key})
    if as_json:
        print_json(found)
        return
    hashed, partitions = found["hash"], found["partitions"]
    leader = found["coordinator"]
    click.echo(f"hash         {hashed}")
    click.echo(f"partition    {found['topic']}-{found['partition']} (of {partitions})")
    click.echo(f"coordinator  {'none' if leader < 0 else f'broker {leader}'}")
