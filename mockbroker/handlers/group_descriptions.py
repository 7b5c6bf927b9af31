"""The common part of the descriptions of consumer, share and streams groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker.handlers.authorization import AuthHelper, split
from mockbroker.handlers.rows import Rows
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.groups.modern.runner import ModernRunner
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.handlers.base import RequestContext


GROUP_ROWS = Rows("group_ids", "groups", first=frozenset({ErrorCode.GROUP_AUTHORIZATION_FAILED}))


class DescribeRequest(Protocol):
    """ConsumerGroupDescribe, ShareGroupDescribe or StreamsGroupDescribe."""

    group_ids: list[str]
    include_authorized_operations: bool


class Description(NamedTuple):
    """How groups of one type are described: the class of a row, the runner of a shard, and the row
    of a group. `topics` are those that the client must be authorized to describe; else the row has
    the error with the message `unseen`.
    """

    row: Callable[..., Any]
    runner: Callable[[GroupShard], ModernRunner[Any, Any]]
    describe: Callable[[GroupShard, Any], Any]
    topics: Callable[[Any], Iterable[str]]
    unseen: str
    explains_coordinator: bool = False  # whether an error of the coordinator has its message


def described(ctx: RequestContext, request: DescribeRequest, how: Description) -> list[Any]:
    """The rows of a description; groups that the client may not describe come first."""
    auth = AuthHelper(ctx)
    granted, denied = split(request.group_ids, lambda each: auth.group(AclOperation.DESCRIBE, each))
    rows = refused(denied, how, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    for group_id in granted:
        row = _described(auth, group_id, how)
        if request.include_authorized_operations and row.error_code == ErrorCode.NONE:
            row.authorized_operations = auth.operations(ResourceType.GROUP, group_id)
        rows.append(row)
    return rows


def refused(group_ids: Iterable[str], how: Description, error: ErrorCode) -> list[Any]:
    """A row with the error for each group."""
    return [how.row(group_id=each, error_code=error) for each in group_ids]


def _described(auth: AuthHelper, group_id: str, how: Description) -> Any:
    if not group_id:
        return how.row(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    shard = auth.ctx.broker.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        explained = {"error_message": shard.message} if how.explains_coordinator else {}
        return how.row(group_id=group_id, error_code=shard, **explained)
    runner = how.runner(shard)
    group = runner.get(group_id)
    if group is None:
        missing = runner.not_found(group_id, f"Group {group_id} not found.")
        return how.row(group_id=group_id, error_code=missing.error, error_message=missing.message)
    row = how.describe(shard, group)
    if all(auth.topic(AclOperation.DESCRIBE, name) for name in how.topics(row)):
        return row
    return how.row(
        group_id=group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message=how.unseen,
    )
