"""The rules of one API, with the cached results of their conditions.

Most requests of a client have the same connection, topics and group. The results are therefore
cached in two stages. The first has the conditions on a connection. The second has, for the
remaining rules, the conditions on the topics and ids of a request (its *key*, raw values of the
message). A hundred rules that match nothing cost a request two look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mockbroker.core.faults.facts import ExchangeContext, Facts, KnownTopics
from mockbroker.core.faults.matching import ENTITIES
from mockbroker.core.faults.paths import request_shape
from mockbroker.core.faults.rows import RowArray, every, request_rows
from mockbroker_protocol import ApiKey
from mockbroker_protocol.declare import PRODUCER_ID, TOPIC_NAME, Entity
from mockbroker_protocol.entities import mentions, plain_fields

if TYPE_CHECKING:
    from mockbroker.core.faults.active import ActiveRule

# The cached results have about so many bytes; with more, all are forgotten.
CACHE_BYTES_MAX = 16 << 20
_ITEM_BYTES = 64
_FETCHES = frozenset((int(ApiKey.FETCH), int(ApiKey.SHARE_FETCH)))

RequestKey = Callable[[Any], Hashable]

# Conditions with one result for every request of a connection, client id and API version.
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
# Fields at the top level, by the condition on them.
_FIELDS = frozenset(("acks", "isolation_level"))


class _Matches:
    """The rules that may still match, and the first failed condition of each other rule."""

    __slots__ = ("count", "failed", "left")

    def __init__(
        self, rules: Sequence[ActiveRule], failure: Callable[[ActiveRule], str | None]
    ) -> None:
        self.count = 0
        self.left: list[ActiveRule] = []
        self.failed: list[tuple[ActiveRule, str]] = []
        for rule in rules:
            name = failure(rule)
            if name is None:
                self.left.append(rule)
            else:
                self.failed.append((rule, name))

    def add_failures(self) -> None:
        """Add the failures to the counts of the rules, and reset them."""
        for rule, name in self.failed if self.count else ():
            rule.failed[name] = rule.failed.get(name, 0) + self.count
        self.count = 0


class _OfConnection(_Matches):
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
        self.key = request_key(facts.api_key, facts.api_version, names)
        self.known: dict[Hashable, _Matches] = {}


class Bucket:
    """The rules of one API, in the order of evaluation."""

    __slots__ = ("_connections", "_epoch", "_image", "_rules", "_size")

    def __init__(self, rules: Sequence[ActiveRule]) -> None:
        self._rules = rules
        self._connections: dict[Hashable, _OfConnection] = {}
        # The epoch of the metadata: topics have names and ids.
        self._image: KnownTopics | None = None
        self._epoch = -1
        self._size = 0

    def rules_for(self, context: ExchangeContext, request: Any) -> Sequence[ActiveRule]:
        """The rules whose conditions hold, live conditions excepted."""
        if not self._rules:
            return ()
        image = context.broker.image
        if self._image is not image or self._epoch != image.epoch or self._size > CACHE_BYTES_MAX:
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
            self._size += _bytes_of(first_key) + _ITEM_BYTES * len(self._rules)
            facts = Facts(context, request)
            first = self._connections[first_key] = _OfConnection(self._rules, facts)
        first.count += 1
        if not first.left:
            return ()
        key = None
        if first.key is not None:
            key = first.key(request)
            if key is None:
                return self._unknown(first, Facts(context, request))
        second = first.known.get(key)
        if second is None:
            self._size += _bytes_of(key) + _ITEM_BYTES * len(first.left)
            second = first.known[key] = _second(first, Facts(context, request))
        second.count += 1
        return second.left

    def _unknown(self, first: _OfConnection, facts: Facts) -> Sequence[ActiveRule]:
        """As `rules_for`, for a request without a key."""
        second = _second(first, facts)
        second.count = 1
        second.add_failures()
        return second.left

    def _forget(self, image: KnownTopics) -> None:
        self.add_failures()
        self._connections.clear()
        self._image, self._epoch = image, image.epoch
        self._size = 0

    def add_failures(self) -> None:
        """Add the failures to the counts of the rules."""
        for first in self._connections.values():
            first.add_failures()
            for second in first.known.values():
                second.add_failures()


def _bytes_of(key: Hashable) -> int:
    """About how many bytes a key takes."""
    if isinstance(key, tuple):
        return _ITEM_BYTES + sum(map(_bytes_of, key))
    return _ITEM_BYTES + (len(key) if isinstance(key, str | bytes) else 0)


def _second(first: _OfConnection, facts: Facts) -> _Matches:
    return _Matches(
        first.left, lambda rule: rule.matcher.failed_of(facts, OF_CONNECTIONS, within=False)
    )


# -- keys of requests ------------------------------------------------------------------------------


def request_key(api_key: int, version: int, names: set[str]) -> RequestKey | None:
    """A function that returns the fields of a request that these conditions use.

    None if they use no field. The function returns None for a request without a key.
    """
    keys: list[RequestKey] = []
    for name in sorted(names - _OF_TARGETS):
        key = _key_of(api_key, version, name)
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


def _key_of(api_key: int, version: int, name: str) -> RequestKey | None:
    """Reads the fields that one condition uses; None if the API has none."""
    kind = ENTITIES.get(name)
    if kind is PRODUCER_ID or (kind is None and name not in _FIELDS):
        return _no_key  # producer ids change often, and are in the batches
    if api_key < 0:
        return None
    if kind is not None:
        return _entities_key(api_key, version, kind)
    if all(field.name != name for field in request_shape(api_key).fields):
        return None
    field = attrgetter(name)
    return lambda request: (field(request),)  # None means: no key


def _entities_key(api_key: int, version: int, kind: Entity) -> RequestKey | None:
    fields = plain_fields(request_shape(api_key), version, kind)
    if fields == ():
        return None
    if fields is not None:
        plain = attrgetter(*fields)
        return lambda request: (plain(request),)
    kinds = frozenset((kind,))
    return lambda request: tuple([each.value for each in mentions(request, version, kinds)])


def _targets_key(api_key: int) -> RequestKey | None:
    """The topics and partitions of a request, uninterpreted."""
    if api_key in _FETCHES:
        return _no_key  # an incremental fetch does not name all its partitions
    layout = request_rows(api_key) if api_key >= 0 else ()
    of_topics = [rows for rows in every(layout) if rows.kind is TOPIC_NAME]
    if not of_topics:
        return None
    (first, *others) = of_topics
    if not others and len(first.whole_path) == 1 and not first.bare and first.by is None:
        return _rows_key(first)
    return _no_key


def _rows_key(topics: RowArray) -> RequestKey:
    """The rows of one array of topics. Null, which may mean every topic, is a key of its own."""
    rows = attrgetter(topics.path[0])
    named = [name for name in (topics.name, topics.topic_id) if name]
    name_of = attrgetter(*named)
    if not topics.inner:
        return lambda request: _none_or_all(
            found := rows(request), [name_of(row) for row in found or ()]
        )
    (inner,) = topics.inner
    partitions = attrgetter(inner.path[0])
    if inner.bare:
        return lambda request: _none_or_all(
            found := rows(request),
            [(name_of(row), tuple(partitions(row) or ())) for row in found or ()],
        )
    number = attrgetter(inner.name)

    def key(request: Any) -> Hashable:
        found: Any = rows(request)
        if found is None:
            return _ALL
        if len(found) == 1:  # the usual case: a Produce for one partition
            items: Any = partitions(found[0]) or ()
            if len(items) == 1:
                return (name_of(found[0]), number(items[0]))
        return tuple([(name_of(row), *map(number, partitions(row) or ())) for row in found])

    return key


def _none_or_all(found: object, names: list[Any]) -> Hashable:
    return _ALL if found is None else tuple(names)


_ALL = "every topic"
