"""The rules to be asked about one API, and what is known of requests that look alike.

Most requests of a client look alike to most rules: same connection, same topics, same group. So
what the rules' conditions say is kept in two stages. The first knows what they say of a connection;
the second, for the rules that are left, what they say of a request with these topics and ids (its
*key*, raw values read off the message). A hundred rules that match nothing cost a request two looks
into a dict.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mockbroker.core.faults.facts import (
    GROUPS,
    INSTANCES,
    MEMBERS,
    TRANSACTIONS,
    Facts,
    Surroundings,
)
from mockbroker.core.faults.layouts import TopicArray, request_layout, values_at
from mockbroker_protocol import ApiKey
from mockbroker_protocol.declare import Array

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.faults.engine import ActiveRule
    from mockbroker.core.image import Image

KEYS_MAX = 4096
_FETCH = int(ApiKey.FETCH)

Key = Callable[[Any], Hashable]

# Conditions that say the same of every request of a connection, client id and API version.
OF_CONNECTIONS = frozenset(
    (
        "api_version",
        "broker",
        "client_id",
        "client_software",
        "connection",
        "listener",
        "principal",
        "source",
    )
)
_OF_TARGETS = frozenset(("topic", "topic_id", "partition"))
_SCALARS: dict[str, tuple[str, ...]] = {
    "group": (*GROUPS, "groups", "key", "key_type", "coordinator_keys"),
    "member": MEMBERS,
    "instance_id": INSTANCES,
    "transactional_id": (*TRANSACTIONS, "key", "key_type", "coordinator_keys"),
    "acks": ("acks",),
    "isolation_level": ("isolation_level",),
}


class _Verdict:
    """Which rules are left of some, and at what the others failed."""

    __slots__ = ("asked", "failed", "left")

    def __init__(
        self, rules: Sequence[ActiveRule], failure: Callable[[ActiveRule], str | None]
    ) -> None:
        self.asked = 0
        self.left: list[ActiveRule] = []
        self.failed: list[tuple[ActiveRule, str]] = []
        for rule in rules:
            name = failure(rule)
            if name is None:
                self.left.append(rule)
            else:
                self.failed.append((rule, name))

    def settle(self) -> None:
        """Tell the rules how often they failed, and begin to count anew."""
        for rule, name in self.failed if self.asked else ():
            rule.failed[name] = rule.failed.get(name, 0) + self.asked
        self.asked = 0


class _OfConnection(_Verdict):
    """The first stage: the rules whose conditions on the connection hold, and the second stage."""

    __slots__ = ("key", "known")

    def __init__(self, rules: Sequence[ActiveRule], facts: Facts) -> None:
        super().__init__(
            rules, lambda rule: rule.matcher.failed_of(facts, OF_CONNECTIONS, within=True)
        )
        names = {
            name
            for rule in self.left
            for name, _ in rule.matcher.conditions
            if name not in OF_CONNECTIONS
        }
        self.key = request_key(facts.api_key, names)
        self.known: dict[Hashable, _Verdict] = {}


class Bucket:
    """The rules of one API, in the order in which they are asked."""

    __slots__ = ("_connections", "_epoch", "_image", "_rules", "_size")

    def __init__(self, rules: Sequence[ActiveRule]) -> None:
        self._rules = rules
        self._connections: dict[Hashable, _OfConnection] = {}
        # Of the metadata: topics are known by names and ids.
        self._image: Image | None = None
        self._epoch = -1
        self._size = 0

    def rules_for(
        self, cluster: Cluster, context: Surroundings, request: Any
    ) -> Sequence[ActiveRule]:
        """The rules of which all conditions hold but those that are asked anew each time."""
        if not self._rules:
            return ()
        image = context.broker.image
        if self._image is not image or self._epoch != image.epoch or self._size > KEYS_MAX:
            self._forget(image)
        header, connection = context.header, context.connection
        first_key = (
            connection.id,
            header.client_id,
            header.api_version,
            connection.principal,
            connection.software_name,
        )
        first = self._connections.get(first_key)
        if first is None:
            self._size += 1
            facts = Facts(cluster, context, request)
            first = self._connections[first_key] = _OfConnection(self._rules, facts)
        first.asked += 1
        if not first.left:
            return ()
        key = None
        if first.key is not None:
            key = first.key(request)
            if key is None:
                return self._unknown(first, Facts(cluster, context, request))
        second = first.known.get(key)
        if second is None:
            self._size += 1
            second = first.known[key] = _second(first, Facts(cluster, context, request))
        second.asked += 1
        return second.left

    def _unknown(self, first: _OfConnection, facts: Facts) -> Sequence[ActiveRule]:
        """The same of a request that has no key: it is asked about as if it were the first."""
        second = _second(first, facts)
        second.asked = 1
        second.settle()
        return second.left

    def _forget(self, image: Image) -> None:
        self.settle()
        self._connections.clear()
        self._image, self._epoch = image, image.epoch
        self._size = 0

    def settle(self) -> None:
        """Tell the rules how often they failed."""
        for first in self._connections.values():
            first.settle()
            for second in first.known.values():
                second.settle()


def _second(first: _OfConnection, facts: Facts) -> _Verdict:
    return _Verdict(
        first.left, lambda rule: rule.matcher.failed_of(facts, OF_CONNECTIONS, within=False)
    )


# -- keys of requests ------------------------------------------------------------------------------


def request_key(api_key: int, names: set[str]) -> Key | None:
    """What reads off a request all that the conditions of these names look at.

    None where they look at nothing. The key itself is None for a request that has none.
    """
    keys: list[Key] = []
    for name in sorted(names - _OF_TARGETS):
        key = _scalar_key(api_key, _SCALARS[name]) if name in _SCALARS else _no_key
        if key is not None:
            keys.append(key)
    if names & _OF_TARGETS:
        key = _targets_key(api_key)
        if key is not None:
            keys.append(key)
    if not keys:
        return None
    if _no_key in keys:
        return _no_key
    if len(keys) == 1:
        return keys[0]
    if len(keys) == 2:
        one, other = keys
        return lambda request: (one(request), other(request))
    return lambda request: tuple([key(request) for key in keys])


def _no_key(_: Any) -> Hashable:
    return None


def _scalar_key(api_key: int, names: Sequence[str]) -> Key | None:
    """The values of the fields of these names; None if the API has none of them."""
    if api_key < 0:
        return None
    layout = request_layout(api_key)
    paths = [path for name in names for path in layout.scalars.get(name, ())]
    if not paths:
        return None
    arrays = {field.name for field in layout.shape.fields if isinstance(field.type, Array)}
    if all(len(path) == 1 and path[0] not in arrays for path in paths):
        wanted = attrgetter(*[path[0] for path in paths])
        return lambda request: (wanted(request),)  # for None says that there is no key
    return lambda request: tuple([tuple(values_at(request, path)) for path in paths])


def _targets_key(api_key: int) -> Key | None:
    """The topics and partitions as they stand in a request."""
    if api_key == _FETCH:
        return _no_key  # an incremental one does not say what it is about
    layout = request_layout(api_key) if api_key >= 0 else None
    if layout is None or not (layout.topics or layout.names):
        return None
    if len(layout.topics) == 1 and not layout.names and len(layout.topics[0].path) == 1:
        return _rows_key(layout.topics[0])
    return _no_key


def _rows_key(array: TopicArray) -> Key:
    """The rows of one array of topics."""
    rows = attrgetter(array.field)
    named = [name for name in (array.name, array.topic_id) if name]
    name_of = attrgetter(*named)
    if not array.partitions:
        return lambda request: tuple([name_of(row) for row in rows(request) or (_ALL,)])
    partitions = attrgetter(array.partitions)
    if not array.number:
        return lambda request: tuple(
            [(name_of(row), tuple(partitions(row) or ())) for row in rows(request) or ()]
        )
    number = attrgetter(array.number)

    def key(request: Any) -> Hashable:
        found: Any = rows(request) or ()
        if len(found) == 1:  # one partition is what producers send who wait for each answer
            items: Any = partitions(found[0]) or ()
            if len(items) == 1:
                return (name_of(found[0]), number(items[0]))
        return tuple([(name_of(row), *map(number, partitions(row) or ())) for row in found])

    return key


class _All:
    """Stands for the row of every topic, which null means."""

    name = topic = topic_name = topic_id = None


_ALL = _All()
