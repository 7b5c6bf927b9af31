"""The plan of a simulation: the cluster, its clients, and the steps.

The same plan gives the same run. It is written as JSON or YAML. `generate` makes a plan from a
seed, shrinking makes it smaller.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from mockbroker.core.actions import parse_action
from mockbroker.core.errors import ConfigError
from mockbroker.core.faults.rules import parse_plan as parse_rules
from mockbroker.core.metadata.profiles import profile_of
from mockbroker.core.validation import ValidationError, nearest
from mockbroker.core.yaml_documents import read_yaml

FORMAT = 1

ClientKind = Literal[
    "producer",
    "transactional",
    "classic",
    "consumer",
    "share",
    "drainer",
    "streams",
    "reader",
    "admin",
]

Habit = Literal[
    "stale_requests",
    "only_heartbeats",
    "ignores",
    "returns",
    "stalls",
    "long_metadata",
    "follower",
    "explicit",
    "renews",
    "lapses",
    "resets_offsets",
]

# The steps that are not actions on the cluster.
ADD_RULE = "add_rule"
REMOVE_RULES = "remove_rules"
SNAPSHOT = "snapshot"
RESTORE = "restore"
RESTART = "restart"
CRASH_CLIENT = "crash_client"
LOSE_MESSAGES = "lose_messages"
OWN_STEPS = (ADD_RULE, REMOVE_RULES, SNAPSHOT, RESTORE, RESTART, CRASH_CLIENT, LOSE_MESSAGES)


class PlanError(Exception):
    """A plan is invalid; the message has the field and the reason."""


class TopicSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A topic that exists from the start."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    configs: dict[str, str] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cluster, and the duration of the faults. `latency_ms` bounds the time of an answer."""

    brokers: int = 3
    kafka_version: str = "4.3"
    configs: dict[str, str] = {}
    topics: list[TopicSettings] = []
    duration_ms: int = 10_000
    latency_ms: tuple[int, int] = (0, 3)


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One client. Fields that its kind does not use are ignored.

    `release` is the Kafka release of its protocol versions, `operations` the number of its rounds
    (written records or transactions, polls, requests of an admin). `pause_ms` bounds the time
    between two rounds. A transactional client with `input` and `group` is
    consume-transform-produce. A drainer is the last member of a share group: it begins when all
    others have ended, and goes on until no record is left. `habits` are special behaviours:

    - `stale_requests`: sends requests with an earlier generation, a fenced member id or an earlier
      epoch of a fetch session or share session;
    - `only_heartbeats`: joins and then sends only heartbeats, longer than the rebalance timeout;
    - `ignores`: sends heartbeats during a rebalance and does not join;
    - `returns`: joins again as a new member, with its instance id if it has one;
    - `stalls`: sends nothing for longer than its session timeout;
    - `long_metadata`: commits offsets with the largest allowed metadata;
    - `follower`: reads from followers;
    - `explicit`: acknowledges with ShareAcknowledge, not with the next ShareFetch;
    - `renews`: renews acquisition locks (KIP-1222);
    - `lapses`: does not acknowledge some records, so that their acquisition locks expire;
    - `resets_offsets`: alters or deletes the start offsets of its share group after it has left.
    """

    kind: ClientKind
    name: str
    release: str = "4.3"
    topics: list[str] = []
    operations: int = 20
    start_ms: int = 0
    pause_ms: tuple[int, int] = (0, 50)
    acks: int = -1
    idempotent: bool = True
    transactional_id: str = ""
    transaction_timeout_ms: int = 10_000
    abort_share: float = 0.2
    input: str = ""
    group: str = ""
    instance_id: str | None = None
    assignor: str = ""
    session_timeout_ms: int = 6_000
    rebalance_timeout_ms: int = 5_000
    read_committed: bool = True
    habits: list[Habit] = []


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action on the cluster by its name, or one of `OWN_STEPS`, at `at_ms` since the start."""

    at_ms: int
    do: str
    arguments: dict[str, Any] = {}


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One simulation. `seed` decides all random choices of the run."""

    seed: int
    settings: Settings = Settings()
    clients: list[ClientSettings] = []
    steps: list[Step] = []
    format: int = FORMAT

    def to_json(self) -> str:
        """The plan as JSON, which `read` reads."""
        data = {"format": self.format, **msgspec.to_builtins(self)}
        return json.dumps(data, indent=2) + "\n"


T = TypeVar("T")


def parse(data: object) -> Plan:
    """A plan from plain data. Raises PlanError with the field and the reason."""
    if not isinstance(data, dict):
        raise PlanError("a plan is an object with seed, settings, clients and steps")
    found = data.get("format", FORMAT)
    if found != FORMAT:
        raise PlanError(
            f"the plan is of format {found!r}, and this version reads {FORMAT}: run it with the "
            "version of mockbroker that wrote it, or simulate its seed again"
        )
    _check_names(data)
    try:
        plan = msgspec.convert(data, Plan)
    except msgspec.ValidationError as error:
        raise PlanError(str(error)) from None
    check(plan)
    return plan


def read(path: Path) -> Plan:
    """The plan in a JSON or YAML file. Raises PlanError."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PlanError(f"{path} is no text in UTF-8") from None
    try:
        if path.suffix in (".yaml", ".yml"):
            (data,) = read_yaml(text) or [None]
        else:
            data = msgspec.json.decode(text)
    except (
        ValueError,
        msgspec.DecodeError,
        RecursionError,
    ) as error:  # of either parser, or several documents
        raise PlanError(f"{path} is neither JSON nor YAML: {error}") from None
    try:
        return parse(data)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from None


