"""Actions on ACLs and quotas."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

import msgspec

from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker.core.security.acls import (
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from mockbroker.core.validation import nearest

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState

E = TypeVar("E", bound=IntEnum)
_ENTITIES = (("user", "user"), ("client-id", "client_id"), ("ip", "ip"))


class RevokeAcl(msgspec.Struct, frozen=True, kw_only=True):
    """The ACL bindings to remove; a field that is not given matches any."""

    principal: str | None = None
    host: str | None = None
    resource_type: str | None = None
    resource_name: str | None = None
    pattern_type: str | None = None
    operation: str | None = None
    permission: str | None = None


class SetQuota(msgspec.Struct, frozen=True, kw_only=True):
    """The quota of a user, a client id, both, or an address; "" is the default entity. The value
    null removes the quota.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
    key: str
    value: float | None = None


class SecurityActions:
    """Actions on ACLs and quotas."""

    @action(RevokeAcl)
    @staticmethod
    def revoke_acl(cluster: ClusterState, wanted: RevokeAcl) -> int:
        """Remove ACL bindings; returns their number."""
        removed = cluster.acls.find(
            AclFilter(
                resource_type=_member(ResourceType, wanted.resource_type, "resource_type"),
                resource_name=wanted.resource_name,
                pattern_type=_member(PatternType, wanted.pattern_type, "pattern_type"),
                principal=wanted.principal,
                host=wanted.host,
                operation=_member(AclOperation, wanted.operation, "operation"),
                permission=_member(AclPermissionType, wanted.permission, "permission"),
            )
        )
        if not removed:
            shown = "; ".join(map(str, cluster.acls)) or "none"
            raise ActionError(f"no ACL binding matches; there are: {shown}")
        cluster.acls.remove(removed)
        return len(removed)

    @action(SetQuota)
    @staticmethod
    def set_quota(cluster: ClusterState, wanted: SetQuota) -> None:
        """Set or remove one quota of one entity. Raises ApiError with AlterClientQuotas' error."""
        pairs = [
            (kind, getattr(wanted, field) or None)  # "" is the default entity, which has no name
            for kind, field in _ENTITIES
            if getattr(wanted, field) is not None
        ]
        if not pairs:
            raise ActionError("give user, client_id or ip")
        changes = {wanted.key: wanted.value}
        cluster.quotas.alter(entity_of(pairs), changes, validate_only=False)


def _member(kind: type[E], name: str | None, field: str) -> E:
    if name is None:
        return kind["ANY"]
    found = kind.__members__.get(name.upper())
    if found is None:
        known = [each.lower() for each in kind.__members__ if each not in ("UNKNOWN", "ANY")]
        raise ActionError(f"{field}: {name!r} is unknown{nearest(name, known)}")
    return found
