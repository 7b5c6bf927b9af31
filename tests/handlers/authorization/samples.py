"""One request of each guarded API, or several if its rules depend on the request."""

from __future__ import annotations

from typing import NamedTuple

from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages import alter_configs, incremental_alter_configs
from mockbroker_protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mockbroker_protocol.messages.add_raft_voter import AddRaftVoterRequest
from mockbroker_protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from mockbroker_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from mockbroker_protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from mockbroker_protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
)
from mockbroker_protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.create_acls import CreateAclsRequest
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.delete_acls import DeleteAclsRequest
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockbroker_protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.describe_acls import DescribeAclsRequest
from mockbroker_protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from mockbroker_protocol.messages.describe_cluster import DescribeClusterRequest
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from mockbroker_protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from mockbroker_protocol.messages.describe_quorum import DescribeQuorumRequest
from mockbroker_protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from mockbroker_protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from mockbroker_protocol.messages.describe_topic_partitions import TopicRequest as PageTopic
from mockbroker_protocol.messages.describe_transactions import DescribeTransactionsRequest
from mockbroker_protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from mockbroker_protocol.messages.elect_leaders import ElectLeadersRequest
from mockbroker_protocol.messages.end_txn import EndTxnRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
)
from mockbroker_protocol.messages.join_group import JoinGroupRequest
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.list_config_resources import ListConfigResourcesRequest
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from mockbroker_protocol.messages.list_transactions import ListTransactionsRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from mockbroker_protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from mockbroker_protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
)
from mockbroker_protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from mockbroker_protocol.messages.share_acknowledge import AcknowledgementBatch as Acknowledged
from mockbroker_protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from mockbroker_protocol.messages.share_fetch import FetchPartition as SharedPartition
from mockbroker_protocol.messages.share_fetch import FetchTopic as SharedTopic
from mockbroker_protocol.messages.share_fetch import ShareFetchRequest
from mockbroker_protocol.messages.share_group_describe import ShareGroupDescribeRequest
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from mockbroker_protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from mockbroker_protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from mockbroker_protocol.messages.streams_group_heartbeat import TopicInfo as StreamsTopic
from mockbroker_protocol.messages.sync_group import SyncGroupRequest
from mockbroker_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.unregister_broker import UnregisterBrokerRequest
from mockbroker_protocol.messages.update_features import UpdateFeaturesRequest
from mockbroker_protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from mockbroker_protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from mockbroker_protocol.records import Record, build_batch
from tests.support.requests import Node

TOPIC, GROUP, TRANSACTIONAL_ID = "orders", "readers", "writer"
# Equal seeds give equal ids: that of the first topic of any node.
TOPIC_ID = Node().topic(TOPIC).topic.topic_id
ANY = 1


class Sample(NamedTuple):
    """A request of one version."""

    key: ApiKey
    request: object
    version: int


def produce(*, transactional: bool = False) -> ProduceRequest:
    """A Produce of one record, which may say that it is part of a transaction."""
    record = Record(0, 1, b"k", b"v", ())
    batch = build_batch([record])
    if transactional:
        batch = build_batch(
            [record], transactional=True, producer_id=7, producer_epoch=0, base_sequence=0
        )
    data = PartitionProduceData(index=0, records=bytes(batch))
    return ProduceRequest(
        transactional_id=TRANSACTIONAL_ID if transactional else None,
        acks=1,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )


def fetch(replica: int = -1) -> FetchRequest:
    partition = FetchPartition(partition=0, partition_max_bytes=100)
    return FetchRequest(replica_id=replica, topics=[FetchTopic(TOPIC, partitions=[partition])])


def _configs() -> list[DescribeConfigsResource]:
    return [DescribeConfigsResource(k, n) for k, n in ((2, TOPIC), (32, GROUP), (4, "1"))]


