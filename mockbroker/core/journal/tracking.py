"""The identity of the records of a topic, for the audit.

The wire shows batches and values, but not which records an application regards as equal. An
application declares it by the header `mb-id`; a test declares it for a topic, by a `Tracking`.
"""

from __future__ import annotations

import re

import msgspec

# A member by name, an item by number: `.id`, `['order id']`, `[0]`.
_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']+)'\]|\[(\d{1,9})\]")

Path = tuple[str | int, ...]


class _OfTopic(msgspec.Struct, frozen=True):
    topic: str


class Tracking(_OfTopic, frozen=True, kw_only=True, omit_defaults=True):
    """The identity of a record of `topic`; one of three.

    `key` is a JSONPath into its value, of members and items only (`$.id`, `$.items[0].sku`);
    `header` is the name of one of its headers; with `unique_values` each record has a unique key
    and value. Raises ValueError for none, several, or another path.
    """

    key: str | None = None
    header: str | None = None
    unique_values: bool = False

    def __post_init__(self) -> None:
        if [self.key is not None, self.header is not None, self.unique_values].count(True) != 1:
            raise ValueError("give one of key (a JSONPath), header, unique_values")
        if self.key is not None:
            parse_path(self.key)


def parse_path(text: str) -> Path:
    """The steps of a JSONPath of members and items. Raises ValueError for another."""
    steps: list[str | int] = []
    position = 1
    while text[:1] == "$" and position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            break
        name, quoted, number = found.groups()
        steps.append(int(number) if number else name or quoted)
        position = found.end()
    if position < len(text) or not steps:
        raise ValueError(f"{text!r} is no JSONPath to one value, such as $.id or $.items[0].sku")
    return tuple(steps)


def value_at(path: Path, value: object) -> object:
    """The value at a path of decoded JSON; None without one."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value
