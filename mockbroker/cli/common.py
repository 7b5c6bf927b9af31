"""Options, client and errors of the commands that use the Kafka protocol."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import click

from mockbroker.cli import environment
from mockbroker.cli.lazy import CLIENT_OPTIONS

if TYPE_CHECKING:
    from mockbroker.client import Client

P = ParamSpec("P")

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
CLIENT_ID = "mockbroker-cli"
DEFAULT_REQUEST_TIMEOUT_S = 30.0


def _checked_bootstrap(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
    from mockbroker.client.router import parse_bootstrap

    try:
        parse_bootstrap(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--bootstrap-server") from None
    return value


def name_value_pairs(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> list[tuple[str, str]]:
    """Callback of an option that may be repeated: NAME=VALUE, each a pair; a name may repeat."""
    pairs = []
    for text in values:
        name, equals, value = text.partition("=")
        if not name.strip() or not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        pairs.append((name.strip(), value))
    return pairs


def name_values(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """The same, for names that have one value: the last one counts, as in Kafka's tools."""
    return dict(name_value_pairs(ctx, param, values))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


def client_command(
    function: Callable[Concatenate[Client, P], None],
) -> Callable[..., None]:
    """Give a command its options for the cluster, and a client as its first argument.

    An error of the client ends the command with one line and exit code 1.
    """

    @click.option(
        *CLIENT_OPTIONS,
        "bootstrap",
        metavar="HOST:PORT,…",
        callback=_checked_bootstrap,
        envvar=environment.BOOTSTRAP,
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        show_envvar=True,
        help="Bootstrap servers.",
    )
    @click.option(
        "--request-timeout",
        "request_timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=DEFAULT_REQUEST_TIMEOUT_S,
        show_default=True,
        metavar="SECONDS",
        help="Timeout of a request.",
    )
    @functools.wraps(function)
    def command(
        bootstrap: str, request_timeout_s: float, *args: P.args, **kwargs: P.kwargs
    ) -> None:
        from mockbroker.client import Client, ClientError
        from mockbroker_protocol.exceptions import ProtocolError
        from mockbroker_protocol.records import RecordsError

        try:
            with Client(bootstrap, CLIENT_ID, timeout_s=request_timeout_s) as client:
                function(client, *args, **kwargs)
        except (ClientError, ProtocolError, RecordsError) as error:
            raise click.ClickException(str(error)) from None

    return command
