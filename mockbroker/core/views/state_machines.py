"""The state machines that have a state in a view: their states and transitions, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import msgspec

from mockbroker.core.groups import states as classic
from mockbroker.core.groups.consumer import states as consumer
from mockbroker.core.groups.share import states as share_group
from mockbroker.core.groups.streams import states as streams
from mockbroker.core.share import states as share
from mockbroker.core.txn import states as txn


class StateEdge(msgspec.Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """A transition from one state to another, with its triggers in words."""

    source: str
    target: str
    on: list[str]


class StateMachineView(msgspec.Struct, frozen=True):
    """A state machine: `name` is "classic group", "consumer group", "share group", "streams group",
    "transactional id" or "share record". Its states have the names that views have.
    """

    name: str
    states: list[str]
    edges: list[StateEdge]


def state_machine_views() -> list[StateMachineView]:
    """All state machines with a state in a view."""
    return [
        _of_transitions("classic group", classic.TRANSITIONS),
        _of_facts("consumer group", consumer.GROUP_STATES, consumer.ConsumerGroupState.DEAD),
        _of_facts("share group", share_group.GROUP_STATES, share_group.ShareGroupState.DEAD),
        _of_facts("streams group", streams.GROUP_STATES, streams.StreamsGroupState.DEAD),
        _of_transitions("transactional id", txn.TRANSITIONS),
        _of_transitions("share record", share.RECORD_TRANSITIONS),
    ]


def _of_transitions(
    name: str, transitions: Mapping[Any, Mapping[Any, Any | None]]
) -> StateMachineView:
    """A machine by its table: state x trigger -> state; None where there is no transition.

    States that nothing leads to and from are left out.
    """
    edges: dict[tuple[str, str], list[str]] = {}
    for state, row in transitions.items():
        for trigger, after in row.items():
            if after is not None and after is not state:
                edges.setdefault((_name(state), _name(after)), []).append(_words(trigger))
    used = {state for pair in edges for state in pair}
    return _view(name, [state for state in map(_name, transitions) if state in used], edges)


def _of_facts(name: str, states: Mapping[Any, Enum], dead: Enum) -> StateMachineView:
    """A machine whose state follows from facts: a transition is the change of one fact."""
    edges: dict[tuple[str, str], list[str]] = {}
    for facts, state in states.items():
        for at, field in enumerate(facts._fields):
            changed = facts._replace(**{field: not facts[at]})
            after = states.get(changed)
            if after is not None and after is not state:
                words = field.replace("_", " ")
                names = edges.setdefault((_name(state), _name(after)), [])
                said = f"no longer {words}" if facts[at] else words
                if said not in names:
                    names.append(said)
    if dead not in states.values():
        empty = next(iter(states.values()))
        edges[_name(empty), _name(dead)] = ["deleted"]
    return _view(name, dict.fromkeys(map(_name, [*states.values(), dead])), edges)


def _view(
    name: str, states: Iterable[str], edges: Mapping[tuple[str, str], list[str]]
) -> StateMachineView:
    return StateMachineView(
        name, list(states), [StateEdge(*pair, on=names) for pair, names in edges.items()]
    )


def _name(state: Enum) -> str:
    return state.value if isinstance(state.value, str) else state.name.capitalize()


def _words(trigger: Enum) -> str:
    if isinstance(trigger.value, str):
        return trigger.value
    return trigger.name.lower().replace("_", " ")
