"""The Python API, drawn from their signatures and docstrings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

from markdown import page as join
from markdown import table

from mockbroker.api.aio.cluster import AsyncCluster
from mockbroker.api.audit import Audit
from mockbroker.api.blocking.builders import Faults
from mockbroker.api.blocking.clock import Clock
from mockbroker.api.blocking.faults import FaultPlan, FaultRule, HeldExchange
from mockbroker.api.blocking.journal import Journal
from mockbroker.api.blocking.members import Broker, Group, Transaction
from mockbroker.api.blocking.topics import Partition, Topic
from mockbroker.api.cluster import Cluster

INTRO = """
# Python API

`from mockbroker import Cluster`. Drawn from signatures and docstrings. The fixture `mock_kafka` is
a `Cluster`. [Test with pytest](../howto/pytest.md) has examples.

`with Cluster(…) as kafka` runs in a thread, `async with Cluster(…) as kafka` in this trio run, and
`Cluster.connect(url)` is a handle on another process. The interface is the same. In a trio run, and
behind `kafka.aio`, each method and property that is marked with *await* is awaited.

Actions are methods of what they act on. [Rules](rules.md) lists their arguments.
"""

CLASSES = {
    "Cluster": (Cluster, "A cluster."),
    "Cluster.topic(name)": (Topic, "A topic."),
    "Cluster.partition(topic, index)": (Partition, "A partition."),
    "Cluster.broker(node_id)": (Broker, "A broker."),
    "Cluster.group(group_id)": (Group, "A group."),
    "Cluster.transaction(transactional_id)": (Transaction, "A transactional id."),
    "Cluster.clock": (Clock, "The cluster's clock."),
    "Cluster.journal": (Journal, "Everything that happened to the cluster."),
    "Cluster.faults": (Faults, "Rules: add, wait for, explain and remove them."),
    "A plan": (FaultPlan, "One plan or rule, as it was added."),
    "A rule": (FaultRule, "One rule, as `kafka.faults.rule(name)` returns it."),
    "A held exchange": (HeldExchange, "A request that a `hold` rule stopped."),
    "Cluster.audit()": (Audit, "The verdict on every record so far."),
}
# Beyond the interface: the core of a cluster in this process has no stable one.
HIDDEN = ("call", "server")


def page() -> str:
    blocks = [INTRO]
    for title, (kind, meaning) in CLASSES.items():
        rows = [
            (f"`{name}{signature}`", "await" if is_awaited(kind, name) else "", text)
            for name, signature, text in members(kind)
        ]
        blocks += [
            f"## {title}",
            meaning,
            table(("member", "in async code", "what it does"), rows),
        ]
    return join(*blocks)


def is_awaited(kind: type, name: str) -> bool:
    """Whether the awaited twin of a member is a coroutine."""
    twin = AsyncCluster if kind is Cluster else twin_of(kind)
    found = None if twin is None else inspect.getattr_static(twin, name, None)
    if isinstance(found, property):
        found = found.fget
    return inspect.iscoroutinefunction(found)


def twin_of(kind: type) -> type | None:
    if ".blocking." not in kind.__module__:
        return None
    module = importlib.import_module(kind.__module__.replace(".blocking.", ".aio."))
    found: type = getattr(module, f"Async{kind.__name__}")
    return found


def members(kind: type) -> Iterator[tuple[str, str, str]]:
    """Name, signature and first sentence of each public method and property."""
    for name in dict.fromkeys(name for base in kind.__mro__[:-1] for name in vars(base)):
        found = inspect.getattr_static(kind, name)
        if name.startswith("_") or name in HIDDEN:
            continue
        if isinstance(found, property):
            yield name, "", first(found)
        elif isinstance(found, classmethod):
            yield name, signature_of(found.__func__), first(found.__func__)
        elif inspect.isfunction(found):
            yield name, signature_of(found), first(found)


def signature_of(function: object) -> str:
    assert callable(function)
    signature = inspect.signature(function)
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
        if each.name not in ("self", "cls")
    ]
    shown = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return str(shown)


def first(documented: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())
