"""Random arguments of an action, drawn by its schema.

An argument is drawn by the name of its field (a node, a topic, a group) and by its type. A new
action is therefore simulated without a change here.
"""

from __future__ import annotations

import random
import types
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from mockbroker.core.actions import ACTIONS
from mockbroker.core.validation import Duration, Range, to_data

OPTIONAL_SHARE = 0.4
DURATIONS_MS = (0, 50, 200, 1_000, 3_000, 10_000, 35_000)
OFFSET_MAX = 40
TRIES = 20


class Names(NamedTuple):
    """The names that arguments may have."""

    nodes: tuple[int, ...]
    topics: tuple[str, ...]
    partitions_max: int
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    instance_ids: tuple[str, ...]
    client_ids: tuple[str, ...]


def draw_action(name: str, names: Names, rng: random.Random) -> dict[str, Any] | None:
    """Arguments of an action as plain data; None if there are none, such as without a group."""
    type_ = ACTIONS[name].arguments
    for _ in range(TRIES):
        try:
            data = to_data(draw_struct(type_, names, rng))
        except (ValueError, IndexError):  # refused by the struct, or no name to choose
            continue
        assert isinstance(data, dict)
        return data
    return None


def draw_struct(type_: type[msgspec.Struct], names: Names, rng: random.Random) -> msgspec.Struct:
    """A struct with drawn fields. Raises ValueError if the struct refuses them."""
    given: dict[str, Any] = {}
    for field in _fields(type_):
        if field.required or rng.random() < OPTIONAL_SHARE:
            given[field.name] = _draw(field.name, field.type, names, rng, given)
    return type_(**given)


_fields = cache(msgspec.structs.fields)


def _draw(name: str, type_: Any, names: Names, rng: random.Random, given: dict[str, Any]) -> Any:
    match name:
        case "node":
            return rng.choice(names.nodes)
        case "nodes" | "to":
            count = rng.randint(1, max(1, len(names.nodes) // 2))
            taken = given.get("nodes", [])
            taken = [taken] if isinstance(taken, int) else taken
            left = [node_id for node_id in names.nodes if node_id not in taken]
            return sorted(rng.sample(left, min(count, len(left))))
        case "topic":
            return rng.choice(names.topics)
        case "partition":
            return rng.randrange(names.partitions_max)
        case "group":
            return rng.choice(names.groups)
        case "transactional_id":
            return rng.choice(names.transactional_ids)
        case "instance_id":
            return rng.choice(names.instance_ids)
        case "client_id" | "member":
            return rng.choice(("*", *names.client_ids))
        case "key" if given.get("kind") == "transaction" or (
            "kind" not in given and not names.groups
        ):
            return rng.choice(names.transactional_ids)
        case "key":
            return rng.choice((*names.groups, *names.transactional_ids))
        case "offset" | "before_offset":
            return rng.randint(0, OFFSET_MAX)
        case "producer_id":
            return rng.randrange(3) * 1_000 + rng.randrange(3)
        case "assignments" | "tasks":
            return _draw_assignment(name, names, rng)
        case "advance":
            return rng.choice((10, 500, 5_000, 20_000))
        case _:
            return _draw_type(type_, names, rng)


def _draw_assignment(name: str, names: Names, rng: random.Random) -> dict[str, Any]:
    """One partition, or one task of the first subtopology, for every member."""
    share = [rng.randrange(names.partitions_max)]
    if name == "assignments":
        return {"*": {rng.choice(names.topics): share}}
    return {"*": {rng.choice(("active", "standby", "warmup")): {"0": share}}}


def _draw_type(type_: Any, names: Names, rng: random.Random) -> Any:
    origin, args = get_origin(type_), get_args(type_)
    if origin is Annotated:
        return _draw_annotated(args, names, rng)
    if origin is Literal:
        return rng.choice(args)
    if origin in (Union, types.UnionType):
        some = [each for each in args if each is not type(None)]
        return _draw_type(rng.choice(some), names, rng)
    if origin is list:
        return [_draw_type(args[0], names, rng)]
    if origin is dict:
        return {}
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return draw_struct(type_, names, rng)
    if type_ is bool:
        return rng.random() < 0.5
    if type_ is int:
        return rng.randrange(10)
    if type_ is float:
        return rng.choice((0.5, 1.0, 2.0))
    if type_ is str:
        return rng.choice(
            (*names.topics, *names.groups, *names.transactional_ids, *names.client_ids, "x")
        )
    raise ValueError(f"cannot draw a value of {type_!r}")


def _draw_annotated(args: tuple[Any, ...], names: Names, rng: random.Random) -> Any:
    for mark in args[1:]:
        if isinstance(mark, Duration):
            return rng.choice(DURATIONS_MS)
        if isinstance(mark, Range):
            low, high = int(mark.low), int(min(mark.high, mark.low + 10))
            return rng.randint(low, high)
    return _draw_type(args[0], names, rng)
