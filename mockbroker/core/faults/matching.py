"""A rule's match, compiled into conditions, the cheapest first."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple

from mockbroker.core.faults.facts import Facts
from mockbroker.core.faults.partial import SELECTED_BY_ID, Selection, narrows
from mockbroker.core.faults.paths import values_at
from mockbroker.core.faults.rows import request_rows
from mockbroker.core.faults.rules import Between, Match, NthConnection, api_keys
from mockbroker.core.faults.share_facts import ACKNOWLEDGE_TYPES, deliveries
from mockbroker.core.faults.texts import (
    source_matcher,
    text_matcher,
    version_matcher,
)
from mockbroker.core.ids import uuid_from_text
from mockbroker.core.validation import ValidationError
from mockbroker_protocol.declare import (
    GROUP_ID,
    INSTANCE_ID,
    MEMBER_ID,
    PRODUCER_ID,
    TRANSACTIONAL_ID,
    Entity,
)
from mockbroker_protocol.entities import ALL_PARTITIONS, Target

Predicate = Callable[[Facts], bool]
_READ_COMMITTED = 1
# Conditions on the ids that a request names.
ENTITIES: dict[str, Entity] = {
    "group": GROUP_ID,
    "member": MEMBER_ID,
    "instance_id": INSTANCE_ID,
    "transactional_id": TRANSACTIONAL_ID,
    "producer_id": PRODUCER_ID,
}
_ALL_ACKS = "all"


class MatchCondition(NamedTuple):
    """A condition on a request, under its field's name in `match`."""

    name: str
    holds: Predicate


class Matcher:
    """A compiled match. `api_keys` is empty if it matches every API.

    The results of `conditions` are cached for requests with equal keys (see `buckets`). `live`
    conditions are evaluated for each request.
    """

    __slots__ = (
        "_chosen",
        "_delivery_count",
        "_filter",
        "_types",
        "api_keys",
        "conditions",
        "live",
    )

    def __init__(self, match: Match, path: str = "match") -> None:
        """Raises ValidationError that names the invalid field."""
        self.api_keys = api_keys(match, f"{path}.api")
        self._filter = _target_filter(match, path)
        self._types = _acknowledge_types(match)
        self._delivery_count = _delivery_counts(match)
        self._chosen = _id_matchers(match, path)
        conditions = tuple(_conditions(match, path, self._filter))
        if self._types is not None:
            condition = MatchCondition("acknowledge_type", lambda facts: any(self._acks(facts)))
            conditions = (*conditions, condition)
        self.live = tuple(_live_conditions(match, path))
        self.conditions = conditions

    def add(self, name: str, holds: Predicate) -> None:
        """Add a condition."""
        self.live = (*self.live, MatchCondition(name, holds))

    def failed(self, facts: Facts) -> str | None:
        """The name of the first condition that does not hold; None if all hold."""
        return self.failed_of(facts, (), within=False) or self.failed_live(facts)

    def failed_of(self, facts: Facts, names: Container[str], *, within: bool) -> str | None:
        """As `failed`, for the conditions with these names (`within`) or the others; never the live
        ones.
        """
        for name, holds in self.conditions:
            if (name in names) is within and not holds(facts):
                return name
        return None

    def failed_live(self, facts: Facts) -> str | None:
        """As `failed`, for the live conditions."""
        for name, holds in self.live:
            if not holds(facts):
                return name
        return None

    def failed_where(self, facts: Facts) -> str | None:
        """As `failed`, for the conditions of `where`, which count nothing."""
        for name, holds in self.live:
            if name.startswith("where") and not holds(facts):
                return name
        return None

    def may_select(self, target: Target) -> bool:
        """Whether the match can select this partition."""
        return self._filter is None or self._filter.both(target)

    def selection(self, facts: Facts) -> Selection:
        """The selected part of a matching request."""
        if self._types is not None:
            return Selection(self._acks(facts), self._ids(facts), of_acknowledgements=True)
        return Selection(self._targets(facts), self._ids(facts))

    def _acks(self, facts: Facts) -> Iterator[Target]:
        """The partitions with acknowledgements of a matching type."""
        wanted = self._types
        assert wanted is not None
        for target, types in facts.acknowledged:
            if not wanted.isdisjoint(types) and self.may_select(target):
                yield target

    @property
    def needs_answer(self) -> bool:
        """Whether only the answer says whether a request matches."""
        return self._delivery_count is not None

    def selection_of_answer(self, facts: Facts, response: Any) -> Selection | None:
        """The selected part of a ShareFetch whose answer has a matching delivery count, if any."""
        assert self._delivery_count is not None
        targets = [facts.target_of(*each) for each in deliveries(response, self._delivery_count)]
        found = list(filter(self.may_select, targets))
        return Selection(found) if found else None

    def _ids(self, facts: Facts) -> dict[Entity, list[str]] | None:
        """The matching groups and transactional ids, if the request names others as well."""
        if not self._chosen:
            return None
        ids = {kind: list(filter(fits, facts.values(kind))) for kind, fits in self._chosen.items()}
        rows = request_rows(facts.api_key)
        return ids if narrows(facts.request, rows, Selection(None, ids)) else None

    def _targets(self, facts: Facts) -> list[Target] | None:
        wanted_targets = self._filter
        if wanted_targets is None:
            return None
        found = [target for target in facts.targets if wanted_targets.both(target)]
        if wanted_targets.indexes is not None:  # these partitions of a whole topic
            found = [
                target._replace(partition=index)
                for target in found
                for index in (
                    wanted_targets.indexes
                    if target.partition == ALL_PARTITIONS
                    else (target.partition,)
                )
            ]
        return found


