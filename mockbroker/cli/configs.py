"""`mockbroker configs`: configs of topics, brokers and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mockbroker.cli.common import client_command, json_option, name_values
from mockbroker.cli.output import print_json, print_table

if TYPE_CHECKING:
    from mockbroker.client import Client, Config, Resource

KINDS = ("topic", "broker", "group")
# In place of a broker's id: the configs of all brokers.
ALL_BROKERS = "all"

_kind = click.argument("kind", type=click.Choice(KINDS), metavar="topic|broker|group")


@click.group()
def configs() -> None:
    """List, describe, alter and delete configs of topics, brokers and groups.

    A broker is named by its id, or `all` for the configs of all brokers.

    \b
    mockbroker configs describe topic orders
    mockbroker configs alter broker all message.max.bytes=2000000
    mockbroker configs delete group billing consumer.session.timeout.ms
    """


@configs.command("list")
@_kind
@json_option
@client_command
def list_configs(client: Client, *, kind: str, as_json: bool) -> None:
    """List the configs that are set, of all topics, brokers or groups."""
    resource = _resource(kind)
    rows = [
        (name or ALL_BROKERS, config)
        for name in client.configs.resources(resource)
        for config in client.configs.describe(resource, name)
        if config.is_set
    ]
    if as_json:
        print_json([_json(kind, name, config) for name, config in rows])
        return
    columns = (kind.upper(), "CONFIG", "VALUE")
    print_table(columns, [(name, config.name, config.value) for name, config in rows])


@configs.command("describe")
@_kind
@click.argument("name")
@click.option("--all", "everything", is_flag=True, help="Show defaults too.")
@json_option
@client_command
def describe_configs(
    client: Client, *, kind: str, name: str, everything: bool, as_json: bool
) -> None:
    """Show the configs of NAME that are set, with --all those of every source."""
    found = [
        config
        for config in client.configs.describe(_resource(kind), _name(kind, name))
        if config.is_set or everything
    ]
    if as_json:
        print_json([_json(kind, name, config) for config in found])
        return
    rows = [(config.name, config.value, config.source) for config in found]
    print_table(("CONFIG", "VALUE", "SOURCE"), rows)


@configs.command("alter")
@_kind
@click.argument("name")
@click.argument("values", metavar="CONFIG=VALUE…", nargs=-1, required=True, callback=name_values)
@json_option
@client_command
def alter_configs(
    client: Client, *, kind: str, name: str, values: dict[str, str], as_json: bool
) -> None:
    """Set configs of NAME."""
    client.configs.alter(_resource(kind), _name(kind, name), values)
    _print_changed(kind, name, values, (), as_json=as_json)


@configs.command("delete")
@_kind
@click.argument("name")
@click.argument("names", metavar="CONFIG…", nargs=-1, required=True)
@json_option
@client_command
def delete_configs(
    client: Client, *, kind: str, name: str, names: tuple[str, ...], as_json: bool
) -> None:
    """Delete configs of NAME, so that their defaults apply."""
    client.configs.alter(_resource(kind), _name(kind, name), delete=names)
    _print_changed(kind, name, {}, names, as_json=as_json)


def _print_changed(
    kind: str, name: str, values: dict[str, str], deleted: tuple[str, ...], *, as_json: bool
) -> None:
    if as_json:
        print_json({"kind": kind, "name": name, "set": values, "deleted": deleted})
    else:
        click.echo(f"altered {kind} {name}")


def _resource(kind: str) -> Resource:
    from mockbroker.client import Resource

    return Resource[kind.upper()]


def _name(kind: str, name: str) -> str:
    """The name in a request."""
    from mockbroker.client import CLUSTER_WIDE

    if kind != "broker":
        return name
    if name == ALL_BROKERS:
        return CLUSTER_WIDE
    if not name.isdecimal():
        raise click.BadParameter(f"{name!r} is neither a broker's id nor {ALL_BROKERS}")
    return name


def _json(kind: str, name: str, config: Config) -> dict[str, object]:
    return {
        "kind": kind,
        "name": name,
        "config": config.name,
        "value": config.value,
        "source": config.source,
    }
