"""Access control lists (KIP-140, KIP-290).

A *binding* allows or denies one *operation* on resources to one principal from one host. Its
*pattern* covers the resource of that name (LITERAL), all resources with that prefix (PREFIXED), or
all of the type (LITERAL `*`). A *filter* selects bindings; its empty fields match anything.

The numbers are those of the protocol. The authorizer evaluates the bindings (`authorizer`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Self

from msgspec import Struct

WILDCARD = "*"
CLUSTER_NAME = "kafka-cluster"
ANY_USER = "User:*"


class _Numbered(IntEnum):
    """Numbers of the protocol; any other number is 0, UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> Self:  # noqa: ARG003
        return cls(0)


class ResourceType(_Numbered):
    """The type of a resource; UNKNOWN is any other number."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Numbered):
    """The type of a pattern. ANY and MATCH are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Numbered):
    """An operation. ANY is for filters only, ALL for bindings."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(_Numbered):
    """Whether a binding allows or denies. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(Struct, frozen=True, order=True):
    """One rule. `principal` is `User:name` or `User:*`, `host` an address or `*`."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermissionType

    def __str__(self) -> str:
        return (
            f"{self.permission.name} {self.principal} from {self.host} to {self.operation.name}"
            f" {self.resource_type.name}:{self.pattern_type.name}:{self.resource_name}"
        )


class AclFilter(Struct, frozen=True):
    """A filter. None and ANY match anything; MATCH matches the bindings that apply to a name."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermissionType = AclPermissionType.ANY

    def matches(self, acl: AclBinding) -> bool:
        """Whether the filter matches a binding."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (AclPermissionType.ANY, acl.permission)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: AclBinding) -> bool:
        wanted, name = self.pattern_type, self.resource_name
        if wanted not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if name is None:
            return True
        if wanted is not PatternType.MATCH:
            return name == acl.resource_name
        if acl.pattern_type is PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name in (name, WILDCARD)


class AclStore:
    """The bindings of a cluster, in the order of their creation. `on_change` is called after each
    change.
    """

    __slots__ = ("_bindings", "_literal", "_prefixed", "on_change")

    def __init__(self) -> None:
        self._bindings: dict[AclBinding, None] = {}
        self._literal: dict[tuple[ResourceType, str], dict[AclBinding, None]] = {}
        self._prefixed: dict[ResourceType, dict[AclBinding, None]] = {}
        self.on_change: list[Callable[[], None]] = []

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(self._bindings)

    def __contains__(self, acl: object) -> bool:
        return acl in self._bindings

    def __len__(self) -> int:
        return len(self._bindings)

    def add(self, *bindings: AclBinding) -> None:
        """Add bindings that do not exist yet."""
        for acl in bindings:
            if acl not in self._bindings:
                self._bindings[acl] = None
                self._section(acl)[acl] = None
        self._changed()

    def find(self, wanted: AclFilter) -> list[AclBinding]:
        """The bindings that a filter matches."""
        return [acl for acl in self._bindings if wanted.matches(acl)]

    def remove(self, bindings: Iterable[AclBinding]) -> None:
        """Remove those of the bindings that exist."""
        removed = False
        for acl in bindings:
            if acl in self._bindings:
                del self._bindings[acl], self._section(acl)[acl]
                removed = True
        if removed:
            self._changed()

    def replace(self, bindings: Iterable[AclBinding]) -> None:
        """Replace all bindings, as after a restore of a snapshot."""
        self._bindings.clear()
        self._literal.clear()
        self._prefixed.clear()
        self.add(*bindings)

    def of_type(self, kind: ResourceType) -> list[AclBinding]:
        """The bindings on resources of one type."""
        return [acl for acl in self._bindings if acl.resource_type is kind]

    def applying_to(self, kind: ResourceType, name: str) -> Iterator[AclBinding]:
        """The bindings whose pattern covers a resource."""
        yield from self._literal.get((kind, name), ())
        if name != WILDCARD:
            yield from self._literal.get((kind, WILDCARD), ())
        for acl in self._prefixed.get(kind, ()):
            if name.startswith(acl.resource_name):
                yield acl

    def _section(self, acl: AclBinding) -> dict[AclBinding, None]:
        if acl.pattern_type is PatternType.PREFIXED:
            return self._prefixed.setdefault(acl.resource_type, {})
        return self._literal.setdefault((acl.resource_type, acl.resource_name), {})

    def _changed(self) -> None:
        for observer in self.on_change:
            observer()
