"""The admin API for commands: its address, its answers, and the errors that end a command."""

from __future__ import annotations

import functools
import http.client
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import click

from mockbroker.api.http import TIMEOUT_S, HttpClient, RefusedError, UnreachableError
from mockbroker.cli import environment
from mockbroker.cli.text_files import why_unread

P = ParamSpec("P")

DEFAULT_ADMIN = "http://127.0.0.1:9191"


class AdminClient:
    """A client of one admin API. A problem ends the command with one line and exit code 1."""

    def __init__(self, url: str, token: str | None = None) -> None:
        try:
            self._http = HttpClient(url, token)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--admin") from None
        self.url = url

    def get(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        return self._json("GET", path, query=query)

    def post(self, path: str, body: object, *, wait_s: float = 0.0) -> Any:
        """`wait_s` is the time for which the server itself may wait."""
        return self._json("POST", path, body, timeout_s=TIMEOUT_S + wait_s)

    def delete(self, path: str) -> None:
        self._json("DELETE", path)

    def _json(self, method: str, path: str, body: object = None, **options: Any) -> Any:
        with self._response(method, path, body, **options) as response:
            text = response.read()
        return json.loads(text) if text else None

    def read(self, path: str) -> bytes:
        """An answer other than JSON."""
        with self._response("GET", path) as response:
            return response.read()

    def lines(self, path: str, query: Mapping[str, object]) -> Iterator[str]:
        """The lines of an answer that lasts until the server ends."""
        with self._response("GET", path, query=query, timeout_s=None) as response:
            for line in response:
                yield line.decode().rstrip("\n")

    @contextmanager
    def _response(
        self, method: str, path: str, body: object = None, **options: Any
    ) -> Iterator[http.client.HTTPResponse]:
        try:
            with self._http.response(method, path, body, **options) as response:
                yield response
        except UnreachableError as error:
            hint = "; `mockbroker serve` starts one" if error.is_absent else ""
            raise click.ClickException(f"{error}{hint}") from None
        except RefusedError as error:
            raise click.ClickException(str(error)) from None


def admin_command(function: Callable[Concatenate[AdminClient, P], None]) -> Callable[..., None]:
    """Give a command the options that find the admin API, and a client as its first argument."""

    @click.option(
        "--admin",
        metavar="URL",
        envvar=environment.ADMIN,
        default=DEFAULT_ADMIN,
        show_default=True,
        show_envvar=True,
        help="URL of the cluster's admin API.",
    )
    @click.option(
        "--admin-token-file",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        envvar=environment.ADMIN_TOKEN_FILE,
        show_envvar=True,
        help=f"File with the admin API's token.  [default: the token in {environment.ADMIN_TOKEN}]",
    )
    @functools.wraps(function)
    def command(
        admin: str, admin_token_file: Path | None, *args: P.args, **kwargs: P.kwargs
    ) -> None:
        token = os.environ.get(environment.ADMIN_TOKEN) or None
        if admin_token_file is not None:
            try:
                token = admin_token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise click.BadParameter(f"{admin_token_file}: {why_unread(error)}") from None
        function(AdminClient(admin, token), *args, **kwargs)

    return command


def read_data(text: str) -> dict[str, Any]:
    """YAML or JSON: a file's name, `-` for standard input, or the data itself in braces."""
    found = read_documents(text)
    if len(found) != 1:
        raise click.BadParameter(f"expected one document, got {len(found)}")
    return found[0]


def read_documents(text: str) -> list[dict[str, Any]]:
    """The same for any number of documents."""
    from mockbroker.core.yaml_documents import YamlError, read_yaml

    if text.lstrip().startswith("{"):
        name = "the argument"
    else:
        name = "standard input" if text == "-" else text
        try:
            raw = sys.stdin.buffer.read() if text == "-" else Path(text).read_bytes()
            text = raw.decode()
        except (OSError, UnicodeDecodeError) as error:
            is_data = isinstance(error, OSError) and ": " in text
            hint = "; YAML on the command line needs braces around it" if is_data else ""
            raise click.BadParameter(f"{name}: {why_unread(error)}{hint}") from None
    try:
        found = read_yaml(text)
    except YamlError as error:
        raise click.BadParameter(f"{name}: {error}") from None
    for data in found:
        if not isinstance(data, dict):
            raise click.BadParameter(f"{name} holds {type(data).__name__}, not a mapping")
    return found


def named_values(texts: tuple[str, ...]) -> dict[str, Any]:
    """`name=value` arguments; values are read as YAML, so `3` is a number and `[1, 2]` a list."""
    from mockbroker.core.yaml_documents import YamlError, read_yaml

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        try:
            documents = read_yaml(value)
        except YamlError as error:
            raise click.BadParameter(f"{text!r}: {error}") from None
        if len(documents) > 1:
            raise click.BadParameter(f"{text!r} has {len(documents)} values")
        found[name] = documents[0] if documents else None
    return found


def milliseconds(text: str) -> int:
    """`250` (ms), `250ms`, `45s`, `5m`, `2h`."""
    from mockbroker.core.validation import DURATION_MS_MAX, ValidationError, duration_ms
    from mockbroker_protocol.types import parse_integer

    try:
        number = parse_integer(text, 0, DURATION_MS_MAX)
        return duration_ms(text if number is None else number, "")
    except ValidationError as error:
        raise click.BadParameter(error.reason) from None
