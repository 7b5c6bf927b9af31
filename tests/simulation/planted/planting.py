"""Planting: the registry of bugs, and the ways to put one into code that is loaded.

A function is planted by giving it other code: its own source with one fragment exchanged. Whoever
has imported the function, or holds it in a table, meets the bug as well. A fragment that is not
there exactly once is an error, so that a bug cannot silently cease to be one.
"""

from __future__ import annotations
import __future__

import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeAlias

Planting: TypeAlias = AbstractContextManager[None]


class PlantingError(Exception):
    """What a bug is to be planted into is not there any more, or is not what it was."""


class Planted(NamedTuple):
    """One bug: `plant` makes the context manager within which it is there.

    One that is `audited` breaks no law, but what the cluster tells of itself.
    """

    name: str
    area: str
    wrong: str  # what is wrong, in a sentence
    plant: Callable[[], Planting]
    audited: bool = False


PLANTED: dict[str, Planted] = {}
_rewritten: dict[FunctionType, str] = {}  # what functions say now that have been rewritten


def planted(
    wrong: str, *, audited: bool = False
) -> Callable[[Callable[[], Planting]], Callable[[], Planting]]:
    """Register a bug: its name is the function's, its area the module's."""

    def register(plant: Callable[[], Planting]) -> Callable[[], Planting]:
        name = plant.__name__.replace("_", "-")
        if name in PLANTED:
            raise PlantingError(f"there are two bugs named {name!r}")
        area = plant.__module__.rpartition(".")[2].replace("_", " ")
        PLANTED[name] = Planted(name, area, wrong, plant, audited)
        return plant

    return register


@cache
def load_all() -> dict[str, Planted]:
    """Every bug there is, by name, in the order of areas."""
    package = import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("__"):
            import_module(f"{__package__}.{module.name}")
    return PLANTED


@contextmanager
def rewritten(function: Any, right: str, wrong: str) -> Iterator[None]:
    """Let a function, method or property say `wrong` where it says `right`.

    A function may be rewritten in several places. Raises PlantingError unless `right` is there
    exactly once.
    """
    plain = _plain(function)
    source = _rewritten.get(plain) or textwrap.dedent(inspect.getsource(plain))
    if source.count(right) != 1:
        raise PlantingError(f"{plain.__qualname__} has {source.count(right)} times {right!r}")
    former, former_source = plain.__code__, _rewritten.get(plain)
    planted_source = source.replace(right, wrong)
    plain.__code__ = _compiled(plain, planted_source)
    _rewritten[plain] = planted_source
    try:
        yield
    finally:
        plain.__code__ = former
        if former_source is None:
            del _rewritten[plain]
        else:
            _rewritten[plain] = former_source


def _plain(function: Any) -> FunctionType:
    if isinstance(function, property):
        function = function.fget
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        raise PlantingError(f"{function!r} is no function")
    return function


def _compiled(function: FunctionType, source: str) -> CodeType:
    """The code of a function whose source is another one; what it closes over stays."""
    free = function.__code__.co_freevars
    lines = [f"    {line}" for line in source.splitlines()]
    lines = ["def around():", *(f"    {name} = None" for name in free), *lines]
    code = compile(
        "\n".join(lines),
        f"<planted into {function.__module__}>",
        "exec",
        flags=__future__.annotations.compiler_flag,
        dont_inherit=True,
    )
    around = next(each for each in code.co_consts if isinstance(each, CodeType))
    for each in around.co_consts:
        if isinstance(each, CodeType) and each.co_name == function.__name__:
            return each.replace(co_qualname=function.__qualname__)
    raise PlantingError(f"{function.__qualname__} is not a function of that name in its source")


@contextmanager
def replaced(place: Any, name: str, value: object) -> Iterator[None]:
    """Let an attribute of a module or class have another value."""
    if name not in vars(place):
        raise PlantingError(f"{place!r} has no {name!r} of its own")
    former = vars(place)[name]
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, former)


@contextmanager
def put(table: MutableMapping[Any, Any], key: object, value: object) -> Iterator[None]:
    """Let a table say something else of a key that it has."""
    if key not in table:
        raise PlantingError(f"the table has no {key!r}")
    former = table[key]
    table[key] = value
    try:
        yield
    finally:
        table[key] = former
