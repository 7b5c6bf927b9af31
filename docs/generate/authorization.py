"""The ACLs that each API requires, from the contracts beside the handlers."""

from __future__ import annotations

from collections.abc import Iterator

from api_coverage import kafka_name
from markdown import page as join
from markdown import table

from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker.core.security.authorized_operations import SUPPORTED
from mockbroker.handlers import load_all
from mockbroker.handlers.authorization import AuthorizationRule
from mockbroker.handlers.base import APIS

INTRO = """
# The ACLs that each API requires

This page is made from the contracts of the APIs. They apply when the cluster has an
[authorizer](../howto/security.md#acls). A test compares the page with the checks, another one
compares the responses with those of a real broker.
"""

NAMES = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
}
IMPLIED = [
    (AclOperation.READ, AclOperation.DESCRIBE),
    (AclOperation.WRITE, AclOperation.DESCRIBE),
    (AclOperation.DELETE, AclOperation.DESCRIBE),
    (AclOperation.ALTER, AclOperation.DESCRIBE),
    (AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS),
]


def page() -> str:
    load_all()
    return join(
        INTRO,
        table(("API", "requires", "on which", "otherwise"), rows()),
        "## Without ACLs",
        table(("API", "why"), without_acls()),
        "## Implied operations",
        "ALL stands for every operation. An operation that is allowed implies another one; an "
        "operation that is denied does not.",
        table(("allowed", "implied"), [(given.name, also.name) for given, also in IMPLIED]),
        "## Operations by resource",
        "The operations that a response with authorized operations can contain.",
        table(
            ("resource", "operations"),
            [
                (NAMES[kind], ", ".join(operation.name for operation in sorted(known)))
                for kind, known in SUPPORTED.items()
            ],
        ),
    )


def rows() -> Iterator[tuple[str, str, str, str]]:
    for _, api in sorted(APIS.items()):
        for place, rule in enumerate(api.authorize.rules):
            name = "" if place else kafka_name(api.key)
            yield name, _acls(rule), rule.about, rule.otherwise


def without_acls() -> Iterator[tuple[str, str]]:
    for _, api in sorted(APIS.items()):
        if not api.authorize.rules:
            yield kafka_name(api.key), api.authorize.reason


def _acls(rule: AuthorizationRule) -> str:
    return " or ".join(f"{acl.operation.name} on the {NAMES[acl.resource]}" for acl in rule.acls)
