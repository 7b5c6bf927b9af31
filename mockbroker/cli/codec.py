"""`mockbroker codec`: the messages of the protocol, and the code that reads and writes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from mockbroker.cli.common import json_option
from mockbroker.cli.output import print_json, print_table

if TYPE_CHECKING:
    from mockbroker_protocol import ApiKey

P = ParamSpec("P")


def _unknown_names_are_bad_usage(function: Callable[P, None]) -> Callable[P, None]:
    @wraps(function)
    def command(*args: P.args, **kwargs: P.kwargs) -> None:
        from mockbroker_protocol.exceptions import UnknownVersionError

        try:
            function(*args, **kwargs)
        except UnknownVersionError as error:
            raise click.UsageError(str(error)) from None

    return command


@click.group()
def codec() -> None:
    """Show the wire format of messages."""


@codec.command("list")
@json_option
def list_apis(as_json: bool) -> None:
    """List all APIs with their keys and versions."""
    from mockbroker_protocol.declarations import declared_keys

    rows = [(int(key), key.name, *_versions(key)) for key in declared_keys()]
    columns = ("key", "name", "from", "to", "flexible_from")
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        heads = [column.upper().replace("_", " ") for column in columns]
        print_table(heads, rows)


@codec.command("show")
@click.argument("api")
@click.argument("version", type=click.IntRange(0, 32767), required=False)
@click.option("--request", "direction", flag_value="request", help="Print only the request.")
@click.option("--response", "direction", flag_value="response", help="Print only the response.")
@json_option
@_unknown_names_are_bad_usage
def show_codec(api: str, version: int | None, direction: str | None, as_json: bool) -> None:
    """Print the fields of API (Fetch, list_offsets, 2) in VERSION, and the emitted code.

    Without a version, the newest one.
    """
    from mockbroker_protocol.show import DIRECTIONS, find_api, show

    key = find_api(api)
    number = _versions(key)[1] if version is None else version
    directions = [direction] if direction else list(DIRECTIONS)
    if as_json:
        print_json([_description(key, number, each) for each in directions])
        return
    for index, each in enumerate(directions):
        if index:
            click.echo()
        _print_shown(show(key, number, each))


def _versions(key: ApiKey) -> tuple[int, int, int | None]:
    """The lowest, the highest and the first flexible version of an API's requests."""
    from mockbroker_protocol.declarations import schema_module

    request = schema_module(key.name.lower()).REQUEST
    low, high = request.versions.low, request.versions.high
    flexible = next((v for v in range(low, high + 1) if v in request.flexible), None)
    return low, high, flexible


def _description(key: ApiKey, version: int, direction: str) -> dict[str, Any]:
    from mockbroker_protocol.emit import decode_source, encode_source
    from mockbroker_protocol.show import codec_of
    from mockbroker_protocol.tables import rows

    found = codec_of(key, version, direction)
    return {
        "message": found.message.name,
        "api_key": int(key),
        "version": version,
        "flexible": found.flexible,
        "fields": [row._asdict() for row in rows(found.message, version)],
        "decode": decode_source(found.tree)[0],
        "encode": encode_source(found.tree)[0],
    }


def _print_shown(text: str) -> None:
    """The schema, then the code, which a terminal gets in colours."""
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console
    from rich.syntax import Syntax

    table, separator, code = text.partition("\ndef ")
    click.echo(table)
    Console().print(Syntax(separator.strip() + " " + code, "python", background_color="default"))
