"""The ACL APIs themselves."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from mockbroker_protocol.messages.create_acls import AclCreation, CreateAclsRequest
from mockbroker_protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from mockbroker_protocol.messages.describe_acls import DescribeAclsRequest
from tests.differential.secured.session import ANY, AclSession, case
from tests.differential.session import ANSWER_TIMEOUT_S

O, P, R = AclOperation, PatternType, ResourceType  # noqa: E741
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
NONSENSE = 77


def creation(
    name: str,
    kind: int = R.TOPIC,
    pattern: int = P.LITERAL,
    principal: str = "User:carol",
    operation: int = O.READ,
    permission: int = ALLOW,
    host: str = "*",
) -> AclCreation:
    return AclCreation(kind, name, pattern, principal, host, operation, permission)


def describe(
    name: str | None,
    pattern: int = P.LITERAL,
    kind: int = R.TOPIC,
    principal: str | None = None,
    host: str | None = None,
    operation: int = ANY,
    permission: int = ANY,
) -> DescribeAclsRequest:
    return DescribeAclsRequest(kind, name, pattern, principal, host, operation, permission)


def create(session: AclSession, *creations: AclCreation, version: int = 3) -> None:
    session.ask(CreateAclsRequest(list(creations)), version, "admin")
    session.settle()


@case
def acls_are_created_and_described(session: AclSession) -> None:
    name = session.name
    create(
        session,
        creation(name),
        creation(name),
        creation(name, operation=O.WRITE, principal="User:dave", host="10.0.0.1"),
        creation(name, permission=DENY),
        creation(f"{name}-", pattern=P.PREFIXED),
        creation(name, R.GROUP),
        creation(name, R.TRANSACTIONAL_ID, operation=O.ALL),
        creation(f"User:{name}", R.USER, operation=O.CREATE_TOKENS),
        creation(name, R.DELEGATION_TOKEN, operation=O.DESCRIBE),
    )
    for version in (1, 2, 3):
        session.ask(describe(name), version, "admin")
    session.ask(describe(f"{name}-x", P.MATCH), 3, "admin")
    session.ask(describe(name, P.MATCH), 3, "admin")
    session.ask(describe(f"{name}-", ANY), 3, "admin")
    session.ask(describe(f"{name}-", P.PREFIXED), 3, "admin")
    session.ask(describe(name, kind=ANY), 3, "admin")
    session.ask(describe(f"User:{name}", kind=R.USER), 3, "admin")
    session.ask(describe(None, ANY, principal="User:dave"), 3, "admin")
    session.ask(describe(name, host="10.0.0.1"), 3, "admin")
    session.ask(describe(name, operation=O.READ, permission=DENY), 3, "admin")
    session.ask(describe("nothing"), 3, "admin")


@case
def acls_with_a_wildcard(session: AclSession) -> None:
    create(session, creation("*"), creation("*", pattern=P.PREFIXED, principal="User:*"))
    session.ask(describe("*"), 3, "admin")
    session.ask(describe("anything", P.MATCH, principal="User:carol"), 3, "admin")
    session.ask(describe("*x", P.MATCH), 3, "admin")
    session.ask(describe("x", P.MATCH, principal="User:*"), 3, "admin")


@case
def acls_that_make_no_sense(session: AclSession) -> None:
    name = session.name
    for each in (
        creation(""),
        creation("", R.GROUP),
        creation("other", R.CLUSTER),
        creation("kafka-cluster", R.CLUSTER),
        creation(name, ANY),
        creation(name, NONSENSE),
        creation(name, pattern=P.MATCH),
        creation(name, pattern=ANY),
        creation(name, pattern=NONSENSE),
        creation(name, operation=ANY),
        creation(name, operation=NONSENSE),
        creation(name, permission=ANY),
        creation(name, permission=NONSENSE),
        creation(name, R.CLUSTER),
        creation(name, operation=O.CLUSTER_ACTION),
        creation(name, host=""),
        creation(name, R.GROUP, operation=O.IDEMPOTENT_WRITE),
    ):
        session.ask(CreateAclsRequest([each]), 3, "admin", label=repr(each))
    session.settle()
    session.ask(describe(name, kind=ANY), 3, "admin")
    session.ask(describe("kafka-cluster", kind=R.CLUSTER), 3, "admin")


@case
def acls_of_principals_that_are_none(session: AclSession) -> None:
    name = session.name
    for principal in ("carol", "", "User:", ":carol", "Group:staff", "User:a:b"):
        create(session, creation(name, principal=principal))
    session.ask(describe(name), 3, "admin")


@case
def acls_with_unknown_parts_are_not_even_parsed(session: AclSession) -> None:
    name = session.name
    session.ask(CreateAclsRequest([creation(name, 0)]), 3, "admin")
    session.ask(CreateAclsRequest([creation(name), creation(name, pattern=0)]), 2, "admin")
    session.ask(CreateAclsRequest([creation(name, operation=0)]), 1, "admin")
    session.ask(CreateAclsRequest([creation(name, permission=0)]), 3, "admin")
    session.ask(describe(name, kind=0), 3, "admin")
    session.ask(describe(name, 0), 3, "admin")
    session.ask(describe(name, operation=0), 3, "admin")
    session.ask(describe(name, permission=0), 3, "admin")
    wanted = DeleteAclsFilter(R.TOPIC, name, P.LITERAL, None, None, ANY, 0)
    session.ask(DeleteAclsRequest([wanted]), 3, "admin")
    session.ask(describe(name), 3, "admin")


@case
def acls_are_described_by_codes_that_nobody_knows(session: AclSession) -> None:
    create(session, creation(session.name))
    session.ask(describe(session.name, kind=NONSENSE), 3, "admin")
    session.ask(describe(session.name, NONSENSE), 3, "admin")
    session.ask(describe(session.name, operation=NONSENSE), 3, "admin")
    session.ask(describe(session.name, permission=NONSENSE), 3, "admin")


@case
def acls_are_deleted(session: AclSession) -> None:
    name = session.name
    create(
        session,
        creation(name),
        creation(name, operation=O.WRITE),
        creation(f"{name}-", pattern=P.PREFIXED),
        creation(name, R.GROUP),
    )

    def wanted(text: str | None, pattern: int, operation: int = ANY) -> DeleteAclsFilter:
        return DeleteAclsFilter(R.TOPIC, text, pattern, None, None, operation, ANY)

    filters = [
        wanted(name, P.LITERAL, O.READ),
        wanted(name, P.LITERAL),
        wanted("nothing", P.LITERAL),
        wanted(name, NONSENSE),
        wanted(name, P.LITERAL, NONSENSE),
    ]
    session.ask(DeleteAclsRequest(filters), 3, "admin")
    session.settle()
    session.ask(describe(None, ANY), 3, "admin")
    session.ask(DeleteAclsRequest([wanted(f"{name}-x", P.MATCH)]), 2, "admin")
    session.settle()
    session.ask(describe(name, ANY, kind=ANY), 3, "admin")
    session.ask(DeleteAclsRequest([]), 1, "admin")


@case
def acls_are_not_for_everyone(session: AclSession) -> None:
    wanted = DeleteAclsFilter(R.TOPIC, None, P.LITERAL, None, None, ANY, ANY)
    for version in (1, 2, 3):
        session.ask(CreateAclsRequest([creation("a"), creation("b")]), version)
        session.ask(describe(None), version)
        session.ask(DeleteAclsRequest([wanted, wanted]), version)
    session.allow(O.DESCRIBE, R.CLUSTER)
    session.ask(describe("a"), 3)
    session.ask(CreateAclsRequest([creation("a")]), 3)
    session.allow(O.ALTER, R.CLUSTER)
    session.ask(CreateAclsRequest([creation("a")]), 3)


@case
def very_many_acls_are_not_created_together(session: AclSession) -> None:
    """A real broker takes minutes to create 10,000; so they are only refused here. That takes it
    many seconds of a core.
    """
    many = [creation(session.name, principal=f"User:{number}") for number in range(10_001)]
    session.connection("admin").timeout_s = 5 * ANSWER_TIMEOUT_S
    session.ask(CreateAclsRequest(many), 3, "admin")
