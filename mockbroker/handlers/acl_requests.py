"""Shared parts of the three ACL APIs: their codes as operations, patterns and permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.security.acls import (
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)

if TYPE_CHECKING:
    from mockbroker_protocol.messages.delete_acls import DeleteAclsFilter
    from mockbroker_protocol.messages.describe_acls import DescribeAclsRequest

NO_AUTHORIZER = "No Authorizer is configured."
UNKNOWN = 0


def has_unknown(*codes: int) -> bool:
    """Whether a code is UNKNOWN. Kafka does not parse such a request, so the connection closes."""
    return UNKNOWN in codes


def filter_of(wanted: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """The filter of a request; unknown codes match nothing."""
    return AclFilter(
        ResourceType(wanted.resource_type_filter),
        wanted.resource_name_filter,
        PatternType(wanted.pattern_type_filter),
        wanted.principal_filter,
        wanted.host_filter,
        AclOperation(wanted.operation),
        AclPermissionType(wanted.permission_type),
    )


def filter_codes(wanted: DescribeAclsRequest | DeleteAclsFilter) -> tuple[int, ...]:
    """The codes in a filter."""
    return (
        wanted.resource_type_filter,
        wanted.pattern_type_filter,
        wanted.operation,
        wanted.permission_type,
    )
