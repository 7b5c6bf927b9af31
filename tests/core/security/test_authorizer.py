"""The StandardAuthorizer's rules: what a set of bindings comes to."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ConfigError
from mockbroker.core.security.acls import (
    AclOperation,
    AclPermissionType,
    AclStore,
    PatternType,
    ResourceType,
)
from mockbroker.core.security.authorizer import (
    STANDARD_AUTHORIZER,
    StandardAuthorizer,
    configured,
    java_host,
    parse_principals,
)
from tests.core.security.test_acls import binding
from tests.support.traced import traced

O, P, R = AclOperation, PatternType, ResourceType  # noqa: E741
DENY = AclPermissionType.DENY
HERE = "127.0.0.1"


def authorizer(*bindings: object, allow_everyone: bool = False) -> StandardAuthorizer:
    store = AclStore()
    made = StandardAuthorizer(store, ["User:root"], allow_everyone_if_no_acl_found=allow_everyone)
    store.add(*bindings)  # type: ignore[arg-type]
    return made


def may(judge: StandardAuthorizer, operation: AclOperation, name: str = "orders") -> bool:
    return judge.allows("User:alice", HERE, operation, R.TOPIC, name)


def test_results_for_long_names_are_not_kept():
    """A client may ask for groups whose names have 32 KiB."""
    judge = authorizer(binding())
    with traced() as memory:
        for number in range(200):
            assert not judge.allows("User:eve", HERE, O.READ, R.GROUP, f"{number:032000}")
    assert memory.kept < 1 << 20


def test_what_nothing_speaks_of_is_denied() -> None:
    judge = authorizer()
    assert not may(judge, O.READ)
    assert judge.allows("User:root", HERE, O.READ, R.TOPIC, "orders")


def test_everyone_may_where_no_binding_covers_the_resource() -> None:
    judge = authorizer(binding(principal="User:bob"), allow_everyone=True)
    assert may(judge, O.READ, "other")
    assert not may(judge, O.READ, "orders"), "bob's binding covers it"
    assert judge.allows("User:bob", HERE, O.READ, R.TOPIC, "orders")


IMPLIED = {
    O.READ: {O.READ, O.DESCRIBE},
    O.WRITE: {O.WRITE, O.DESCRIBE},
    O.DELETE: {O.DELETE, O.DESCRIBE},
    O.ALTER: {O.ALTER, O.DESCRIBE},
    O.DESCRIBE: {O.DESCRIBE},
    O.CREATE: {O.CREATE},
    O.ALTER_CONFIGS: {O.ALTER_CONFIGS, O.DESCRIBE_CONFIGS},
    O.DESCRIBE_CONFIGS: {O.DESCRIBE_CONFIGS},
    O.CLUSTER_ACTION: {O.CLUSTER_ACTION},
}
ASKED = [o for o in O if o not in (O.UNKNOWN, O.ANY, O.ALL)]


@pytest.mark.parametrize("given", IMPLIED, ids=lambda o: o.name)
def test_some_operations_imply_others_when_allowed(given: AclOperation) -> None:
    judge = authorizer(binding(operation=given))
    assert {asked for asked in ASKED if may(judge, asked)} == IMPLIED[given]


@pytest.mark.parametrize("given", IMPLIED, ids=lambda o: o.name)
def test_a_denial_implies_nothing(given: AclOperation) -> None:
    judge = authorizer(binding(operation=O.ALL), binding(operation=given, permission=DENY))
    assert [asked for asked in ASKED if not may(judge, asked)] == [given]


def test_all_stands_for_every_operation() -> None:
    assert all(may(authorizer(binding(operation=O.ALL)), asked) for asked in ASKED)
    judge = authorizer(binding(operation=O.ALL, permission=DENY), binding(operation=O.READ))
    assert not any(may(judge, asked) for asked in ASKED)


@pytest.mark.parametrize(
    "denial",
    [
        binding(permission=DENY),
        binding("ord", pattern=P.PREFIXED, permission=DENY),
        binding("*", permission=DENY),
        binding(principal="User:*", permission=DENY),
        binding(host=HERE, permission=DENY),
    ],
    ids=str,
)
def test_a_denial_that_fits_outweighs_whatever_is_allowed(denial: object) -> None:
    allowed = [binding(), binding("*"), binding("orders", pattern=P.PREFIXED)]
    assert not may(authorizer(*allowed, denial), O.READ)
    assert may(authorizer(*allowed), O.READ)


@pytest.mark.parametrize(
    "elsewhere",
    [
        binding("orders-eu"),
        binding("orders-", pattern=P.PREFIXED),
        binding(kind=R.GROUP),
        binding(principal="User:bob"),
        binding(host="10.0.0.1"),
        binding("ord"),
    ],
    ids=str,
)
def test_a_binding_that_does_not_fit_allows_nothing(elsewhere: object) -> None:
    assert not may(authorizer(elsewhere), O.READ)


def test_a_change_holds_at_once() -> None:
    store = AclStore()
    judge = StandardAuthorizer(store)
    assert not may(judge, O.READ)
    store.add(binding())
    assert may(judge, O.READ)
    store.remove([binding()])
    assert not may(judge, O.READ)


# -- any resource of a type ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bindings", "allowed"),
    [
        ([], False),
        ([binding()], True),
        ([binding("ord", pattern=P.PREFIXED)], True),
        ([binding("*")], True),
        ([binding(operation=O.ALL)], True),
        ([binding(operation=O.DESCRIBE)], False),
        ([binding(principal="User:bob")], False),
        ([binding(principal="User:*")], True),
        ([binding(kind=R.GROUP)], False),
        ([binding(), binding(permission=DENY)], False),
        ([binding(), binding("ord", pattern=P.PREFIXED, permission=DENY)], False),
        ([binding(), binding("orders-", pattern=P.PREFIXED, permission=DENY)], True),
        ([binding("or", pattern=P.PREFIXED), binding("or", permission=DENY)], True),
        (
            [
                binding("ord", pattern=P.PREFIXED),
                binding("o", pattern=P.PREFIXED, permission=DENY),
            ],
            False,
        ),
        ([binding("*"), binding(permission=DENY)], True),
        ([binding(), binding("*", permission=DENY)], False),
    ],
)
def test_whether_some_topic_may_be_read(bindings: list[object], allowed: bool) -> None:
    judge = authorizer(*bindings)
    assert judge.allows_on_any("User:alice", HERE, O.READ, R.TOPIC) is allowed


def test_super_users_and_the_default_hold_for_any_resource_as_well() -> None:
    judge = authorizer(binding("*", permission=DENY, principal="User:*"))
    assert judge.allows_on_any("User:root", HERE, O.WRITE, R.TOPIC)
    judge = authorizer(allow_everyone=True)
    assert judge.allows_on_any("User:alice", HERE, O.WRITE, R.TOPIC)


# -- configuration ---------------------------------------------------------------------------------


def test_a_cluster_has_an_authorizer_only_when_configured() -> None:
    assert Cluster(seed=1).authorizer is None
    cluster = Cluster(
        seed=1,
        configs={
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:root; User:CN=me,O=us ;",
            "allow.everyone.if.no.acl.found": "TRUE",
        },
    )
    assert cluster.authorizer is not None
    assert cluster.authorizer.super_users == {"User:root", "User:CN=me,O=us"}
    assert may(cluster.authorizer, O.READ)
    cluster.acls.add(binding(principal="User:bob"))
    assert not may(cluster.authorizer, O.READ)


@pytest.mark.parametrize(
    ("configs", "word"),
    [
        ({"authorizer.class.name": "com.example.Mine"}, STANDARD_AUTHORIZER),
        ({"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "root"}, "'root'"),
        ({"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:"}, "'User:'"),
    ],
)
def test_an_authorizer_that_cannot_be_is_refused(configs: dict[str, str], word: str) -> None:
    with pytest.raises(ConfigError, match=r"super\.users|authorizer\.class") as refused:
        configured(configs, AclStore())
    assert word in str(refused.value)


def test_super_users_without_an_authorizer_are_of_no_account() -> None:
    assert configured({"super.users": "root"}, AclStore()) is None


def test_principals_are_parted_by_semicolons() -> None:
    assert parse_principals(" User:a,b ;; User:c ") == ["User:a,b", "User:c"]
    assert parse_principals("") == []


@pytest.mark.parametrize(
    ("host", "written"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff", "2001:db8:0:0:0:0:0:ff"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ],
)
def test_hosts_are_written_as_java_writes_them(host: str, written: str) -> None:
    assert java_host(host) == written
