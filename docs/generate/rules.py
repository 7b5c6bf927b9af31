"""Every word of a rule, drawn from the structs that read it."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import errors
import msgspec
from markdown import page as join
from markdown import part, table

from mockbroker.core.actions import ACTIONS
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.rules import Match, When
from mockbroker.core.validation import struct_fields

INTRO = """
# Rules and errors

Drawn from the structs of rules. [Inject faults](../howto/faults.md) shows their use. A time is a
number of milliseconds or text such as `250ms`, `5s`, `2m`. An effect with one main field may be
written with its value alone, as `delay: 5s`. A field with `?` is optional. A rule may answer with
any of the [error codes](#error-codes).
"""


def page() -> str:
    return join(
        INTRO,
        "## match",
        told(Match),
        fields(Match),
        "## when",
        told(When),
        fields(When),
        "## do, on requests and answers",
        table(("effect", "fields", "what happens"), (row(*each) for each in EFFECTS.items())),
        "## do, on the cluster",
        "Also in timelines, by `mockbroker action`, by `POST /v1/actions`, and as methods.",
        table(
            ("action", "fields", "its arguments"),
            (row(name, action.arguments) for name, action in sorted(ACTIONS.items())),
        ),
        part(errors.page()),
    )


def row(name: str, kind: type[msgspec.Struct]) -> tuple[str, str, str]:
    return f"`{name}`", ", ".join(shown(kind)), told(kind)


def fields(kind: type[msgspec.Struct]) -> str:
    return table(
        ("field", "takes"),
        ((f"`{name}`", takes(type_)) for name, (_, type_, _) in struct_fields(kind).items()),
    )


def shown(kind: type[msgspec.Struct]) -> Iterator[str]:
    for name, (_, type_, required) in struct_fields(kind).items():
        yield f"`{name}`: {takes(type_)}" + ("" if required else "?")


def told(kind: type) -> str:
    """The docstring, on one line."""
    text = inspect.getdoc(kind) or ""
    return " ".join(text.split()) if kind.__doc__ else ""


def braced(kind: type[msgspec.Struct]) -> str:
    """The names in a struct; what those hold that are structs themselves."""
    words = []
    for name, (_, type_, _) in struct_fields(kind).items():
        inner = takes(type_)
        words.append(f"{name}: {inner}" if inner.startswith("{") else name)
    return "{" + ", ".join(words) + "}"


def takes(type_: Any) -> str:
    """A type in words."""
    origin, args = get_origin(type_), get_args(type_)
    if origin is Annotated:
        return "time" if "Duration" in repr(args[1]) else takes(args[0])
    if origin in (Union, types.UnionType):
        words = [takes(each) for each in args if each is not type(None)]
        return " or ".join(dict.fromkeys(words))
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in args)
    if origin is list:
        return f"list of {takes(args[0])}"
    if origin is dict:
        return "mapping"
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return braced(type_)
    return {str: "text", int: "number", float: "number", bool: "true or false"}.get(type_, "any")
