"""`mockbroker show`: the views of the admin API as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from mockbroker.cli.admin_client import AdminClient, admin_command, named_values
from mockbroker.cli.common import json_option
from mockbroker.cli.output import Cell, print_json, print_table

# Views and their paths.
VIEWS: Mapping[str, str] = {
    "cluster": "/v1/cluster",
    "controller": "/v1/controller",
    "brokers": "/v1/brokers",
    "network": "/v1/network",
    "topics": "/v1/topics",
    "partitions": "/v1/partitions",
    "groups": "/v1/groups",
    "lag": "/v1/lag",
    "share-partitions": "/v1/share-partitions",
    "streams-tasks": "/v1/streams-tasks",
    "transactions": "/v1/transactions",
    "open-transactions": "/v1/transactions/open",
    "producers": "/v1/producers",
    "connections": "/v1/connections",
    "telemetry": "/v1/telemetry",
    "timers": "/v1/timers",
}


@click.command()
@click.argument("what", type=click.Choice(list(VIEWS)), metavar="WHAT")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]…")
@json_option
@admin_command
def show(api: AdminClient, what: str, arguments: tuple[str, ...], as_json: bool) -> None:
    """Print a table of WHAT: cluster, controller, brokers, network, topics, partitions, groups,
    lag, share-partitions, streams-tasks, transactions, open-transactions, producers, connections,
    telemetry or timers (the next ones to run, at most `limit`).

    \b
    mockbroker show partitions topic=orders
    mockbroker show lag group=billing --json
    """
    found = api.get(VIEWS[what], named_values(arguments))
    if as_json:
        print_json(found)
        return
    if what == "network":
        found = list(_links(found))
    rows: list[dict[str, Any]] = found if isinstance(found, list) else [found]
    if not rows:
        click.echo(f"{what}: nothing to show", err=True)
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [name.replace("_", " ").upper() for name in names]
    print_table(columns, [[_cell(row.get(name)) for name in names] for row in rows])


def _links(network: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The links between brokers, and behind them those to clients that are cut."""
    yield from network["links"]
    for cut in network["clients"]:
        ends = [cut["match"], "all brokers" if cut["brokers"] is None else cut["brokers"]]
        for sender, receiver in (ends, ends[::-1])[: 2 if cut["both_ways"] else 1]:
            link = {"from": sender, "to": receiver, "up": False, "delay_ms": 0}
            yield {**link, "rules": [cut["rule"]]}


def _cell(value: object) -> Cell:
    """A number or text as it is, a list of objects as its length, an object as its fields that
    are not 0, other values as JSON; `-` if there is nothing.
    """
    if value == []:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}" for name, part in value.items() if part != 0) or "-"
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        if isinstance(value, list) and isinstance(value[0], dict):
            return len(value)
        return json.dumps(value)
    return "-" if value is None else value