class _TargetFilter(NamedTuple):
    topic: Callable[[Target], bool]
    partition: Callable[[Target], bool]
    indexes: frozenset[int] | None

    def both(self, target: Target) -> bool:
        return self.topic(target) and self.partition(target)


def _target_filter(match: Match, path: str) -> _TargetFilter | None:
    if match.topic is None and match.topic_id is None and match.partition is None:
        return None
    matchers: list[Callable[[Target], bool]] = []
    if match.topic is not None:
        fits = text_matcher(match.topic, f"{path}.topic")
        matchers.append(lambda target: fits(target.topic))
    if match.topic_id is not None:
        ids = _topic_ids(match.topic_id, f"{path}.topic_id")
        matchers.append(lambda target: target.topic_id in ids)
    indexes = None if match.partition is None else _numbers(match.partition)

    def right_topic(target: Target) -> bool:
        return all(fits(target) for fits in matchers)

    def right_partition(target: Target) -> bool:
        return indexes is None or target.partition in indexes or target.partition == ALL_PARTITIONS

    return _TargetFilter(right_topic, right_partition, indexes)


def _id_matchers(match: Match, path: str) -> dict[Entity, Callable[[str], bool]]:
    return {
        kind: text_matcher(getattr(match, name), f"{path}.{name}")
        for name, kind in ENTITIES.items()
        if kind in SELECTED_BY_ID and getattr(match, name) is not None
    }


def _acknowledge_types(match: Match) -> frozenset[int] | None:
    given = match.acknowledge_type
    if given is None:
        return None
    names = given if isinstance(given, list) else [given]
    return frozenset(ACKNOWLEDGE_TYPES[name] for name in names)


def _delivery_counts(match: Match) -> Callable[[int], bool] | None:
    wanted = match.delivery_count
    if wanted is None:
        return None
    if isinstance(wanted, Between):
        return lambda count: wanted.min <= count <= wanted.max
    return _numbers(wanted).__contains__


def _topic_ids(texts: str | list[str], path: str) -> frozenset[bytes]:
    try:
        given = texts if isinstance(texts, list) else [texts]
        return frozenset(uuid_from_text(text) for text in given)
    except ValueError as error:
        raise ValidationError(path, str(error)) from None


def _numbers(given: int | list[int]) -> frozenset[int]:
    return frozenset(given if isinstance(given, list) else [given])


def _conditions(
    match: Match, path: str, wanted_targets: _TargetFilter | None
) -> Iterable[MatchCondition]:
    yield from _plain_conditions(match, path)
    if wanted_targets is not None:
        if match.topic is not None or match.topic_id is not None:
            name = "topic" if match.topic is not None else "topic_id"
            yield MatchCondition(name, lambda facts: any(map(wanted_targets.topic, facts.targets)))
        if match.partition is not None:
            yield MatchCondition(
                "partition", lambda facts: any(map(wanted_targets.both, facts.targets))
            )
    yield from _request_conditions(match, path)


def _live_conditions(match: Match, path: str) -> Iterable[MatchCondition]:
    """The conditions that are evaluated for each request."""
    for field_path, wanted in (match.where or {}).items():
        yield _where(field_path, wanted, f"{path}.where.{field_path}")
    if isinstance(match.connection, NthConnection):
        yield MatchCondition("connection", _NthConnectionMatcher(match.connection.nth))


