"""The fixtures' classes, drawn from their signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from markdown import page as join
from markdown import table

from mockbroker.core.actions import ACTIONS
from mockbroker.core.actions.registry import Action
from mockbroker_fixtures.audit import Audit
from mockbroker_fixtures.clock import ClusterClockControl
from mockbroker_fixtures.cluster import Cluster
from mockbroker_fixtures.faults import FaultRule, Faults, HeldExchange
from mockbroker_fixtures.journal import ClusterJournal
from mockbroker_fixtures.views import Views

INTRO = """
# Python API

The classes of `mockbroker_fixtures`, drawn from their signatures and docstrings. The fixture
`mock_kafka` is a `Cluster`. [Test with pytest](../howto/pytest.md) has examples.
"""

CLASSES = {
    "Cluster": (Cluster, "A cluster in a thread of its own."),
    "Cluster.faults": (Faults, "Rules: add, wait for, explain and remove them."),
    "A rule": (FaultRule, "One rule, as `kafka.faults.rule(name)` returns it."),
    "A held exchange": (HeldExchange, "A request that a `hold` rule stopped."),
    "Cluster.journal": (ClusterJournal, "Everything that happened to the cluster."),
    "Cluster.clock": (ClusterClockControl, "The cluster's clock."),
    "Cluster.views": (Views, "The cluster's present state."),
    "Cluster.audit()": (Audit, "The verdict on every record so far."),
}


def page() -> str:
    blocks = [INTRO]
    for title, (kind, meaning) in CLASSES.items():
        rows = [(f"`{name}{signature}`", text) for name, signature, text in members(kind)]
        blocks += [f"## {title}", meaning, table(("member", "what it does"), rows)]
        if kind is Cluster:
            blocks += [
                "### Actions",
                "Each action is a method of a cluster. [Rules](rules.md) lists their arguments.",
                table(("method", "what it does"), actions()),
            ]
    return join(*blocks)


def actions() -> list[tuple[str, str]]:
    return [(f"`{name}({arguments(each)})`", first(each)) for name, each in ACTIONS.items()]


def members(kind: type) -> Iterator[tuple[str, str, str]]:
    """Name, signature and first sentence of each public method and property."""
    for name in dict.fromkeys(name for base in kind.__mro__[:-1] for name in vars(base)):
        found = inspect.getattr_static(kind, name)
        if name.startswith("_") or isinstance(found, Action):
            continue
        if isinstance(found, property):
            yield name, "", first(found)
        elif inspect.isfunction(found):
            yield name, signature_of(found), first(found)


def signature_of(function: object) -> str:
    assert callable(function)
    signature = inspect.signature(function)
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    shown = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return str(shown)


def arguments(action: Action[..., object]) -> str:
    return ", ".join(action.arguments.__struct_fields__)


def first(documented: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())
