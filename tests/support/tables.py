"""The tables of a cluster with their numbers of entries: what do clients leave behind?"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

# Rings of a fixed length.
RINGS = frozenset({"StateChangeLog.history"})


def tables(root: object) -> Counter[str]:
    """The entries of all containers that `root` leads to, by class and attribute.

    The containers within a container count under its name. Only objects of this project are
    followed, and no closures.
    """
    found: Counter[str] = Counter()
    seen = {id(root)}
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            found[name] += len(value)
            inner = [(name, each) for pair in value.items() for each in pair]
        elif isinstance(value, list | tuple | set | frozenset | deque):
            found[name] += len(value)
            inner = [(name, each) for each in value]
        elif type(value).__module__.startswith("mockbroker."):
            inner = list(_attributes(value))
        else:
            continue
        for each in inner:
            if id(each[1]) not in seen:
                seen.add(id(each[1]))
                waiting.append(each)
    return found


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    names = {name for each in kind.__mro__ for name in _slots(each)} | set(
        getattr(value, "__dict__", ())
    )
    for name in sorted(names):
        label = f"{kind.__name__}.{name}"
        if label not in RINGS and hasattr(value, name):
            yield label, getattr(value, name)


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
