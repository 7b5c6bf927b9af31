"""What the three ACL APIs have in common: their codes as operations, patterns and permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.security.acls import (
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

if TYPE_CHECKING:
    from mockbroker_protocol.messages.delete_acls import DeleteAclsFilter
    from mockbroker_protocol.messages.describe_acls import DescribeAclsRequest

NO_AUTHORIZER = "The brokers have no authorizer."
UNKNOWN = 0


def has_unknown(*codes: int) -> bool:
    """Whether a request says UNKNOWN where it has to say something.

    Kafka's request classes do not parse such requests, so the connection is closed.
    """
    return UNKNOWN in codes


def filter_of(wanted: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """The filter that a request asks with; codes that nobody knows match nothing."""
    return AclFilter(
        ResourceType(wanted.resource_type_filter),
        wanted.resource_name_filter,
        PatternType(wanted.pattern_type_filter),
        wanted.principal_filter,
        wanted.host_filter,
        Operation(wanted.operation),
        Permission(wanted.permission_type),
    )


def filter_codes(wanted: DescribeAclsRequest | DeleteAclsFilter) -> tuple[int, ...]:
    """The codes in a filter."""
    return (
        wanted.resource_type_filter,
        wanted.pattern_type_filter,
        wanted.operation,
        wanted.permission_type,
    )