SAMPLES = [
    Sample(*line)
    for line in (
        (ApiKey.PRODUCE, produce(), 9),
        (ApiKey.PRODUCE, produce(transactional=True), 9),
        (ApiKey.FETCH, fetch(), 12),
        (ApiKey.FETCH, fetch(replica=2), 12),
        (
            ApiKey.LIST_OFFSETS,
            ListOffsetsRequest(topics=[ListOffsetsTopic(TOPIC, [ListOffsetsPartition(0, -1, -1)])]),
            7,
        ),
        (ApiKey.METADATA, MetadataRequest([MetadataRequestTopic(name=TOPIC)]), 9),
        (ApiKey.METADATA, MetadataRequest([MetadataRequestTopic(name="missing")]), 9),
        (ApiKey.METADATA, MetadataRequest(None, True, True), 9),
        (
            ApiKey.OFFSET_COMMIT,
            OffsetCommitRequest(
                GROUP,
                topics=[
                    OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0, 1)])
                ],
            ),
            9,
        ),
        (
            ApiKey.OFFSET_FETCH,
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(
                        GROUP, topics=[OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])]
                    )
                ]
            ),
            9,
        ),
        (ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=[GROUP]), 6),
        (
            ApiKey.FIND_COORDINATOR,
            FindCoordinatorRequest(key_type=1, coordinator_keys=[TRANSACTIONAL_ID]),
            6,
        ),
        (ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key_type=2, coordinator_keys=["s"]), 6),
        (ApiKey.JOIN_GROUP, JoinGroupRequest(GROUP, 1), 9),
        (ApiKey.HEARTBEAT, HeartbeatRequest(GROUP, 1, "m"), 4),
        (ApiKey.LEAVE_GROUP, LeaveGroupRequest(GROUP, members=[MemberIdentity("m")]), 5),
        (
            ApiKey.SYNC_GROUP,
            SyncGroupRequest(GROUP, 1, "m", protocol_type="consumer", protocol_name="range"),
            5,
        ),
        (ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([GROUP]), 5),
        (ApiKey.LIST_GROUPS, ListGroupsRequest(), 5),
        (ApiKey.CREATE_TOPICS, CreateTopicsRequest([CreatableTopic("new", 1, 1)], 1000, True), 7),
        (
            ApiKey.DELETE_TOPICS,
            DeleteTopicsRequest([DeleteTopicState(TOPIC)], timeout_ms=1000),
            6,
        ),
        (
            ApiKey.DELETE_RECORDS,
            DeleteRecordsRequest([DeleteRecordsTopic(TOPIC, [DeleteRecordsPartition(0, 0)])]),
            2,
        ),
        (ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(None, 1000), 5),
        (ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(TRANSACTIONAL_ID, 0), 5),
        (
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            OffsetForLeaderEpochRequest(
                topics=[OffsetForLeaderTopic(TOPIC, [OffsetForLeaderPartition(0, -1, 0)])]
            ),
            4,
        ),
        (
            ApiKey.ADD_PARTITIONS_TO_TXN,
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=TRANSACTIONAL_ID,
                v3_and_below_topics=[AddPartitionsToTxnTopic(TOPIC, [0])],
            ),
            3,
        ),
        (
            ApiKey.ADD_PARTITIONS_TO_TXN,
            AddPartitionsToTxnRequest(
                [AddPartitionsToTxnTransaction(TRANSACTIONAL_ID, 1, 0, True)]
            ),
            5,
        ),
        (ApiKey.ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest(TRANSACTIONAL_ID, 1, 0, GROUP), 4),
        (ApiKey.END_TXN, EndTxnRequest(TRANSACTIONAL_ID, 1, 0, False), 5),
        (ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest(), 1),
        (
            ApiKey.SHARE_FETCH,
            ShareFetchRequest(
                GROUP, "member", 0, topics=[SharedTopic(TOPIC_ID, [SharedPartition(0)])]
            ),
            2,
        ),
        (
            ApiKey.SHARE_ACKNOWLEDGE,
            ShareAcknowledgeRequest(
                GROUP,
                "member",
                -1,
                topics=[
                    AcknowledgeTopic(TOPIC_ID, [AcknowledgePartition(0, [Acknowledged(0, 0, [1])])])
                ],
            ),
            2,
        ),
        (ApiKey.INITIALIZE_SHARE_GROUP_STATE, InitializeShareGroupStateRequest(), 0),
        (ApiKey.READ_SHARE_GROUP_STATE, ReadShareGroupStateRequest(), 0),
        (ApiKey.WRITE_SHARE_GROUP_STATE, WriteShareGroupStateRequest(), 1),
        (ApiKey.DELETE_SHARE_GROUP_STATE, DeleteShareGroupStateRequest(), 0),
        (ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, ReadShareGroupStateSummaryRequest(), 1),
        (
            ApiKey.TXN_OFFSET_COMMIT,
            TxnOffsetCommitRequest(
                TRANSACTIONAL_ID,
                GROUP,
                topics=[
                    TxnOffsetCommitRequestTopic(TOPIC, [TxnOffsetCommitRequestPartition(9, 1)])
                ],
            ),
            3,
        ),
        (
            ApiKey.DESCRIBE_ACLS,
            DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY),
            3,
        ),
        (ApiKey.CREATE_ACLS, CreateAclsRequest(), 3),
        (ApiKey.DELETE_ACLS, DeleteAclsRequest(), 3),
        (ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(_configs()), 4),
        (
            ApiKey.ALTER_CONFIGS,
            alter_configs.AlterConfigsRequest(
                [
                    alter_configs.AlterConfigsResource(r.resource_type, r.resource_name)
                    for r in _configs()
                ],
                True,
            ),
            2,
        ),
        (
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            incremental_alter_configs.IncrementalAlterConfigsRequest(
                [
                    incremental_alter_configs.AlterConfigsResource(r.resource_type, r.resource_name)
                    for r in _configs()
                ],
                True,
            ),
            1,
        ),
        (ApiKey.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsRequest(), 2),
        (ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(), 4),
        (
            ApiKey.CREATE_PARTITIONS,
            CreatePartitionsRequest([CreatePartitionsTopic(TOPIC, 2, None)], 1000, True),
            3,
        ),
        (ApiKey.DELETE_GROUPS, DeleteGroupsRequest([GROUP]), 2),
        (ApiKey.ELECT_LEADERS, ElectLeadersRequest(0, None), 2),
        (ApiKey.ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsRequest(), 1),
        (ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest(), 0),
        (
            ApiKey.OFFSET_DELETE,
            OffsetDeleteRequest(
                GROUP, [OffsetDeleteRequestTopic(TOPIC, [OffsetDeleteRequestPartition(0)])]
            ),
            0,
        ),
        (ApiKey.DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest(), 1),
        (ApiKey.ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest(), 1),
        (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest(), 0),
        (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, AlterUserScramCredentialsRequest(), 0),
        (ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest(), 2),
        (ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest(), 2),
        (ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(True), 2),
        (ApiKey.DESCRIBE_PRODUCERS, DescribeProducersRequest([TopicRequest(TOPIC, [0])]), 0),
        (ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(9), 0),
        (ApiKey.DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest([TRANSACTIONAL_ID]), 0),
        (ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest(), 2),
        (
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ConsumerGroupHeartbeatRequest(
                GROUP,
                "member",
                rebalance_timeout_ms=1000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=[],
            ),
            1,
        ),
        (ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(["new-readers"]), 1),
        (
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            StreamsGroupHeartbeatRequest(
                GROUP,
                "member",
                rebalance_timeout_ms=1000,
                topology=Topology(
                    0,
                    [
                        Subtopology(
                            "0",
                            source_topics=[TOPIC],
                            state_changelog_topics=[StreamsTopic("changelog")],
                        )
                    ],
                ),
                active_tasks=[],
                standby_tasks=[],
                warmup_tasks=[],
                process_id="process",
            ),
            0,
        ),
        (ApiKey.STREAMS_GROUP_DESCRIBE, StreamsGroupDescribeRequest(["streams-readers"]), 0),
        (
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ShareGroupHeartbeatRequest(GROUP, "member", subscribed_topic_names=[TOPIC]),
            1,
        ),
        (ApiKey.SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest(["sharers"]), 1),
        (
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            DescribeShareGroupOffsetsRequest(
                [
                    DescribeShareGroupOffsetsRequestGroup(
                        GROUP, [DescribeShareGroupOffsetsRequestTopic(TOPIC, [0])]
                    ),
                    DescribeShareGroupOffsetsRequestGroup("sharers", None),
                ]
            ),
            1,
        ),
        (
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            AlterShareGroupOffsetsRequest(
                GROUP,
                [
                    AlterShareGroupOffsetsRequestTopic(
                        TOPIC, [AlterShareGroupOffsetsRequestPartition(0, 0)]
                    )
                ],
            ),
            0,
        ),
        (
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
            DeleteShareGroupOffsetsRequest(GROUP, [DeleteShareGroupOffsetsRequestTopic(TOPIC)]),
            0,
        ),
        (ApiKey.ADD_RAFT_VOTER, AddRaftVoterRequest(None, 1000, 1), 1),
        (ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest(None, 1), 0),
        (ApiKey.LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(), 1),
        (
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            DescribeTopicPartitionsRequest([PageTopic(TOPIC)], 10),
            0,
        ),
    )
]
