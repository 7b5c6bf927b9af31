"""The store of ACLs, and what filters find in it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.security.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermissionType,
    AclStore,
    PatternType,
    ResourceType,
)
from mockbroker.core.security.authorizer import StandardAuthorizer

O, P, R = AclOperation, PatternType, ResourceType  # noqa: E741


def binding(
    name: str = "orders",
    kind: ResourceType = R.TOPIC,
    pattern: PatternType = P.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    operation: AclOperation = O.READ,
    permission: AclPermissionType = AclPermissionType.ALLOW,
) -> AclBinding:
    return AclBinding(kind, name, pattern, principal, host, operation, permission)


ORDERS = binding()
PREFIX = binding("ord", pattern=P.PREFIXED)
ALL = binding("*", operation=O.WRITE)
GROUP = binding("orders", R.GROUP, principal="User:bob", host="10.0.0.1")


@pytest.fixture
def store() -> AclStore:
    store = AclStore()
    store.add(ORDERS, PREFIX, ALL, GROUP)
    return store


def test_a_binding_is_kept_once_and_in_order(store: AclStore) -> None:
    store.add(ORDERS, binding("other"))
    assert list(store) == [ORDERS, PREFIX, ALL, GROUP, binding("other")]
    assert len(store) == 5


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), [ORDERS, PREFIX, ALL, GROUP]),
        (AclFilter(R.TOPIC), [ORDERS, PREFIX, ALL]),
        (AclFilter(R.ANY, "orders"), [ORDERS, GROUP]),
        (AclFilter(R.TOPIC, "orders", P.LITERAL), [ORDERS]),
        (AclFilter(R.TOPIC, "orders", P.MATCH), [ORDERS, PREFIX, ALL]),
        (AclFilter(R.TOPIC, "ord", P.MATCH), [PREFIX, ALL]),
        (AclFilter(R.TOPIC, "or", P.MATCH), [ALL]),
        (AclFilter(R.TOPIC, None, P.PREFIXED), [PREFIX]),
        (AclFilter(R.TOPIC, "*"), [ALL]),
        (AclFilter(principal="User:bob"), [GROUP]),
        (AclFilter(host="10.0.0.1"), [GROUP]),
        (AclFilter(host="10.0.0.2"), []),
        (AclFilter(operation=O.WRITE), [ALL]),
        (AclFilter(permission=AclPermissionType.DENY), []),
        (AclFilter(R.UNKNOWN), []),
        (AclFilter(pattern_type=P.UNKNOWN), []),
        (AclFilter(operation=O.UNKNOWN), []),
        (AclFilter(operation=O.ALL), []),
    ],
)
def test_a_filter_finds(store: AclStore, wanted: AclFilter, found: list[AclBinding]) -> None:
    assert store.find(wanted) == found


def test_a_binding_is_looked_up_without_a_look_at_the_others(
    store: AclStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(AclStore, "__iter__")
    assert ORDERS in store
    store.remove([ORDERS])
    assert ORDERS not in store


def test_what_is_removed_applies_no_more(store: AclStore) -> None:
    assert list(store.applying_to(R.TOPIC, "orders")) == [ORDERS, ALL, PREFIX]
    store.remove(store.find(AclFilter(R.TOPIC, "orders", P.MATCH)))
    assert list(store.applying_to(R.TOPIC, "orders")) == []
    assert list(store) == [GROUP]


def test_prefixes_and_wildcards_apply_to_names_that_fit(store: AclStore) -> None:
    assert list(store.applying_to(R.TOPIC, "ordinary")) == [ALL, PREFIX]
    assert list(store.applying_to(R.TOPIC, "other")) == [ALL]
    assert list(store.applying_to(R.TOPIC, "*")) == [ALL]
    assert list(store.applying_to(R.GROUP, "ordinary")) == []


def test_observers_hear_of_changes_alone(store: AclStore) -> None:
    heard: list[int] = []
    store.on_change.append(lambda: heard.append(len(store)))
    store.remove([])
    assert heard == []
    store.remove([GROUP])
    store.remove([GROUP])
    store.replace([GROUP])
    assert heard == [3, 1]
    assert list(store) == [GROUP]


@pytest.mark.parametrize("kind", [ResourceType, PatternType, AclOperation, AclPermissionType])
def test_a_code_that_nobody_knows_is_unknown(kind: type[ResourceType]) -> None:
    assert kind(77) is kind.UNKNOWN
    assert kind(-1) is kind.UNKNOWN


def test_a_binding_reads_like_a_sentence() -> None:
    assert str(GROUP) == "ALLOW User:bob from 10.0.0.1 to READ GROUP:LITERAL:orders"


_NAMES = st.sampled_from(["*", "a", "ab", "abc", "b", ""])
_BINDINGS = st.builds(
    AclBinding,
    st.sampled_from([R.TOPIC, R.GROUP]),
    _NAMES,
    st.sampled_from([P.LITERAL, P.PREFIXED]),
    st.sampled_from(["User:alice", "User:*"]),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from([O.READ, O.WRITE, O.ALL]),
    st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
)


@given(st.lists(_BINDINGS, max_size=12), st.lists(_BINDINGS, max_size=4), _NAMES)
def test_what_applies_is_what_a_filter_of_kind_match_finds(
    added: list[AclBinding], removed: list[AclBinding], name: str
) -> None:
    """The index that requests are judged by agrees with a look at every binding."""
    store = AclStore()
    store.add(*added)
    for acl in removed:
        store.remove(store.find(AclFilter(acl.resource_type, acl.resource_name, acl.pattern_type)))
    found = list(store.applying_to(R.TOPIC, name))
    assert len(found) == len(set(found))
    assert set(found) == set(store.find(AclFilter(R.TOPIC, name, P.MATCH)))


@given(st.lists(_BINDINGS, max_size=8), st.randoms(use_true_random=False), _NAMES)
def test_the_order_of_bindings_is_of_no_account(
    bindings: list[AclBinding], random: Random, name: str
) -> None:
    shuffled = random.sample(bindings, len(bindings))
    verdicts = []
    for each in (bindings, shuffled):
        store = AclStore()
        judge = StandardAuthorizer(store)
        store.add(*each)
        verdicts.append(
            [
                judge.allows("User:alice", "10.0.0.1", operation, R.TOPIC, name)
                for operation in (O.READ, O.DESCRIBE, O.CREATE)
            ]
        )
    assert verdicts[0] == verdicts[1]
