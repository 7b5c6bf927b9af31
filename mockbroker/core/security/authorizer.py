"""The authorizer: whether the ACLs allow a principal an operation on a resource, from a host.

The rules are those of Kafka's StandardAuthorizer, the only supported authorizer. A super user may
do everything. Otherwise the bindings of the principal, the host and the operation decide; DENY
takes precedence over ALLOW. Without a binding the operation is denied, unless no binding covers the
resource and `allow.everyone.if.no.acl.found` is set.

ALL means each operation. READ, WRITE, DELETE and ALTER imply DESCRIBE, and ALTER_CONFIGS implies
DESCRIBE_CONFIGS, but only with ALLOW.

Source: StandardAuthorizerData, Authorizer.authorizeByResourceType.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mockbroker.core.errors import ConfigError
from mockbroker.core.security.acls import (
    ANY_USER,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermissionType,
    AclStore,
    PatternType,
    ResourceType,
)

if TYPE_CHECKING:
    from collections.abc import Collection

CLASS_NAME = "authorizer.class.name"
SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"
# The configs of the authorizer, which are not broker configs.
CONFIGS = (SUPER_USERS, ALLOW_EVERYONE)
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

_O = AclOperation
# The operations whose ALLOW allows an operation; for other operations, the operation itself.
_IMPLIED_BY: dict[AclOperation, tuple[AclOperation, ...]] = {
    _O.DESCRIBE: (_O.DESCRIBE, _O.READ, _O.WRITE, _O.DELETE, _O.ALTER),
    _O.DESCRIBE_CONFIGS: (_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
}

# Cached results; the cache is cleared when a binding changes, and when it is full.
_CACHED_MAX = 20_000
# Results for longer names are not kept: topics have shorter ones, groups may have 32 Ki characters.
_CACHED_CHARS_MAX = 256

# (principal, host, operation, resource type, name)
_CacheKey = tuple[str, str, AclOperation, ResourceType, str]


class StandardAuthorizer:
    """The authorizer of one cluster's bindings. Principals are `User:name`, hosts addresses."""

    __slots__ = ("_acls", "_allow_by_default", "_cached", "super_users")

    def __init__(
        self,
        acls: AclStore,
        super_users: Collection[str] = (),
        *,
        allow_everyone_if_no_acl_found: bool = False,
    ) -> None:
        self.super_users = frozenset(super_users)
        self._acls = acls
        self._allow_by_default = allow_everyone_if_no_acl_found
        self._cached: dict[_CacheKey, bool] = {}
        acls.on_change.append(self._cached.clear)

    def allows(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        """Whether an operation on a resource is allowed."""
        key = (principal, host, operation, kind, name)
        known = self._cached.get(key)
        if known is not None:
            return known
        if len(name) > _CACHED_CHARS_MAX:
            return self._authorize(*key)
        if len(self._cached) >= _CACHED_MAX:
            self._cached.clear()
        allowed = self._cached[key] = self._authorize(*key)
        return allowed

    def _authorize(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        if principal in self.super_users:
            return True
        covered = allowed = False
        for acl in self._acls.applying_to(kind, name):
            covered = True
            if not _concerns(acl, principal, host):
                continue
            if acl.permission is AclPermissionType.DENY:
                if acl.operation in (_O.ALL, operation):
                    return False
            elif acl.operation is _O.ALL or acl.operation in _IMPLIED_BY.get(
                operation, (operation,)
            ):
                allowed = True
        return allowed or (not covered and self._allow_by_default)

    def allows_on_any(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        """Whether the operation may be allowed on a resource of the type (authorizeByResourceType).

        An idempotent producer needs one topic to which it may write (KIP-679).
        """
        # Kafka's name for the check of super users, wildcards and the default.
        if self.allows(principal, host, operation, kind, "hardcode"):
            return True
        allowed: list[AclBinding] = []
        denied: dict[PatternType, set[str]] = {
            PatternType.LITERAL: set(),
            PatternType.PREFIXED: set(),
        }
        for acl in self._acls.of_type(kind):
            if acl.operation not in (_O.ALL, operation) or not _concerns(acl, principal, host):
                continue
            if acl.permission is AclPermissionType.ALLOW:
                allowed.append(acl)
            else:
                denied[acl.pattern_type].add(acl.resource_name)
        if WILDCARD in denied[PatternType.LITERAL]:
            return False
        return any(_is_undenied(acl, denied) for acl in allowed)


def _concerns(acl: AclBinding, principal: str, host: str) -> bool:
    return acl.principal in (principal, ANY_USER) and acl.host in (host, WILDCARD)


def _is_undenied(acl: AclBinding, denied: Mapping[PatternType, set[str]]) -> bool:
    """Whether no DENY covers all resources of an ALLOW."""
    name = acl.resource_name
    if acl.pattern_type is PatternType.LITERAL:
        if name == WILDCARD:
            return True
        if name in denied[PatternType.LITERAL]:
            return False
    prefixes = denied[PatternType.PREFIXED]
    return not any(name[:length] in prefixes for length in range(1, len(name) + 1))


def parse_principals(text: str) -> list[str]:
    """Parse `super.users`: principals separated by semicolons. Raises ConfigError."""
    principals = [part.strip() for part in text.split(";") if part.strip()]
    for principal in principals:
        kind, colon, name = principal.partition(":")
        if not kind or not colon or not name:
            raise ConfigError(SUPER_USERS, f"{principal!r} is not a principal; write User:name")
    return principals


def configured(static: Mapping[str, str], acls: AclStore) -> StandardAuthorizer | None:
    """The authorizer of a cluster's configs, or None.

    Raises ConfigError for an unsupported class, and for super users that are not principals.
    """
    name = static.get(CLASS_NAME, "").strip()
    if name == STANDARD_AUTHORIZER:
        super_users = parse_principals(static.get(SUPER_USERS, ""))
        allow_everyone = static.get(ALLOW_EVERYONE, "").strip().lower() == "true"
        return StandardAuthorizer(acls, super_users, allow_everyone_if_no_acl_found=allow_everyone)
    if name:
        raise ConfigError(CLASS_NAME, f"the only supported authorizer is {STANDARD_AUTHORIZER}")
    return None


def java_host(host: str) -> str:
    """An address in the form of Java and of ACLs: IPv6 in full, without leading zeros."""
    if ":" not in host:
        return host
    from ipaddress import IPv6Address

    address = IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(part, 16):x}" for part in address.exploded.split(":"))
