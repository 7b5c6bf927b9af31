"""Rules, plans and timelines as data: `match`, `when`, `do`.

The same data as JSON, YAML or Python dicts gives the same structs; `parse_plan` and `parse_rule`
make all of them. Times in `when` and in a timeline count from the addition of the plan, on the
cluster's clock.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec

from mockbroker.core import validation as cv
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.paths import dotted_paths, request_shape
from mockbroker.core.validation import Count, Later, Ms, Positive, Probability, ValidationError
from mockbroker_protocol import ApiKey

RULES_MAX = 1_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")

Text = str | list[str] | None
Ints = int | list[int] | None


class NthConnection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The n-th connection, from 1, of those that meet the other conditions."""

    nth: Positive


class Between(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A range of numbers, both ends included."""

    min: int = 0
    max: int = cv.INT_MAX


AcknowledgeType = Literal["accept", "release", "reject", "renew", "gap"]


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions on a request; all must hold.

    Texts are globs, or RE2 expressions between slashes; a list matches any of its items. With
    `topic`, `topic_id` and `partition` the rule applies to the matching partitions of the request.
    If a request names several groups, members, transactional ids or producers, one must match. Of
    several groups or transactional ids the rule applies to the matching ones.

    `acknowledge_type` is one in a ShareAcknowledge or ShareFetch; the rule applies to the
    partitions with such acknowledgements. `delivery_count` is one of a record in the answer to a
    ShareFetch; the rule applies to the partitions with such records, and has effects on the answer
    only.

    A rule is for clients' requests. With `between_brokers: true`, `from_broker` (the sender) or
    `to_broker` (the receiver) it is for hops only, the requests between brokers.
    """

    api: str | int | list[str | int] | None = None
    api_version: int | str | list[int] | None = None
    broker: Ints = None
    between_brokers: bool | None = None
    from_broker: Ints = None
    to_broker: Ints = None
    listener: Text = None
    topic: Text = None
    topic_id: Text = None
    partition: Ints = None
    group: Text = None
    member: Text = None
    instance_id: Text = None
    transactional_id: Text = None
    producer_id: Ints = None
    acknowledge_type: AcknowledgeType | list[AcknowledgeType] | None = None
    delivery_count: int | list[int] | Between | None = None
    client_id: Text = None
    client_software: Text = None
    principal: Text = None
    source: Text = None
    connection: int | list[int] | NthConnection | None = None
    acks: int | Literal["all"] | None = None
    isolation_level: Literal["read_committed", "read_uncommitted"] | int | None = None
    transactional: bool | None = None
    where: dict[str, object] | None = None

    @property
    def is_for_hops(self) -> bool:
        """Whether the match is for requests between brokers instead of clients' requests."""
        named = self.from_broker is not None or self.to_broker is not None
        return named or bool(self.between_brokers)


class GroupCondition(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    state: str


class TransactionCondition(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    state: str


class BrokerCondition(msgspec.Struct, frozen=True, kw_only=True):
    node: int
    state: Literal["running", "paused", "stopped", "fenced"]


class StateCondition(msgspec.Struct, frozen=True, kw_only=True):
    """The required states of a group, a transaction or a broker.

    Groups: Empty, Stable, Dead, PreparingRebalance and CompletingRebalance of classic groups,
    Assigning and Reconciling of consumer and streams groups, NotReady of streams groups.
    Transactions: Empty, Ongoing, PrepareCommit and the other states of DescribeTransactions.
    """

    group: GroupCondition | None = None
    transaction: TransactionCondition | None = None
    broker: BrokerCondition | None = None


class Barrier(msgspec.Struct, frozen=True, kw_only=True):
    """Another rule that must hold a request at present, or must have fired `hits` times."""

    SHORT: ClassVar[str] = "rule"

    rule: str
    hits: Positive | None = None


class ScenarioStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a scenario: `at` is the required step, `then` the step after a hit.

    A scenario begins at "start". Its default name is that of the plan.
    """

    SHORT: ClassVar[str] = "at"

    at: str | None = None
    then: str | None = None
    scenario: str = ""


class When(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """The matching requests that the rule fires for.

    The first conditions are `from`, `until`, `after_offset`, `after_records`, `state`, `barrier`
    and `step`. Requests that meet these are counted, from 1. The first `skip` pass; `nth` and
    `every` select by number among the rest, then `probability`. `times` limits the hits.
    """

    skip: Count = 0
    times: Count | None = None
    nth: Positive | list[Positive] | None = None
    every: Positive | None = None
    probability: Probability | None = None
    from_: Ms | None = None
    until: Ms | None = None
    after_offset: Count | None = None
    after_records: Count | None = None
    state: StateCondition | None = None
    barrier: Barrier | str | None = None
    step: ScenarioStep | str | None = None


class Rule(NamedTuple):
    """One rule. `do` has effects and actions by name, in the given order."""

    name: str
    match: Match
    when: When
    do: Mapping[str, msgspec.Struct]
    priority: int = 0
    tags: tuple[str, ...] = ()

    def to_data(self) -> dict[str, object]:
        """The rule as plain data, without default values."""
        data: dict[str, object] = {"name": self.name}
        for name in ("match", "when"):
            given = cv.to_data(getattr(self, name))
            if given:
                data[name] = given
        data["do"] = cv.to_data(self.do)
        if self.priority:
            data["priority"] = self.priority
        if self.tags:
            data["tags"] = list(self.tags)
        return data


class TimelineEntry(NamedTuple):
    """Actions at a time: `at_ms` after the plan was added, or after the first hit of a rule."""

    at_ms: int
    after: str
    do: Mapping[str, msgspec.Struct]

    def to_data(self) -> dict[str, object]:
        data: dict[str, object] = {"at": self.at_ms}
        if self.after:
            data["after"] = self.after
        return {**data, "do": cv.to_data(self.do)}


class FaultPlan(NamedTuple):
    """Rules and a timeline that are added and removed together."""

    name: str
    seed: int
    rules: tuple[Rule, ...]
    timeline: tuple[TimelineEntry, ...] = ()

    def to_data(self) -> dict[str, object]:
        """The plan as plain data."""
        data: dict[str, object] = {"name": self.name, "seed": self.seed}
        if self.rules:
            data["rules"] = [rule.to_data() for rule in self.rules]
        if self.timeline:
            data["timeline"] = [entry.to_data() for entry in self.timeline]
        return data


# -- reading ---------------------------------------------------------------------------------------


class RuleData(msgspec.Struct, kw_only=True):
    """A rule: which requests, when, and the effects."""

    name: str | None = None
    match: Match = Match()
    when: When = When()
    do: Annotated[dict[str, object], Later("effects")]
    priority: int = 0
    tags: list[str] = []


class TimelineEntryData(msgspec.Struct, kw_only=True):
    """Actions at a time after the plan was added, or after the first hit of a rule."""

    at: Ms = 0
    after: str = ""
    do: Annotated[dict[str, object], Later("actions")]


class PlanData(msgspec.Struct, kw_only=True):
    """Rules, and actions on the cluster at given times."""

    name: str | None = None
    seed: int = 0
    rules: list[Annotated[dict[str, object], Later("rule")]] = []
    timeline: list[TimelineEntryData] = []


def parse_plan(data: object, default_name: str) -> FaultPlan:
    """A plan from plain data: {"name", "seed", "rules", "timeline"}, or one rule by itself.

    Raises ValidationError that names the field. A rule without a name is named after its plan.
    """
    if isinstance(data, Mapping) and "do" in data:
        rule = parse_rule(data, "", default_name)
        return FaultPlan(rule.name, 0, (rule,))
    with _with_places(data, "rules[]."):
        known = cv.convert(data, PlanData, "")
    name = _named(known.name or default_name, "name")
    if len(known.rules) > RULES_MAX:
        reason = f"a plan has at most {RULES_MAX:,} rules, not {len(known.rules):,}"
        raise ValidationError("rules", reason)
    rules: list[Rule] = []
    for number, rule_data in enumerate(known.rules):
        own_name = name if len(known.rules) == 1 else f"{name}-{number + 1}"
        rules.append(parse_rule(rule_data, f"rules[{number}]", own_name))
    names: dict[str, None] = {}
    for number, rule in enumerate(rules):
        if rule.name in names:
            raise ValidationError(f"rules[{number}].name", f"there are two rules {rule.name!r}")
        names[rule.name] = None
    if not rules and not known.timeline:
        raise ValidationError("rules", "a plan has rules or a timeline")
    return FaultPlan(name, known.seed, tuple(rules), _timeline(known.timeline, names))


def parse_rule(data: object, path: str, default_name: str) -> Rule:
    """One rule from plain data. Raises ValidationError that names the field."""
    at = f"{path}." if path else ""
    with _with_places(data, at):
        known = cv.convert(data, RuleData, path)
        do = _parse_do(known.do, f"{at}do", actions_only=False)
    name = _named(known.name or default_name, f"{at}name")
    from mockbroker.core.faults.checks import check_rule

    rule = Rule(name, known.match, known.when, do, known.priority, tuple(known.tags))
    check_rule(rule, at)
    return rule


@contextmanager
def _with_places(data: object, at: str) -> Iterator[None]:
    """Add the valid places of an unknown field, in the rule `data` at `at`, to its error."""
    try:
        yield
    except cv.UnknownFieldError as error:
        places = [place for place in _places(error.name, data, at) if place != error.path]
        if not places:
            raise
        reason = f"unknown field; it belongs at {' or '.join(places)}"
        raise ValidationError(error.path, reason) from None


def _places(name: str, data: object, at: str) -> Iterator[str]:
    """The paths at which a field of this name is valid."""
    effects = _types(actions_only=False)
    sections: dict[str, Iterable[str]] = {
        at: cv.struct_fields(RuleData),
        f"{at}match.": cv.struct_fields(Match),
        f"{at}when.": cv.struct_fields(When),
        f"{at}do.": effects,
    }
    done = data.get("do") if isinstance(data, Mapping) else None
    for effect in done if isinstance(done, Mapping) else ():
        if effect in effects:
            sections[f"{at}do.{effect}."] = cv.struct_fields(effects[effect])
    sections["timeline[]."] = cv.struct_fields(TimelineEntryData)
    sections.setdefault("", cv.struct_fields(PlanData))
    return (section + name for section, fields in sections.items() if name in fields)


def _types(*, actions_only: bool) -> dict[str, type[msgspec.Struct]]:
    """The arguments of actions, and perhaps of effects, by name."""
    from mockbroker.core.actions import ACTIONS

    types: dict[str, type[msgspec.Struct]] = {name: a.arguments for name, a in ACTIONS.items()}
    return types if actions_only else {**types, **EFFECTS}


def _parse_do(
    data: Mapping[str, object], path: str, *, actions_only: bool
) -> Mapping[str, msgspec.Struct]:
    """Effects and actions by name. Raises ValidationError that names the field."""
    if not data:
        raise ValidationError(path, "say what to do")
    types = _types(actions_only=actions_only)
    made: dict[str, msgspec.Struct] = {}
    for name, value in data.items():
        type_ = types.get(name)
        if type_ is None:
            if name in EFFECTS:
                raise ValidationError(
                    f"{path}.{name}", "only actions on the cluster can be done here"
                )
            raise cv.UnknownFieldError(f"{path}.{name}", name, types)
        made[name] = cv.convert(value, type_, f"{path}.{name}")
    return made


def _timeline(
    entries: list[TimelineEntryData], names: Collection[str]
) -> tuple[TimelineEntry, ...]:
    timeline = []
    for number, entry in enumerate(entries):
        path = f"timeline[{number}]"
        if entry.after and entry.after not in names:
            hint = cv.nearest(entry.after, names)
            raise ValidationError(f"{path}.after", f"no rule {entry.after!r} in this plan{hint}")
        do = _parse_do(entry.do, f"{path}.do", actions_only=True)
        timeline.append(TimelineEntry(entry.at, entry.after, do))
    return tuple(timeline)


def _named(name: str, path: str) -> str:
    if NAME.fullmatch(name) is None:
        raise ValidationError(path, f"{name!r} is no name: letters, digits and . _ : - (up to 128)")
    return name


# -- APIs by name ----------------------------------------------------------------------------------

_APIS_BY_NAME = {key.name.lower().replace("_", ""): key for key in ApiKey}


def api_key(name: str | int, path: str) -> ApiKey:
    """An API by its key or its name: `Produce`, `PRODUCE`, `list_offsets`, 2."""
    if isinstance(name, int):
        try:
            return ApiKey(name)
        except ValueError:
            raise ValidationError(path, f"there is no API with key {name}") from None
    key = _APIS_BY_NAME.get(name.lower().replace("_", ""))
    if key is None:
        hint = cv.nearest(name, map(api_name, ApiKey), listed=False)
        raise ValidationError(path, f"unknown API {name!r}{hint}")
    return key


def api_keys(match: Match, path: str) -> frozenset[int]:
    """The keys of `match.api`; empty without `api`."""
    if match.api is None:
        return frozenset()
    names: Iterable[Any] = match.api if isinstance(match.api, list) else (match.api,)
    return frozenset(int(api_key(name, path)) for name in names)


def api_name(key: int) -> str:
    """An API's name as Kafka writes it: `ListOffsets`."""
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))


def request_paths(keys: Iterable[int]) -> set[str]:
    """The field paths of the requests of some APIs."""
    return {path for key in keys for path in dotted_paths(request_shape(key))}
