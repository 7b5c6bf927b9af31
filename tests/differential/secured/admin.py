"""APIs about the cluster, and configs."""

from __future__ import annotations

from typing import Any

from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker_protocol.messages import alter_configs as alter
from mockbroker_protocol.messages import incremental_alter_configs as incremental
from mockbroker_protocol.messages.add_raft_voter import AddRaftVoterRequest
from mockbroker_protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from mockbroker_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockbroker_protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mockbroker_protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from mockbroker_protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from mockbroker_protocol.messages.describe_cluster import DescribeClusterRequest
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from mockbroker_protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from mockbroker_protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from mockbroker_protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from mockbroker_protocol.messages.list_config_resources import ListConfigResourcesRequest
from mockbroker_protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from mockbroker_protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from mockbroker_protocol.messages.unregister_broker import UnregisterBrokerRequest
from mockbroker_protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.differential.secured.session import AclSession, case

O, R = AclOperation, ResourceType  # noqa: E741
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SALTED = bytes(range(32))


@case
def quotas_are_not_for_everyone(session: AclSession) -> None:
    entry = RequestEntryData(
        [RequestEntityData("user", session.name), RequestEntityData("client-id", None)],
        [OpData("producer_byte_rate", 1e6)],
    )
    describe = DescribeClientQuotasRequest([ComponentData("user", 0, session.name)])
    for version in (0, 1):
        session.ask(AlterClientQuotasRequest([entry, entry]), version)
        session.ask(describe, version)
    session.allow(O.ALTER_CONFIGS, R.CLUSTER)
    session.ask(AlterClientQuotasRequest([entry], validate_only=True), 1)
    session.ask(describe, 1)


@case
def reassignments_are_not_for_everyone(session: AclSession) -> None:
    topic = session.topic()
    move = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(topic, [ReassignablePartition(0, [1])])]
    )
    wanted = ListPartitionReassignmentsRequest(
        topics=[ListPartitionReassignmentsTopics(topic, [0, 1])]
    )
    session.ask(move, 0)
    session.ask(move, 1)
    session.ask(wanted, 0)
    session.ask(ListPartitionReassignmentsRequest(topics=None), 0)
    session.allow(O.ALTER, R.CLUSTER)
    session.ask(wanted, 0)


@case
def log_directories_are_not_for_everyone(session: AclSession) -> None:
    topic = session.topic()
    move = AlterReplicaLogDirsRequest(
        [
            AlterReplicaLogDir("/one", [AlterReplicaLogDirTopic(topic, [0, 1])]),
            AlterReplicaLogDir("/two", [AlterReplicaLogDirTopic(topic, [2])]),
        ]
    )
    for version in (1, 2):
        session.ask(move, version)
    for version in (1, 2, 3, 4, 5):
        wanted = DescribeLogDirsRequest([DescribableLogDirTopic(topic, [0])])
        session.ask(wanted, version)


@case
def scram_credentials_are_not_for_everyone(session: AclSession) -> None:
    change = AlterUserScramCredentialsRequest(
        [ScramCredentialDeletion("y", 1), ScramCredentialDeletion("x", 1)],
        [ScramCredentialUpsertion("x", 2, 4096, b"salt", SALTED)],
    )
    session.ask(change, 0)
    session.ask(DescribeUserScramCredentialsRequest([UserName("x"), UserName("y")]), 0)
    session.ask(DescribeUserScramCredentialsRequest([]), 0)
    session.allow(O.DESCRIBE, R.CLUSTER)
    session.ask(DescribeUserScramCredentialsRequest([UserName("nobody")]), 0)


@case
def elections_and_features_are_not_for_everyone(session: AclSession) -> None:
    topic = session.topic()
    for version in (0, 1, 2):
        session.ask(ElectLeadersRequest(0, [TopicPartitions(topic, [0, 1])]), version)
        session.ask(ElectLeadersRequest(0, None), version)
    for version in (0, 1, 2):
        update = FeatureUpdateKey("group.version", 1)
        session.ask(UpdateFeaturesRequest(feature_updates=[update]), version)
    session.ask(UnregisterBrokerRequest(9), 0)
    session.ask(AddRaftVoterRequest("x", 1000, 7), 0)
    session.ask(RemoveRaftVoterRequest("x", 7), 0)
    quorum = RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])
    for version in (0, 1, 2):
        session.ask(DescribeQuorumRequest([quorum]), version)
    session.allow(O.ALTER, R.CLUSTER)
    session.ask(UnregisterBrokerRequest(9), 0)
    session.ask(ElectLeadersRequest(0, [TopicPartitions(topic, [0, 1])]), 2)


@case
def config_resources_are_not_for_everyone(session: AclSession) -> None:
    for version in (0, 1):
        session.ask(ListConfigResourcesRequest(), version)
    session.allow(O.DESCRIBE_CONFIGS, R.CLUSTER)
    session.ask(ListConfigResourcesRequest([METRICS]), 1)


