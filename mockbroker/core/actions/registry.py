"""Actions: changes of a cluster that no client can request.

An action is a function with a struct of its arguments. Rules, timelines, scenarios, HTTP, the
command line and the Python API perform it with `perform`, which sets the cause of the resulting
events and writes an `action` entry to the journal. A failed action raises ActionError or ApiError
and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

import msgspec

from mockbroker.core.garbage import no_collections
from mockbroker.core.validation import ValidationError, convert, nearest, to_data

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=msgspec.Struct)


class Performer(Protocol):
    """A cluster, or a handle on one."""

    def perform(self, action: Action[Any, R], arguments: msgspec.Struct) -> R:
        """Carry out `action`; returns its result."""
        ...


class Action(Generic[P, R]):
    """An action. As an attribute of a Performer it is a method.

    The method takes the fields of the struct `arguments`. It raises ValidationError, which names
    the field, for an invalid value.
    """

    def __init__(
        self, arguments: Callable[P, msgspec.Struct], carry_out: Callable[[ClusterState, Any], R]
    ) -> None:
        assert isinstance(arguments, type)
        self.name = ""
        self.arguments: type[msgspec.Struct] = arguments
        self.carry_out = carry_out
        self.__doc__ = carry_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        ACTIONS[name] = self

    @overload
    def __get__(self, on: None, owner: type) -> Self: ...
    @overload
    def __get__(self, on: Performer, owner: type) -> Callable[P, R]: ...
    def __get__(self, on: Performer | None, owner: type) -> Self | Callable[P, R]:
        if on is None:
            return self

        @wraps(self.carry_out)
        def perform(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                given = self.arguments(*args, **kwargs)
            except ValueError as error:  # an invalid combination of fields
                raise ValidationError(self.name, str(error)) from None
            return on.perform(self, convert(to_data(given), self.arguments, self.name))

        return perform


ACTIONS: dict[str, Action[..., Any]] = {}


def action(
    arguments: Callable[P, A],
) -> Callable[[Callable[[ClusterState, A], R]], Action[P, R]]:
    """A decorator: the function, of a cluster and a struct `arguments`, becomes an action."""
    return lambda carry_out: Action(arguments, carry_out)


def perform(
    cluster: ClusterState,
    action: Action[Any, R],
    arguments: msgspec.Struct,
    cause: str | None = None,
) -> R:
    """Carry out an action; `cause` is the rule or plan that triggers it, if there is one.

    Raises ActionError or ApiError; then nothing has changed and the journal has no entry.
    """
    runtime = cluster.runtime
    journal = runtime.journal
    former, runtime.cause = runtime.cause, cause or runtime.cause or action.name
    last_seq = request_seq = 0
    if journal is not None:
        last_seq = journal.last_seq
        request_seq, journal.cause_seq = journal.cause_seq, 0
    try:
        with no_collections():
            result = action.carry_out(cluster, arguments)
    finally:
        runtime.cause = former
        if journal is not None:
            journal.cause_seq = request_seq
    if journal is not None:
        # An action is atomic: its effects are the entries behind `effects_after`.
        journal.fact(
            runtime.now_ms(),
            "action",
            change=action.name,
            rules=() if cause is None else (cause,),
            arguments=to_data(arguments),
            effects_after=last_seq,
        )
    return result


def find_action(name: str) -> Action[..., Any]:
    """The action `name`. Raises ValidationError with the nearest name if there is none."""
    found = ACTIONS.get(name)
    if found is None:
        raise ValidationError("action", f"unknown action {name!r}{nearest(name, ACTIONS)}")
    return found


def parse_action(name: str, data: object) -> msgspec.Struct:
    """The arguments of an action from plain data. Raises ValidationError with the field."""
    return convert(data, find_action(name).arguments, name)
