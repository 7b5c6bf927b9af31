"""A rule's match, compiled once into questions in the order of what they cost."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

from mockbroker.core.faults.errors import RuleError
from mockbroker.core.faults.facts import Facts
from mockbroker.core.faults.layouts import values_at
from mockbroker.core.faults.partial import ALL, Selection, Target
from mockbroker.core.faults.rules import Match, NthConnection, api_keys
from mockbroker.core.faults.texts import (
    source_question,
    text_question,
    version_question,
)
from mockbroker.core.ids import uuid_from_text

Predicate = Callable[[Facts], bool]
_READ_COMMITTED = 1
_ALL_ACKS = "all"


class Condition(NamedTuple):
    """One question about a request, under the name of the field that asks it."""

    name: str
    holds: Predicate


class Matcher:
    """A compiled match. `api_keys` is empty where it is for every API.

    What `conditions` say is the same of requests that look alike (see `buckets`), and need not be
    asked again; `live` ones are asked each time.
    """

    __slots__ = ("_picks", "api_keys", "conditions", "live")

    def __init__(self, match: Match, path: str = "match") -> None:
        """Raises RuleError that names the field which does not make sense."""
        self.api_keys = api_keys(match, f"{path}.api")
        self._picks = _target_picker(match, path)
        conditions = tuple(_conditions(match, path, self._picks))
        self.live = tuple(_live_conditions(match, path))
        self.conditions = conditions

    def add(self, name: str, holds: Predicate) -> None:
        """Have another condition that has to hold."""
        self.live = (*self.live, Condition(name, holds))

    def failed(self, facts: Facts) -> str | None:
        """The name of the first condition that does not hold; None when all do."""
        return self.failed_of(facts, (), within=False) or self.failed_live(facts)

    def failed_of(self, facts: Facts, names: Container[str], *, within: bool) -> str | None:
        """The same of the conditions of these names, or of all but these; not of live ones."""
        for name, holds in self.conditions:
            if (name in names) is within and not holds(facts):
                return name
        return None

    def failed_live(self, facts: Facts) -> str | None:
        """The same of the others."""
        for name, holds in self.live:
            if not holds(facts):
                return name
        return None

    def selection(self, facts: Facts) -> Selection:
        """What the rule is for, of a request that it matches."""
        picks = self._picks
        if picks is None:
            return Selection(None)
        found = [target for target in facts.targets if picks.both(target)]
        if picks.indexes is not None:  # of a topic as a whole, only these are meant
            found = [
                target._replace(partition=index)
                for target in found
                for index in (picks.indexes if target.partition == ALL else (target.partition,))
            ]
        return Selection(found)


class _Picks(NamedTuple):
    topic: Callable[[Target], bool]
    partition: Callable[[Target], bool]
    indexes: frozenset[int] | None

    def both(self, target: Target) -> bool:
        return self.topic(target) and self.partition(target)


def _target_picker(match: Match, path: str) -> _Picks | None:
    if match.topic is None and match.topic_id is None and match.partition is None:
        return None
    topic_asks: list[Callable[[Target], bool]] = []
    if match.topic is not None:
        fits = text_question(match.topic, f"{path}.topic")
        topic_asks.append(lambda target: fits(target.topic))
    if match.topic_id is not None:
        ids = _topic_ids(match.topic_id, f"{path}.topic_id")
        topic_asks.append(lambda target: target.topic_id in ids)
    indexes = None if match.partition is None else _numbers(match.partition)

    def right_topic(target: Target) -> bool:
        return all(asks(target) for asks in topic_asks)

    def right_partition(target: Target) -> bool:
        return indexes is None or target.partition in indexes or target.partition == ALL

    return _Picks(right_topic, right_partition, indexes)


def _topic_ids(texts: str | list[str], path: str) -> frozenset[bytes]:
    try:
        given = texts if isinstance(texts, list) else [texts]
        return frozenset(uuid_from_text(text) for text in given)
    except ValueError as error:
        raise RuleError(path, str(error)) from None


def _numbers(given: int | list[int]) -> frozenset[int]:
    return frozenset(given if isinstance(given, list) else [given])


def _conditions(match: Match, path: str, picks: _Picks | None) -> Iterable[Condition]:
    yield from _plain_conditions(match, path)
    if picks is not None:
        if match.topic is not None or match.topic_id is not None:
            name = "topic" if match.topic is not None else "topic_id"
            yield Condition(name, lambda facts: any(map(picks.topic, facts.targets)))
        if match.partition is not None:
            yield Condition("partition", lambda facts: any(map(picks.both, facts.targets)))
    yield from _request_conditions(match, path)


def _live_conditions(match: Match, path: str) -> Iterable[Condition]:
    """What is asked anew for each request."""
    for field_path, wanted in (match.where or {}).items():
        yield _where(field_path, wanted, f"{path}.where.{field_path}")
    if isinstance(match.connection, NthConnection):
        yield Condition("connection", _NthQuestion(match.connection.nth))


def _plain_conditions(match: Match, path: str) -> Iterable[Condition]:
    """What header and connection tell."""
    if match.broker is not None:
        brokers = _numbers(match.broker)
        yield Condition("broker", lambda facts: facts.broker.node_id in brokers)
    if match.api_version is not None:
        version = version_question(match.api_version, f"{path}.api_version")
        yield Condition("api_version", lambda facts: version(facts.api_version))
    if match.client_id is not None:
        client = text_question(match.client_id, f"{path}.client_id")
        yield Condition("client_id", lambda facts: client(facts.client_id))
    if isinstance(match.connection, int | list):
        ids = _numbers(match.connection)
        yield Condition("connection", lambda facts: facts.connection.id in ids)
    if match.listener is not None:
        listener = text_question(match.listener, f"{path}.listener")
        yield Condition("listener", lambda facts: listener(facts.listener))
    if match.principal is not None:
        principal = text_question(match.principal, f"{path}.principal")
        yield Condition("principal", lambda facts: principal(facts.connection.principal))
    if match.client_software is not None:
        software = text_question(match.client_software, f"{path}.client_software")
        yield Condition(
            "client_software",
            lambda facts: software(facts.software) or software(facts.connection.software_name),
        )
    if match.source is not None:
        source = source_question(match.source, f"{path}.source")
        yield Condition(
            "source",
            lambda facts: source(facts.connection.client_host, facts.connection.client_port),
        )


def _request_conditions(match: Match, path: str) -> Iterable[Condition]:
    """What the decoded request tells."""
    if match.acks is not None:
        acks = -1 if match.acks == _ALL_ACKS else match.acks
        yield Condition("acks", lambda facts: acks in facts.values(("acks",)))
    if match.isolation_level is not None:
        level = match.isolation_level
        if isinstance(level, str):
            level = _READ_COMMITTED if level == "read_committed" else 0
        yield Condition(
            "isolation_level", lambda facts: level in facts.values(("isolation_level",))
        )
    asked: tuple[tuple[str, Any, Callable[[Facts], list[str]]], ...] = (
        ("group", match.group, lambda facts: facts.groups),
        ("member", match.member, lambda facts: facts.members),
        ("instance_id", match.instance_id, lambda facts: facts.instances),
        ("transactional_id", match.transactional_id, lambda facts: facts.transactional_ids),
    )
    for name, pattern, found in asked:
        if pattern is not None:
            yield _any_text(name, pattern, found, path)
    if match.producer_id is not None:
        producers = _numbers(match.producer_id)
        yield Condition(
            "producer_id", lambda facts: any(each in producers for each in facts.producer_ids)
        )
    if match.transactional is not None:
        wanted = match.transactional
        yield Condition("transactional", lambda facts: facts.transactional is wanted)


def _any_text(
    name: str, pattern: str | list[str], found: Callable[[Facts], list[str]], path: str
) -> Condition:
    fits = text_question(pattern, f"{path}.{name}")
    return Condition(name, lambda facts: any(map(fits, found(facts))))


class _NthQuestion:
    """Whether a request comes on the n-th connection that everything else holds for."""

    __slots__ = ("_nth", "_seen")

    def __init__(self, nth: int) -> None:
        self._nth = nth
        self._seen: dict[int, int] = {}

    def __call__(self, facts: Facts) -> bool:
        number = self._seen.setdefault(facts.connection.id, len(self._seen) + 1)
        return number == self._nth


# -- fields by path --------------------------------------------------------------------------------


def _where(field_path: str, wanted: object, path: str) -> Condition:
    steps = tuple(field_path.replace("[]", "").split("."))
    fits = value_question(wanted, path)

    def holds(facts: Facts) -> bool:
        if facts.request is None:
            return False
        try:
            return any(fits(value) for value in values_at(facts.request, steps))
        except AttributeError:  # another API's request, in a rule for several
            return False

    return Condition(f"where.{field_path}", holds)


def value_question(wanted: object, path: str) -> Callable[[Any], bool]:
    """Whether a field's value is as wanted: equal, one of a list, a glob or regular expression for
    texts, or within {"min", "max"}. Raises RuleError.
    """
    if isinstance(wanted, list):
        asks = [value_question(each, path) for each in wanted]
        return lambda value: any(ask(value) for ask in asks)
    if isinstance(wanted, dict):
        unknown = sorted(set(wanted) - {"min", "max"})
        if unknown or not wanted:
            raise RuleError(path, f'a range has "min" and "max", not {unknown}')
        low, high = wanted.get("min", -(2**63)), wanted.get("max", 2**63)
        if not isinstance(low, int | float) or not isinstance(high, int | float):
            raise RuleError(path, '"min" and "max" are numbers')
        return lambda value: isinstance(value, int | float) and low <= value <= high
    if isinstance(wanted, str):
        fits = text_question(wanted, path)
        return lambda value: fits(value if isinstance(value, str) else _as_text(value))
    return lambda value: bool(value == wanted)


def _as_text(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return str(value)
