"""APIs about the cluster as a whole: one right on the cluster lets them through, or nothing does.

Each refusal has the shape that Kafka's request class gives it (`getErrorResponse`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mockbroker.core.security.acls import Operation
from mockbroker.handlers.authorization.access import (
    GUARDS,
    Access,
    Go,
    Guard,
    after,
    cluster,
    guard,
    needs,
)
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.add_raft_voter import AddRaftVoterResponse
from mockbroker_protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ResponseEntityData,
    ResponseEntryData,
)
from mockbroker_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from mockbroker_protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from mockbroker_protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from mockbroker_protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from mockbroker_protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from mockbroker_protocol.messages.describe_acls import DescribeAclsResponse
from mockbroker_protocol.messages.describe_client_quotas import DescribeClientQuotasResponse
from mockbroker_protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from mockbroker_protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from mockbroker_protocol.messages.describe_quorum import DescribeQuorumResponse
from mockbroker_protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from mockbroker_protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from mockbroker_protocol.messages.list_config_resources import ListConfigResourcesResponse
from mockbroker_protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from mockbroker_protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from mockbroker_protocol.messages.unregister_broker import UnregisterBrokerResponse
from mockbroker_protocol.messages.update_features import UpdateFeaturesResponse

if TYPE_CHECKING:
    from mockbroker.handlers.base import Parked

O = Operation  # noqa: E741 - as in the tables of Kafka
DENIED = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
SENTENCE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.sentence


def _message(access: Access) -> str:
    api = ApiKey(access.ctx.header.api_key).name
    return f"The request {api} is not authorized."


def _alter_client_quotas(
    access: Access,  # noqa: ARG001
    request: AlterClientQuotasRequest,
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            ResponseEntryData(
                DENIED,
                SENTENCE,
                [ResponseEntityData(e.entity_type, e.entity_name) for e in entry.entity],
            )
            for entry in request.entries
        ]
    )


def _alter_partition_reassignments(
    access: Access, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    message = _message(access)
    return AlterPartitionReassignmentsResponse(
        error_code=DENIED,
        error_message=message,
        responses=[
            ReassignableTopicResponse(
                topic.name,
                [
                    ReassignablePartitionResponse(p.partition_index, DENIED, message)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _alter_replica_log_dirs(
    access: Access,  # noqa: ARG001
    request: AlterReplicaLogDirsRequest,
) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic.name,
                [
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=DENIED)
                    for index in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _alter_user_scram_credentials(
    access: Access, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    users = {*(d.name for d in request.deletions), *(u.name for u in request.upsertions)}
    message = _message(access)
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user, DENIED, message) for user in sorted(users)]
    )


def _create_acls(access: Access, request: CreateAclsRequest) -> CreateAclsResponse:
    result = AclCreationResult(DENIED, _message(access))
    return CreateAclsResponse(results=[result] * len(request.creations))


def _delete_acls(access: Access, request: DeleteAclsRequest) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(DENIED, _message(access))
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))


def _describe_user_scram_credentials(
    access: Access,  # noqa: ARG001
    request: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_code=DENIED,
        error_message=None,
        results=[DescribeUserScramCredentialsResult("", DENIED, None) for _ in request.users or ()],
    )


def _elect_leaders(access: Access, request: ElectLeadersRequest) -> ElectLeadersResponse:
    message = _message(access)
    return ElectLeadersResponse(
        error_code=DENIED,
        replica_election_results=[
            ReplicaElectionResult(
                topic.topic, [PartitionResult(i, DENIED, message) for i in topic.partitions]
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _list_partition_reassignments(
    access: Access, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=DENIED,
        error_message=_message(access),
        topics=[
            OngoingTopicReassignment(
                topic.name,
                [OngoingPartitionReassignment(partition_index=i) for i in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )


Refuse = Callable[[Access, Any], object]

# What is asked for, and the answer to who may not.
_TABLE: dict[ApiKey, tuple[Operation, Refuse]] = {
    ApiKey.ADD_RAFT_VOTER: (
        O.ALTER,
        lambda access, _: AddRaftVoterResponse(error_code=DENIED, error_message=_message(access)),
    ),
    ApiKey.REMOVE_RAFT_VOTER: (
        O.ALTER,
        lambda access, _: RemoveRaftVoterResponse(
            error_code=DENIED, error_message=_message(access)
        ),
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: (O.ALTER_CONFIGS, _alter_client_quotas),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (O.ALTER, _alter_partition_reassignments),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (O.ALTER, _alter_replica_log_dirs),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (O.ALTER, _alter_user_scram_credentials),
    ApiKey.CREATE_ACLS: (O.ALTER, _create_acls),
    ApiKey.DELETE_ACLS: (O.ALTER, _delete_acls),
    ApiKey.DESCRIBE_ACLS: (
        O.DESCRIBE,
        lambda access, _: DescribeAclsResponse(error_code=DENIED, error_message=_message(access)),
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (
        O.DESCRIBE_CONFIGS,
        lambda _, __: DescribeClientQuotasResponse(
            error_code=DENIED, error_message=None, entries=None
        ),
    ),
    ApiKey.DESCRIBE_LOG_DIRS: (
        O.DESCRIBE,
        lambda _, __: DescribeLogDirsResponse(error_code=DENIED),
    ),
    ApiKey.DESCRIBE_QUORUM: (
        O.DESCRIBE,
        lambda _, __: DescribeQuorumResponse(error_code=DENIED, error_message=SENTENCE),
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (O.DESCRIBE, _describe_user_scram_credentials),
    ApiKey.ELECT_LEADERS: (O.ALTER, _elect_leaders),
    ApiKey.LIST_CONFIG_RESOURCES: (
        O.DESCRIBE_CONFIGS,
        lambda _, __: ListConfigResourcesResponse(error_code=DENIED),
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (O.DESCRIBE, _list_partition_reassignments),
    ApiKey.UNREGISTER_BROKER: (
        O.ALTER,
        lambda _, __: UnregisterBrokerResponse(error_code=DENIED, error_message=SENTENCE),
    ),
    ApiKey.UPDATE_FEATURES: (
        O.ALTER,
        lambda access, _: UpdateFeaturesResponse(error_code=DENIED, error_message=_message(access)),
    ),
}


def _judge(operation: Operation, refuse: Refuse) -> Callable[[Access, Any, Go], object]:
    def judge(access: Access, request: Any, go: Go) -> object:
        return go(request) if access.cluster(operation) else refuse(access, request)

    return judge


for _key, (_operation, _refuse) in _TABLE.items():
    _rule = needs(cluster(_operation), otherwise="`CLUSTER_AUTHORIZATION_FAILED`")
    GUARDS[_key] = Guard(_judge(_operation, _refuse), (_rule,))


@guard(
    ApiKey.DESCRIBE_CLUSTER,
    needs(cluster(O.DESCRIBE), about="for its operations", otherwise="no operations"),
)
def describe_cluster(
    access: Access, request: DescribeClusterRequest, go: Go
) -> DescribeClusterResponse | Parked[DescribeClusterResponse]:
    """Everyone may know the brokers."""

    def tell(response: DescribeClusterResponse) -> DescribeClusterResponse:
        if request.include_cluster_authorized_operations and not response.error_code:
            response.cluster_authorized_operations = access.cluster_operations()
        return response

    return after(go(request), tell)
