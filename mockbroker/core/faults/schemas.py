"""JSON Schema of the data that `convert` accepts, for OpenAPI and for editors of rules.

It mirrors `convert` branch by branch. Data that fits the schema is refused only for its size, or
for contradictions between fields or with the cluster.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from mockbroker.core import validation as cv
from mockbroker.core.actions import ACTIONS
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.rules import PlanData, RuleData
from mockbroker.core.timing.durations import PATTERN

Schema = dict[str, Any]


class InputSchemas:
    """Schemas of input data; those of structs are in `components`, by name.

    `refs` is the form of a reference, with `{name}` in it.
    """

    def __init__(self, refs: str) -> None:
        self.components: dict[str, Schema] = {}
        self._types: dict[str, object] = {}
        self._refs = refs

    def struct(self, type_: type[msgspec.Struct]) -> Schema:
        """A struct as an object with all its fields."""
        fields = cv.struct_fields(type_)

        def make() -> Schema:
            return _object(
                {key: self.of(field) for key, (_, field, _) in fields.items()},
                required=[key for key, (_, _, required) in fields.items() if required],
                description=inspect.getdoc(type_) if type_.__doc__ else None,
            )

        return self._component(type_.__name__, type_, make)

    def plan(self) -> Schema:
        """The input of `parse_plan`: a plan or a single rule."""
        return {"anyOf": [self.struct(RuleData), self.struct(PlanData)]}

    def action(self) -> Schema:
        """One action by its name."""
        return {**self._done(effects=False), "maxProperties": 1}

    def of(self, type_: Any) -> Schema:
        """The schema of a type."""
        origin, args = get_origin(type_), get_args(type_)
        if origin is Annotated:
            return self._annotated(*args)
        if origin in (Union, types.UnionType):
            return self._union(args)
        if origin is Literal:
            return {"enum": list(args)}
        if origin is list:
            return {"type": "array", "items": self.of(args[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(args[1])}
        if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
            return self._struct_or_short(type_)
        return dict(_SCALARS[type_])

    def _annotated(self, type_: Any, *marks: object) -> Schema:
        for mark in marks:
            if isinstance(mark, cv.Later):
                return self._later(mark)
            if isinstance(mark, cv.Duration):
                return {
                    "anyOf": [
                        {"type": "integer", "minimum": 0, "maximum": cv.DURATION_MS_MAX},
                        {"type": "string", "pattern": f"^{PATTERN}$"},
                    ]
                }
            if isinstance(mark, cv.Range):
                return {**self.of(type_), "minimum": mark.low, "maximum": mark.high}
            if isinstance(mark, cv.Length):
                low, high = _LENGTHS[get_origin(type_) or type_]
                return {**self.of(type_), low: mark.low, high: mark.high}
        return self.of(type_)

    def _later(self, mark: cv.Later) -> Schema:
        if mark.what == "rule":
            return self.struct(RuleData)
        name = mark.what.capitalize()
        effects = mark.what == "effects"
        return self._component(name, name, lambda: self._done(effects=effects))

    def _union(self, choices: tuple[Any, ...]) -> Schema:
        wanted = [choice for choice in choices if choice is not types.NoneType]
        # Among several choices a struct is accepted in its full form only.
        alone = len(wanted) == 1
        options = [self.of(c) if alone or not _is_struct(c) else self.struct(c) for c in wanted]
        if types.NoneType in choices:
            options.append({"type": "null"})
        return {"anyOf": options}

    def _struct_or_short(self, type_: type[msgspec.Struct]) -> Schema:
        """A struct; the value of its main field; or, if no field is required, true or null."""
        options = [self.struct(type_)]
        fields = cv.struct_fields(type_)
        short: str | None = getattr(type_, "SHORT", None)
        if short is not None:
            options.append(self.of(fields[short][1]))
        if not any(required for _, _, required in fields.values()):
            options.append({"enum": [None] if short is not None else [None, True]})
        return options[0] if len(options) == 1 else {"anyOf": options}

    def _done(self, *, effects: bool) -> Schema:
        """Actions and perhaps effects by name; at least one."""
        known: dict[str, type[msgspec.Struct]] = {n: a.arguments for n, a in ACTIONS.items()}
        if effects:
            known.update(EFFECTS)
        return {
            **_object({name: self.of(each) for name, each in known.items()}),
            "minProperties": 1,
        }

    def _component(self, name: str, of: object, make: Callable[[], Schema]) -> Schema:
        if name not in self.components:
            self._types[name] = of
            self.components[name] = {}  # before `make`: a schema may refer to itself
            self.components[name] = make()
        elif self._types[name] is not of:
            raise ValueError(f"there are two kinds of {name}")
        return {"$ref": self._refs.format(name=name)}


def _is_struct(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, msgspec.Struct)


def _object(
    properties: Mapping[str, Schema],
    required: list[str] | None = None,
    description: str | None = None,
) -> Schema:
    made: Schema = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }
    if required:
        made["required"] = required
    if description:
        made["description"] = " ".join(description.split())
    return made


_SCALARS: Mapping[object, Schema] = {
    object: {"description": "any value"},
    int: {"type": "integer", "minimum": cv.INT_MIN, "maximum": cv.INT_MAX},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
}
# The keywords of a length.
_LENGTHS: Mapping[object, tuple[str, str]] = {
    str: ("minLength", "maxLength"),
    list: ("minItems", "maxItems"),
}