def _plain_conditions(match: Match, path: str) -> Iterable[MatchCondition]:
    """Conditions on the header and the connection."""
    if match.from_broker is not None:
        senders = _numbers(match.from_broker)
        yield MatchCondition("from_broker", lambda facts: facts.from_broker in senders)
    if match.to_broker is not None:
        receivers = _numbers(match.to_broker)
        yield MatchCondition("to_broker", lambda facts: facts.to_broker in receivers)
    if match.broker is not None:
        brokers = _numbers(match.broker)
        yield MatchCondition("broker", lambda facts: facts.broker.node_id in brokers)
    if match.api_version is not None:
        version = version_matcher(match.api_version, f"{path}.api_version")
        yield MatchCondition("api_version", lambda facts: version(facts.api_version))
    if match.client_id is not None:
        client = text_matcher(match.client_id, f"{path}.client_id")
        yield MatchCondition("client_id", lambda facts: client(facts.client_id))
    if isinstance(match.connection, int | list):
        ids = _numbers(match.connection)
        yield MatchCondition("connection", lambda facts: facts.connection.id in ids)
    if match.listener is not None:
        listener = text_matcher(match.listener, f"{path}.listener")
        yield MatchCondition("listener", lambda facts: listener(facts.listener))
    if match.principal is not None:
        principal = text_matcher(match.principal, f"{path}.principal")
        yield MatchCondition("principal", lambda facts: principal(facts.connection.principal))
    if match.client_software is not None:
        software = text_matcher(match.client_software, f"{path}.client_software")
        yield MatchCondition(
            "client_software",
            lambda facts: software(facts.software) or software(facts.connection.software_name),
        )
    if match.source is not None:
        source = source_matcher(match.source, f"{path}.source")
        yield MatchCondition(
            "source",
            lambda facts: source(facts.connection.client_host, facts.connection.client_port),
        )


def _request_conditions(match: Match, path: str) -> Iterable[MatchCondition]:
    """Conditions on the decoded request."""
    if match.acks is not None:
        acks = -1 if match.acks == _ALL_ACKS else match.acks
        yield MatchCondition("acks", lambda facts: facts.field("acks") == acks)
    if match.isolation_level is not None:
        level = match.isolation_level
        if isinstance(level, str):
            level = _READ_COMMITTED if level == "read_committed" else 0
        yield MatchCondition(
            "isolation_level", lambda facts: facts.field("isolation_level") == level
        )
    for name, kind in ENTITIES.items():
        wanted = getattr(match, name)
        if wanted is not None:
            yield _any_of(name, kind, wanted, path)
    if match.transactional is not None:
        transactional = match.transactional
        yield MatchCondition("transactional", lambda facts: facts.transactional is transactional)


def _any_of(name: str, kind: Entity, wanted: Any, path: str) -> MatchCondition:
    """Whether one of the values of a kind matches."""
    fits: Callable[[Any], bool]
    if kind is PRODUCER_ID:
        fits = _numbers(wanted).__contains__
    else:
        fits = text_matcher(wanted, f"{path}.{name}")
    return MatchCondition(name, lambda facts: any(map(fits, facts.values(kind))))


class _NthConnectionMatcher:
    """Whether a request comes on the n-th connection that meets all other conditions."""

    __slots__ = ("_nth", "_seen")

    def __init__(self, nth: int) -> None:
        self._nth = nth
        self._seen: dict[int, int] = {}

    def __call__(self, facts: Facts) -> bool:
        seen, connection_id = self._seen, facts.connection.id
        if len(seen) < self._nth:  # a later connection is not the n-th: its id is not kept
            seen.setdefault(connection_id, len(seen) + 1)
        return seen.get(connection_id) == self._nth


# -- fields by path --------------------------------------------------------------------------------


def _where(field_path: str, wanted: object, path: str) -> MatchCondition:
    steps = tuple(field_path.replace("[]", "").split("."))
    fits = value_matcher(wanted, path)

    def holds(facts: Facts) -> bool:
        if facts.request is None:
            return False
        try:
            return any(fits(value) for value in values_at(facts.request, steps))
        except AttributeError:  # another API's request, in a rule for several
            return False

    return MatchCondition(f"where.{field_path}", holds)


def value_matcher(wanted: object, path: str) -> Callable[[Any], bool]:
    """A test of a field's value: equal, one of a list, a glob or RE2 expression for texts, or
    within {"min", "max"}. Raises ValidationError.
    """
    if isinstance(wanted, list):
        matchers = [value_matcher(each, path) for each in wanted]
        return lambda value: any(each(value) for each in matchers)
    if isinstance(wanted, dict):
        unknown = sorted(set(wanted) - {"min", "max"})
        if unknown or not wanted:
            raise ValidationError(path, f'a range has "min" and "max", not {unknown}')
        low, high = wanted.get("min", -(2**63)), wanted.get("max", 2**63)
        if not isinstance(low, int | float) or not isinstance(high, int | float):
            raise ValidationError(path, '"min" and "max" are numbers')
        return lambda value: isinstance(value, int | float) and low <= value <= high
    if isinstance(wanted, str):
        fits = text_matcher(wanted, path)
        return lambda value: fits(value if isinstance(value, str) else _as_text(value))
    return lambda value: bool(value == wanted)


def _as_text(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return str(value)
