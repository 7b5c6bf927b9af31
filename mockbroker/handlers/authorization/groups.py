"""Consumer groups: who may join them, see them, delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mockbroker.core.security.acls import Operation, ResourceType
from mockbroker.handlers.authorization.access import (
    GUARDS,
    Access,
    Go,
    Guard,
    after,
    cluster,
    group,
    guard,
    needs,
    split,
    topic,
    transactional_id,
)
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages import consumer_group_describe, describe_groups
from mockbroker_protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from mockbroker_protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from mockbroker_protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from mockbroker_protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from mockbroker_protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from mockbroker_protocol.messages.heartbeat import HeartbeatResponse
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from mockbroker_protocol.messages.leave_group import LeaveGroupResponse
from mockbroker_protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from mockbroker_protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Callable

O = Operation  # noqa: E741 - as in the tables of Kafka
GROUP_DENIED = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
TOPIC_DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
FIND_BATCHES_SINCE = 4
SHARE_SINCE = 6
NULL_PROTOCOL_SINCE = 7
PROTOCOL_NAMED_SINCE = 5
UNSEEN_TOPICS = "The group has topics that the client is not authorized to describe."

# -- members ---------------------------------------------------------------------------------------


def _join_refused(access: Access) -> JoinGroupResponse:
    name = "" if access.ctx.api_version < NULL_PROTOCOL_SINCE else None
    return JoinGroupResponse(error_code=GROUP_DENIED, generation_id=-1, protocol_name=name)


@guard(ApiKey.SYNC_GROUP, needs(group(O.READ), otherwise="`GROUP_AUTHORIZATION_FAILED`"))
def sync_group(access: Access, request: SyncGroupRequest, go: Go) -> object:
    """A request without the protocol that it has to name is refused for that."""
    nameless = request.protocol_type is None or request.protocol_name is None
    if access.ctx.api_version >= PROTOCOL_NAMED_SINCE and nameless:
        return go(request)
    if access.group(O.READ, request.group_id):
        return go(request)
    return SyncGroupResponse(error_code=GROUP_DENIED)


_MEMBERS: dict[ApiKey, Callable[[Access], object]] = {
    ApiKey.JOIN_GROUP: _join_refused,
    ApiKey.HEARTBEAT: lambda _: HeartbeatResponse(error_code=GROUP_DENIED),
    ApiKey.LEAVE_GROUP: lambda _: LeaveGroupResponse(error_code=GROUP_DENIED),
}


def _judge_member(refuse: Callable[[Access], object]) -> Callable[[Access, Any, Go], object]:
    def judge(access: Access, request: JoinGroupRequest, go: Go) -> object:
        return go(request) if access.group(O.READ, request.group_id) else refuse(access)

    return judge


for _key, _refuse in _MEMBERS.items():
    _rule = needs(group(O.READ), otherwise="`GROUP_AUTHORIZATION_FAILED`")
    GUARDS[_key] = Guard(_judge_member(_refuse), (_rule,))


@guard(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    needs(group(O.READ), otherwise="`GROUP_AUTHORIZATION_FAILED`"),
    needs(
        topic(O.DESCRIBE), about="each one named", otherwise="`TOPIC_AUTHORIZATION_FAILED` for all"
    ),
    needs(
        topic(O.DESCRIBE),
        about="each one that a regular expression matches",
        otherwise="not part of the subscription",
    ),
)
def consumer_group_heartbeat(
    access: Access, request: ConsumerGroupHeartbeatRequest, go: Go
) -> object:
    """The handler asks about what a regular expression matches, when it looks that up."""
    if not access.group(O.READ, request.group_id):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    elif not all(access.topic(O.DESCRIBE, name) for name in request.subscribed_topic_names or ()):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    else:
        return go(request)
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=None)


# -- whoever looks at groups -----------------------------------------------------------------------


@guard(
    ApiKey.DESCRIBE_GROUPS,
    needs(group(O.DESCRIBE), about="each", otherwise="`GROUP_AUTHORIZATION_FAILED` for it"),
)
def describe_groups_(access: Access, request: DescribeGroupsRequest, go: Go) -> object:
    granted, denied = split(request.groups, lambda g: access.group(O.DESCRIBE, g))
    refused = [describe_groups.DescribedGroup(GROUP_DENIED, None, group_id=g) for g in denied]

    def tell(response: DescribeGroupsResponse) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for line in response.groups:
                if not line.error_code:
                    kind = ResourceType.GROUP
                    line.authorized_operations = access.operations(kind, line.group_id)
        response.groups = refused + response.groups
        return response

    return after(go(msgspec.structs.replace(request, groups=granted)), tell)


@guard(
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    needs(group(O.DESCRIBE), about="each", otherwise="`GROUP_AUTHORIZATION_FAILED` for it"),
    needs(
        topic(O.DESCRIBE),
        about="each that a member has or is to have",
        otherwise="`TOPIC_AUTHORIZATION_FAILED` for the group",
    ),
)
def consumer_group_describe_(
    access: Access, request: ConsumerGroupDescribeRequest, go: Go
) -> object:
    granted, denied = split(request.group_ids, lambda g: access.group(O.DESCRIBE, g))
    refused = [
        consumer_group_describe.DescribedGroup(GROUP_DENIED, None, group_id=g) for g in denied
    ]

    def tell(response: ConsumerGroupDescribeResponse) -> ConsumerGroupDescribeResponse:
        for number, line in enumerate(response.groups):
            if not all(access.topic(O.DESCRIBE, name) for name in _topics(line)):
                response.groups[number] = consumer_group_describe.DescribedGroup(
                    TOPIC_DENIED, UNSEEN_TOPICS, group_id=line.group_id
                )
            elif request.include_authorized_operations and not line.error_code:
                kind = ResourceType.GROUP
                line.authorized_operations = access.operations(kind, line.group_id)
        response.groups = refused + response.groups
        return response

    return after(go(msgspec.structs.replace(request, group_ids=granted)), tell)


def _topics(described: consumer_group_describe.DescribedGroup) -> set[str]:
    return {
        line.topic_name
        for member in described.members
        for part in (member.assignment, member.target_assignment)
        for line in part.topic_partitions
    }


@guard(
    ApiKey.LIST_GROUPS,
    needs(cluster(O.DESCRIBE), group(O.DESCRIBE), about="each", otherwise="left out"),
)
def list_groups(access: Access, request: ListGroupsRequest, go: Go) -> object:
    """Who may describe the cluster sees all groups."""

    def hide(response: ListGroupsResponse) -> ListGroupsResponse:
        if not access.cluster(O.DESCRIBE):
            response.groups = [g for g in response.groups if access.group(O.DESCRIBE, g.group_id)]
        return response

    return after(go(request), hide)


@guard(
    ApiKey.DELETE_GROUPS,
    needs(group(O.DELETE), about="each", otherwise="`GROUP_AUTHORIZATION_FAILED` for it"),
)
def delete_groups(access: Access, request: DeleteGroupsRequest, go: Go) -> object:
    names = dict.fromkeys(request.groups_names)
    granted, denied = split(names, lambda g: access.group(O.DELETE, g))

    def tell(response: DeleteGroupsResponse) -> DeleteGroupsResponse:
        response.results = [*response.results]
        response.results += [DeletableGroupResult(g, GROUP_DENIED) for g in denied]
        return response

    return after(go(msgspec.structs.replace(request, groups_names=granted)), tell)


# -- where the coordinator is ----------------------------------------------------------------------


@guard(
    ApiKey.FIND_COORDINATOR,
    needs(group(O.DESCRIBE), about="each", otherwise="`GROUP_AUTHORIZATION_FAILED` for it"),
    needs(
        transactional_id(O.DESCRIBE),
        about="each",
        otherwise="`TRANSACTIONAL_ID_AUTHORIZATION_FAILED` for it",
    ),
    needs(
        cluster(O.CLUSTER_ACTION),
        about="for share partitions",
        otherwise="`CLUSTER_AUTHORIZATION_FAILED`",
    ),
)
def find_coordinator(access: Access, request: FindCoordinatorRequest, go: Go) -> object:
    if request.key_type == SHARE_KEY and access.ctx.api_version < SHARE_SINCE:
        return go(request)
    if access.ctx.api_version < FIND_BATCHES_SINCE:
        error = _why_not_found(access, request.key_type, request.key)
        return go(request) if error is None else _not_found(error)
    keys = request.coordinator_keys
    errors = {key: _why_not_found(access, request.key_type, key) for key in keys}
    whole = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if whole in errors.values():
        return FindCoordinatorResponse(
            coordinators=[Coordinator(key, -1, "", -1, whole, whole.sentence) for key in keys]
        )

    def tell(response: FindCoordinatorResponse) -> FindCoordinatorResponse:
        found = iter(response.coordinators)
        response.coordinators = [
            next(found) if error is None else Coordinator(key, -1, "", -1, error, "")
            for key, error in ((key, errors[key]) for key in keys)
        ]
        return response

    granted = [key for key in keys if errors[key] is None]
    return after(go(msgspec.structs.replace(request, coordinator_keys=granted)), tell)


def _why_not_found(access: Access, key_type: int, key: str) -> ErrorCode | None:
    """The error for a client that may not know of a coordinator."""
    if key_type == GROUP_KEY and not access.group(O.DESCRIBE, key):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if key_type == TRANSACTION_KEY and not access.transactional_id(O.DESCRIBE, key):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if key_type == SHARE_KEY and not access.cluster(O.CLUSTER_ACTION):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return None


def _not_found(error: ErrorCode) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=error, error_message=error.sentence, node_id=-1, host="", port=-1
    )
