"""What each API asks of the authorizer, read off the guards that ask it."""

from __future__ import annotations

from collections.abc import Iterator

from api_coverage import kafka_name
from markdown import page as join
from markdown import table

from mockbroker.core.security.acls import Operation, ResourceType
from mockbroker.core.security.authorized_operations import SUPPORTED
from mockbroker.handlers import load_all
from mockbroker.handlers.authorization import GUARDS, OPEN
from mockbroker.handlers.authorization import load_all as load_guards
from mockbroker.handlers.authorization.access import Rule
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey

INTRO = """
# What each API asks for

Made from the guards that stand in front of the handlers when the cluster has an
[authorizer](../security.md#acls); a test compares what they say with what they ask. The answers are
compared, request by request, with those of a real broker.
"""

NAMES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
}
IMPLIED = [
    (Operation.READ, Operation.DESCRIBE),
    (Operation.WRITE, Operation.DESCRIBE),
    (Operation.DELETE, Operation.DESCRIBE),
    (Operation.ALTER, Operation.DESCRIBE),
    (Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS),
]


def page() -> str:
    load_all()
    load_guards()
    return join(
        INTRO,
        table(("API", "needs", "of which", "otherwise"), rows()),
        "## Without a guard",
        table(("API", "who may"), [(kafka_name(k), OPEN[k]) for k in OPEN if int(k) in APIS]),
        "## What is allowed along with it",
        "ALL stands for every operation. Beyond that, to allow the one is to allow the other; to "
        "deny it is not.",
        table(("allowed", "implied"), [(given.name, also.name) for given, also in IMPLIED]),
        "## Operations by resource",
        "What answers with authorized operations can tell of.",
        table(
            ("resource", "operations"),
            [
                (NAMES[kind], ", ".join(operation.name for operation in sorted(known)))
                for kind, known in SUPPORTED.items()
            ],
        ),
    )


def rows() -> Iterator[tuple[str, str, str, str]]:
    for number in sorted(APIS):
        guard = GUARDS.get(ApiKey(number))
        if guard is not None:
            for place, rule in enumerate(guard.rules):
                name = "" if place else kafka_name(ApiKey(number))
                yield name, _needs(rule), rule.about, rule.otherwise


def _needs(rule: Rule) -> str:
    return " or ".join(
        f"{need.operation.name} on the {NAMES[need.resource]}" for need in rule.needs
    )
