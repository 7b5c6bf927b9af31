"""The operations of each resource type, and their bit fields in responses.

A bit field has `1 << code` for each operation (AclEntry.supportedOperations). Without an authorizer
all operations are allowed.
"""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation, ResourceType

NOT_ASKED = -(2**31)

_O = AclOperation
SUPPORTED: dict[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        _O.READ,
        _O.WRITE,
        _O.CREATE,
        _O.DELETE,
        _O.ALTER,
        _O.DESCRIBE,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        _O.READ,
        _O.DELETE,
        _O.DESCRIBE,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        _O.CREATE,
        _O.ALTER,
        _O.DESCRIBE,
        _O.CLUSTER_ACTION,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
        _O.IDEMPOTENT_WRITE,
    ),
}


def bits(*operations: AclOperation) -> int:
    """The bit field of a set of operations."""
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = bits(*SUPPORTED[ResourceType.TOPIC])
CLUSTER_OPERATIONS = bits(*SUPPORTED[ResourceType.CLUSTER])