@case
def operations_on_the_cluster(session: AclSession) -> None:
    def operations(answer: Any) -> Any:
        answer.brokers = []
        return answer

    for wanted in (False, True):
        session.ask(DescribeClusterRequest(wanted), 2, edit=operations)
        session.ask(DescribeClusterRequest(wanted), 2, "admin", edit=operations)
    session.allow(O.CREATE, R.CLUSTER)
    session.ask(DescribeClusterRequest(True), 1, edit=operations)
    session.allow(O.ALTER_CONFIGS, R.CLUSTER)
    session.allow(O.DESCRIBE, R.CLUSTER)
    session.ask(DescribeClusterRequest(True), 1, edit=operations)
    session.deny(O.DESCRIBE_CONFIGS, R.CLUSTER, "kafka-cluster")
    session.ask(DescribeClusterRequest(True), 0, edit=operations)
    session.allow(O.ALL, R.CLUSTER)
    session.ask(DescribeClusterRequest(True), 0, edit=operations)


# -- configs ---------------------------------------------------------------------------------------


def _describe(session: AclSession, topic: str) -> None:
    wanted = [
        DescribeConfigsResource(TOPIC, topic, ["retention.ms"]),
        DescribeConfigsResource(TOPIC, "nothing", ["retention.ms"]),
        DescribeConfigsResource(BROKER, "1", ["num.partitions"]),
        DescribeConfigsResource(BROKER, "", ["num.partitions"]),
        DescribeConfigsResource(LOGGER, "1", ["none"]),
        DescribeConfigsResource(METRICS, "m", ["interval.ms"]),
        DescribeConfigsResource(GROUP, "g", ["consumer.session.timeout.ms"]),
    ]
    for each in wanted:
        session.ask(DescribeConfigsRequest([each]), 4, label=str(each.resource_type))
    codes = sorted(
        (r.resource_type, r.resource_name, r.error_code)
        for r in session.quietly(DescribeConfigsRequest(wanted), 4).results
    )
    session.note(codes, "all at once")


@case
def configs_are_described_by_who_may(session: AclSession) -> None:
    topic = session.topic()
    _describe(session, topic)
    session.allow(O.DESCRIBE_CONFIGS, R.TOPIC, topic)
    session.allow(O.DESCRIBE, R.TOPIC, "nothing")
    _describe(session, topic)
    session.allow(O.ALTER_CONFIGS, R.CLUSTER)
    session.allow(O.ALTER_CONFIGS, R.GROUP, "g")
    _describe(session, topic)


def _alter(session: AclSession, topic: str) -> None:
    named = [
        (TOPIC, topic, "retention.ms", "100"),
        (TOPIC, "nothing", "retention.ms", "100"),
        (BROKER, "", "log.cleaner.threads", "2"),
        (METRICS, "m", "interval.ms", "1000"),
        (GROUP, "g", "consumer.session.timeout.ms", "50000"),
    ]
    for kind, name, config, value in named:
        resource = alter.AlterConfigsResource(kind, name, [alter.AlterableConfig(config, value)])
        session.ask(alter.AlterConfigsRequest([resource], True), 2)
        changed = incremental.AlterableConfig(config, 0, value)
        changing = incremental.AlterConfigsResource(kind, name, [changed])
        session.ask(incremental.IncrementalAlterConfigsRequest([changing], True), 1)
    level = incremental.AlterableConfig("root", 0, "INFO")
    logger = incremental.AlterConfigsResource(LOGGER, "1", [level])
    session.ask(incremental.IncrementalAlterConfigsRequest([logger], True), 1)


@case
def configs_are_altered_by_who_may(session: AclSession) -> None:
    topic = session.topic()
    _alter(session, topic)
    session.allow(O.ALTER_CONFIGS, R.TOPIC, topic)
    session.allow(O.ALTER_CONFIGS, R.GROUP, "g")
    _alter(session, topic)
    session.allow(O.ALTER_CONFIGS, R.CLUSTER)
    _alter(session, topic)


@case
def configs_that_stand_twice_are_refused_for_that(session: AclSession) -> None:
    topic = session.topic()
    change = incremental.AlterableConfig("retention.ms", 0, "100")
    twice = [incremental.AlterConfigsResource(TOPIC, topic, [change])] * 2
    session.ask(incremental.IncrementalAlterConfigsRequest(twice, True), 1)
    wrong = incremental.AlterableConfig("retention.ms", 0, None)
    resource = incremental.AlterConfigsResource(TOPIC, topic, [wrong])
    session.ask(incremental.IncrementalAlterConfigsRequest([resource], True), 1)


@case
def configs_of_the_authorizer(session: AclSession) -> None:
    names = ["authorizer.class.name", "super.users", "delegation.token.secret.key"]
    for name in (*names, "allow.everyone.if.no.acl.found"):
        wanted = DescribeConfigsResource(BROKER, "1", [name])
        session.ask(DescribeConfigsRequest([wanted], True), 4, "admin", label=name)
