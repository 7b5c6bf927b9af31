"""The journal's events, drawn from the structs that a reader gets and that the cluster reports."""

from __future__ import annotations

import inspect
from collections import defaultdict

from markdown import page as join
from markdown import table

from mockbroker.core.events import Event
from mockbroker.core.journal.events import KINDS, field_meanings
from mockbroker.core.journal.filters import Filter

INTRO = """
# Journal events

Drawn from the structs of `mockbroker/core/journal` and `mockbroker/core/events.py`.
[Check what happened](../howto/journal.md) shows how to query them.
"""

CONDITIONS = """
A condition names a field of the event. Text may be a glob (`"loader-*"`) or an RE2 expression
between slashes (`"/-[0-9]+$/"`). A list matches any of its items. A request may name several
groups, members, transactional ids or producers; the event then has a list, and a condition matches
any of them. `error` is the name of an error
code, `any` or `none`. `where={"topics[].partitions[].partition_index": 3}` matches a field of the
decoded message. An unknown condition is refused; the message names the nearest known one.
"""

FACTS = """
These kinds come from facts that the cluster reports. `change` holds the fact's name unless the fact
has a `change` of its own. Fields that an event lacks are in `message`.
"""


def page() -> str:
    facts: dict[str, list[type[Event]]] = defaultdict(list)
    for fact in Event.__subclasses__():
        facts[fact.kind].append(fact)
    rows = [
        (f"`{kind}`", f"`{fact.__name__}`", meaning(fact), fields(fact))
        for kind in KINDS
        for fact in facts[kind]
    ]
    return join(
        INTRO,
        "## Kinds",
        table(("kind", "what happened"), [(f"`{kind}`", text) for kind, text in KINDS.items()]),
        "## Fields of an event",
        "A field that does not apply is absent from JSON and `None` or empty in Python.",
        table(
            ("field", "meaning"),
            [(f"`{name}`", text) for name, text in field_meanings().items()],
        ),
        "## Conditions",
        CONDITIONS,
        ", ".join(f"`{name}`" for name in Filter.__struct_fields__) + ".",
        "## Facts",
        FACTS,
        table(("kind", "fact", "what happened", "fields"), rows),
    )


def meaning(fact: type) -> str:
    return " ".join((inspect.getdoc(fact) or "").split())


def fields(fact: type[Event]) -> str:
    names: tuple[str, ...] = fact.__struct_fields__
    return ", ".join(f"`{name}`" for name in names if name != "at_ms")
