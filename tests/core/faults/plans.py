"""Random plans: data that `parse_plan` accepts, made from its types."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from mockbroker.core import validation as cv
from mockbroker.core.actions import ACTIONS
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.rules import Match, When, parse_plan
from mockbroker.core.validation import ValidationError

Strategy = st.SearchStrategy[Any]

_TEXTS = st.sampled_from(
    ["orders", "a-*", "/^x[0-9]+$/", "", "é", "it's", '"', "on", "3", "a: b\n"]
)
_SCALARS: Mapping[object, Strategy] = {
    int: st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5),
    float: st.floats(allow_nan=False, allow_infinity=False) | st.floats(0, 1),
    str: _TEXTS,
    bool: st.booleans(),
    object: st.none() | st.integers(0, 9) | _TEXTS,
}


def data_for(type_: Any) -> Strategy:
    """Data of the shape that `convert` wants for a type."""
    origin, args = get_origin(type_), get_args(type_)
    if origin is Annotated:
        if any(isinstance(mark, cv.Duration) for mark in args[1:]):
            return st.integers(0, 10**9) | st.sampled_from(["5s", "1.5h", "250ms"])
        if any(isinstance(mark, cv.Length) for mark in args[1:]):
            return data_for(args[0])
        ranges = [mark for mark in args[1:] if isinstance(mark, cv.Range)]
        if ranges and args[0] is int:
            return st.integers(int(ranges[0].low), int(ranges[0].high)) | st.integers(1, 3)
        return st.floats(ranges[0].low, ranges[0].high)
    if origin in (Union, types.UnionType):
        return st.one_of([data_for(each) for each in args])
    if type_ is types.NoneType:
        return st.none()
    if origin is Literal:
        return st.sampled_from(args)
    if origin is list:
        return st.lists(data_for(args[0]), min_size=1, max_size=3)
    if origin is dict:
        return st.dictionaries(_TEXTS, data_for(args[1]), max_size=2)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return struct_data(type_)
    return _SCALARS[type_]


def struct_data(type_: type[msgspec.Struct], leave_out: frozenset[str] = frozenset()) -> Strategy:
    """A struct's fields, those that are needed and some of the others."""
    needed, optional = {}, {}
    for name, (_, field_type, required) in cv.struct_fields(type_).items():
        if name not in leave_out:
            (needed if required else optional)[name] = data_for(field_type)
    return st.fixed_dictionaries(needed, optional=optional)


def taken(data: object) -> bool:
    try:
        parse_plan(data, "some")
    except ValidationError:
        return False
    return True


# Fields whose values have to fit the API are given as such.
_APIS = st.sampled_from(["Produce", "Fetch", ["Produce", "Fetch"], 3])
_MATCHES = struct_data(Match, frozenset(("api", "where", "topic_id", "api_version", "source")))
_DO = {name: struct_data(kind) for name, kind in EFFECTS.items()}
_ACT = {name: struct_data(action.arguments) for name, action in ACTIONS.items()}


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    match = {"api": draw(_APIS), **draw(_MATCHES)}
    name = draw(st.sampled_from([*_DO, *_ACT]))
    rule: dict[str, Any] = {"do": {name: draw((_DO | _ACT)[name])}}
    when = draw(struct_data(When))
    rule |= draw(
        st.fixed_dictionaries(
            {}, optional={"priority": st.integers(-5, 5), "tags": st.lists(_TEXTS, max_size=2)}
        )
    )
    # What does not go together is left out.
    for more in ({"match": match, "when": when}, {"match": match}, {"when": when}):
        if taken(rule | more):
            return rule | more
    return rule


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """One set, without a name."""
    made: dict[str, Any] = {
        "seed": draw(st.integers(0, 2**40)),
        "rules": draw(st.lists(rules().filter(taken), max_size=4)),
    }
    timeline = draw(st.lists(_entries(), max_size=2))
    made["timeline"] = [entry for entry in timeline if taken({"timeline": [entry]})]
    return made


@st.composite
def _entries(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from([*_ACT]))
    return {"at": draw(st.integers(0, 10**6)), "do": {name: draw(_ACT[name])}}
