"""Plain data of JSON or YAML: it fits a struct more or less, or is changed from data that fits."""

from __future__ import annotations

import random
import types
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

NUMBERS = (0, 1, 2, 3, 10, 1000, -1, -2, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30)
FLOATS = (0.0, 0.5, 1.0, -0.5, 1e300, 1e-300)
TEXTS = (
    *("", "a", "orders", "orders-*", "/o.*/", "/(/", "/((((a+)+)+)+)b/", "Produce", "Fetch", "*"),
    *("5s", "-1ms", "1e400h", "9" * 5_000, "١", "²", "\0", "ü" * 300, "x" * 70_000, "..", "a/b"),
    *("NOT_LEADER_OR_FOLLOWER", "running", "exactly", "null", "true", "${x}", "\ud800", "-1"),
)
DEPTH_MAX = 5


def drawn(rng: random.Random, type_: Any, depth: int = 0) -> Any:
    """A value for a type; one in ten is of another type."""
    if depth > DEPTH_MAX or rng.random() < 0.1:
        return anything(rng, depth)
    origin = get_origin(type_)
    if origin is Annotated:
        return drawn(rng, get_args(type_)[0], depth)
    if origin in (Union, types.UnionType):
        return drawn(rng, rng.choice(get_args(type_)), depth)
    if origin is Literal:
        return rng.choice(get_args(type_))
    if origin in (list, tuple) or type_ is list:
        inner = (get_args(type_) or (Any,))[0]
        return [drawn(rng, inner, depth + 1) for _ in range(rng.choice((0, 1, 1, 2)))]
    if origin is dict:
        key, value = get_args(type_)
        return {str(drawn(rng, key, depth)): drawn(rng, value, depth + 1) for _ in range(2)}
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return _struct(rng, type_, depth)
    simple = {
        int: NUMBERS,
        float: FLOATS,
        str: TEXTS,
        bool: (True, False),
        type(None): (None,),
    }
    return rng.choice(simple[type_]) if type_ in simple else anything(rng, depth)


_fields = cache(msgspec.structs.fields)


def _struct(rng: random.Random, type_: type[msgspec.Struct], depth: int) -> dict[str, Any]:
    out = {}
    for field in _fields(type_):
        if field.required or rng.random() < 0.4:
            out[field.encode_name] = drawn(rng, field.type, depth + 1)
    if rng.random() < 0.05:
        out[rng.choice(TEXTS)] = anything(rng, depth)
    return out


def anything(rng: random.Random, depth: int = 0) -> Any:
    """Any value of JSON."""
    drawn_share = rng.random()
    if depth < DEPTH_MAX and drawn_share < 0.15:
        return [anything(rng, depth + 1) for _ in range(rng.randrange(3))]
    if depth < DEPTH_MAX and drawn_share < 0.3:
        return {rng.choice(TEXTS): anything(rng, depth + 1) for _ in range(rng.randrange(3))}
    return rng.choice((*NUMBERS, *FLOATS, *TEXTS, None, True, False))


def changed(rng: random.Random, data: Any) -> Any:
    """The data with one value in it replaced, removed, doubled or wrapped."""
    if isinstance(data, dict) and data and rng.random() < 0.9:
        key = rng.choice(list(data))
        out = dict(data)
        if rng.random() < 0.1:
            del out[key]
        elif rng.random() < 0.05:
            out[rng.choice(TEXTS)] = out.pop(key)
        else:
            out[key] = changed(rng, data[key])
        return out
    if isinstance(data, list) and data and rng.random() < 0.9:
        at = rng.randrange(len(data))
        if rng.random() < 0.1:
            return data[:at] + data[at:] + data[at:]
        return [*data[:at], changed(rng, data[at]), *data[at + 1 :]]
    return rng.choice((anything(rng), anything(rng), [data], {"a": data}))