def _check_names(data: dict[str, Any]) -> None:
    """Refuse unknown fields, which msgspec would ignore."""
    parts: list[tuple[str, object, type[msgspec.Struct]]] = [
        ("", data, Plan),
        ("settings", data.get("settings"), Settings),
    ]
    settings = data.get("settings")
    topics = settings.get("topics") if isinstance(settings, dict) else None
    lists: list[tuple[str, object, type[msgspec.Struct]]] = [
        ("settings.topics", topics, TopicSettings),
        ("clients", data.get("clients"), ClientSettings),
        ("steps", data.get("steps"), Step),
    ]
    for name, items, type_ in lists:
        if isinstance(items, list):
            parts += [(f"{name}[{n}]", item, type_) for n, item in enumerate(items)]
    for path, part, type_ in parts:
        if isinstance(part, dict):
            for name in part:
                if name not in type_.__struct_fields__:
                    hint = nearest(str(name), type_.__struct_fields__)
                    raise PlanError(f"{path or 'plan'}: unknown field {name!r}{hint}")


def check(plan: Plan) -> None:
    """Raise PlanError for a name that does not exist."""
    settings = plan.settings
    try:
        profile_of(settings.kafka_version)
        for client in plan.clients:
            profile_of(client.release)
    except ConfigError as error:
        raise PlanError(str(error)) from None
    if settings.brokers < 1:
        raise PlanError("settings.brokers: a cluster has at least one broker")
    names = [client.name for client in plan.clients]
    for number, client in enumerate(plan.clients):
        if client.name in names[:number]:
            raise PlanError(f"clients[{number}].name: there are two clients {client.name!r}")
        known = {topic.name for topic in settings.topics}
        for topic in (*client.topics, *([client.input] if client.input else ())):
            if topic not in known:
                hint = nearest(topic, known)
                raise PlanError(f"clients[{number}]: there is no topic {topic!r}{hint}")
    for number, step in enumerate(plan.steps):
        _check_step(step, f"steps[{number}]", names)


def _check_step(step: Step, path: str, clients: list[str]) -> None:
    try:
        if step.do == ADD_RULE:
            parse_rules(step.arguments, "rule")
        elif step.do == CRASH_CLIENT:
            name = step.arguments.get("client")
            if name not in clients:
                raise PlanError(f"{path}: there is no client {name!r}{nearest(str(name), clients)}")
        elif step.do == LOSE_MESSAGES:
            one_in = step.arguments.get("one_in", 0)
            if not isinstance(one_in, int) or one_in < 0:
                raise PlanError(
                    f"{path}: one_in is a number of messages, 0 for none, not {one_in!r}"
                )
        elif step.do not in OWN_STEPS:
            parse_action(step.do, step.arguments)
    except ValidationError as error:
        raise PlanError(f"{path}: {error}") from None
