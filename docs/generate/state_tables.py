"""What the pages about state machines share: a module's own words, and its tables' cells."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Collection, Mapping
from enum import Enum
from types import ModuleType
from typing import TypeVar

from markdown import table

S = TypeVar("S", bound=Enum)
T = TypeVar("T", bound=Enum)


def theory(module: ModuleType, until: str = "") -> str:
    """The opening words of the module, without its first line, up to `until`."""
    text = inspect.getdoc(module)
    assert text is not None
    words = text.partition("\n\n")[2]
    return words.partition(f"\n\n{until}")[0] if until else words


def yes(fact: bool) -> str:
    """A cell of a table of facts."""
    return "yes" if fact else "no"


def transitions_table(
    transitions: Mapping[S, Mapping[T, S]], forbidden: Mapping[S, Collection[T]]
) -> str:
    """A row for each state, a column for each trigger; "never" where it cannot come."""
    triggers = type(next(trigger for row in transitions.values() for trigger in row))

    def cell(state: S, trigger: T) -> str:
        return "never" if trigger in forbidden[state] else str(transitions[state][trigger].value)

    return table(
        ("state", *(trigger.value for trigger in triggers)),
        [
            (f"**{state.value}**", *(cell(state, trigger) for trigger in triggers))
            for state in transitions
        ],
    )


def edges_of(transitions: Mapping[S, Mapping[T, S]]) -> dict[tuple[S, S], list[str]]:
    """For each pair of states the names of what leads from one to the other."""
    edges: dict[tuple[S, S], list[str]] = defaultdict(list)
    for state, row in transitions.items():
        for trigger, after in row.items():
            edges[state, after].append(word(trigger))
    return edges


def answer(found: object, steps: type[Enum]) -> str:
    """A cell of a table of answers: one of the machine's steps, or the error that is told."""
    return f"*{word(found)}*" if isinstance(found, steps) else f"`{getattr(found, 'name', found)}`"


def word(member: Enum) -> str:
    """A member's name as words."""
    return member.name.lower().replace("_", " ")


def steps_list(steps: type[Enum]) -> str:
    """The steps that stand in a table of answers, with what each of them is."""
    return "\n".join(f"- *{word(step)}*: {step.value}" for step in steps)
