"""Kafka's error codes: one enum with the code, whether a client may retry, and Kafka's message.

All three are those of `org.apache.kafka.common.protocol.Errors` in 4.3. An error is retriable when
its exception extends `RetriableException`. A client shows the message if the answer has no more
specific one.
"""

from __future__ import annotations

from enum import IntEnum


def _error(code: int, message: str, *, retriable: bool = False) -> tuple[int, str, bool]:
    return code, message, retriable


class ErrorCode(IntEnum):
    """An error code as it stands in a response (int16)."""

    retriable: bool
    message: str

    def __new__(cls, code: int, message: str, retriable: bool) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.message = message
        return member

    UNKNOWN_SERVER_ERROR = _error(
        -1, "The server experienced an unexpected error when processing the request."
    )
    NONE = _error(0, "NONE")
    OFFSET_OUT_OF_RANGE = _error(
        1, "The requested offset is not within the range of offsets maintained by the server."
    )
    CORRUPT_MESSAGE = _error(
        2,
        "This message has failed its CRC checksum, exceeds the valid size, has a null key for a"
        " compacted topic, or is otherwise corrupt.",
        retriable=True,
    )
    UNKNOWN_TOPIC_OR_PARTITION = _error(
        3, "This server does not host this topic-partition.", retriable=True
    )
    INVALID_FETCH_SIZE = _error(4, "The requested fetch size is invalid.")
    LEADER_NOT_AVAILABLE = _error(
        5,
        "There is no leader for this topic-partition as we are in the middle of a leadership "
        "election.",
        retriable=True,
    )
    NOT_LEADER_OR_FOLLOWER = _error(
        6,
        "For requests intended only for the leader, this error indicates that the broker is not"
        " the current leader. For requests intended for any replica, this error indicates that "
        "the broker is not a replica of the topic partition.",
        retriable=True,
    )
    REQUEST_TIMED_OUT = _error(7, "The request timed out.", retriable=True)
    BROKER_NOT_AVAILABLE = _error(8, "The broker is not available.")
    REPLICA_NOT_AVAILABLE = _error(
        9,
        "The replica is not available for the requested topic-partition. Produce/Fetch requests"
        " and other requests intended only for the leader or follower return "
        "NOT_LEADER_OR_FOLLOWER if the broker is not a replica of the topic-partition.",
        retriable=True,
    )
    MESSAGE_TOO_LARGE = _error(
        10,
        "The request included a message larger than the max message size the server will accept.",
    )
    STALE_CONTROLLER_EPOCH = _error(11, "The controller moved to another broker.")
    OFFSET_METADATA_TOO_LARGE = _error(
        12, "The metadata field of the offset request was too large."
    )
    NETWORK_EXCEPTION = _error(
        13, "The server disconnected before a response was received.", retriable=True
    )
    COORDINATOR_LOAD_IN_PROGRESS = _error(
        14, "The coordinator is loading and hence can't process requests.", retriable=True
    )
    COORDINATOR_NOT_AVAILABLE = _error(15, "The coordinator is not available.", retriable=True)
    NOT_COORDINATOR = _error(16, "This is not the correct coordinator.", retriable=True)
    INVALID_TOPIC_EXCEPTION = _error(
        17, "The request attempted to perform an operation on an invalid topic."
    )
    RECORD_LIST_TOO_LARGE = _error(
        18,
        "The request included message batch larger than the configured segment size on the server.",
    )
    NOT_ENOUGH_REPLICAS = _error(
        19,
        "Messages are rejected since there are fewer in-sync replicas than required.",
        retriable=True,
    )
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = _error(
        20,
        "Messages are written to the log, but to fewer in-sync replicas than required.",
        retriable=True,
    )
    INVALID_REQUIRED_ACKS = _error(
        21, "Produce request specified an invalid value for required acks."
    )
    ILLEGAL_GENERATION = _error(22, "Specified group generation id is not valid.")
    INCONSISTENT_GROUP_PROTOCOL = _error(
        23,
        "The group member's supported protocols are incompatible with those of existing members"
        " or first group member tried to join with empty protocol type or empty protocol list.",
    )
    INVALID_GROUP_ID = _error(24, "The group id is invalid.")
    UNKNOWN_MEMBER_ID = _error(25, "The coordinator is not aware of this member.")
    INVALID_SESSION_TIMEOUT = _error(
        26,
        "The session timeout is not within the range allowed by the broker (as configured by "
        "group.min.session.timeout.ms and group.max.session.timeout.ms).",
    )
    REBALANCE_IN_PROGRESS = _error(27, "The group is rebalancing, so a rejoin is needed.")
    INVALID_COMMIT_OFFSET_SIZE = _error(28, "The committing offset data size is not valid.")
    TOPIC_AUTHORIZATION_FAILED = _error(29, "Topic authorization failed.")
    GROUP_AUTHORIZATION_FAILED = _error(30, "Group authorization failed.")
    CLUSTER_AUTHORIZATION_FAILED = _error(31, "Cluster authorization failed.")
    INVALID_TIMESTAMP = _error(32, "The timestamp of the message is out of acceptable range.")
    UNSUPPORTED_SASL_MECHANISM = _error(
        33, "The broker does not support the requested SASL mechanism."
    )
    ILLEGAL_SASL_STATE = _error(34, "Request is not valid given the current SASL state.")
    UNSUPPORTED_VERSION = _error(35, "The version of API is not supported.")
    TOPIC_ALREADY_EXISTS = _error(36, "Topic with this name already exists.")
    INVALID_PARTITIONS = _error(37, "Number of partitions is below 1.")
    INVALID_REPLICATION_FACTOR = _error(
        38, "Replication factor is below 1 or larger than the number of available brokers."
    )
    INVALID_REPLICA_ASSIGNMENT = _error(39, "Replica assignment is invalid.")
    INVALID_CONFIG = _error(40, "Configuration is invalid.")
    NOT_CONTROLLER = _error(
        41, "This is not the correct controller for this cluster.", retriable=True
    )
    INVALID_REQUEST = _error(
        42,
        "This most likely occurs because of a request being malformed by the client library or "
        "the message was sent to an incompatible broker. See the broker logs for more details.",
    )
    UNSUPPORTED_FOR_MESSAGE_FORMAT = _error(
        43, "The message format version on the broker does not support the request."
    )
    POLICY_VIOLATION = _error(44, "Request parameters do not satisfy the configured policy.")
    OUT_OF_ORDER_SEQUENCE_NUMBER = _error(
        45, "The broker received an out of order sequence number."
    )
    DUPLICATE_SEQUENCE_NUMBER = _error(46, "The broker received a duplicate sequence number.")
    INVALID_PRODUCER_EPOCH = _error(47, "Producer attempted to produce with an old epoch.")
    INVALID_TXN_STATE = _error(
        48, "The producer attempted a transactional operation in an invalid state."
    )
    INVALID_PRODUCER_ID_MAPPING = _error(
        49,
        "The producer attempted to use a producer id which is not currently assigned to its "
        "transactional id.",
    )
    INVALID_TRANSACTION_TIMEOUT = _error(
        50,
        "The transaction timeout is larger than the maximum value allowed by the broker (as "
        "configured by transaction.max.timeout.ms).",
    )
    CONCURRENT_TRANSACTIONS = _error(
        51,
        "The producer attempted to update a transaction while another concurrent operation on "
        "the same transaction was ongoing.",
        retriable=True,
    )
    TRANSACTION_COORDINATOR_FENCED = _error(
        52,
        "Indicates that the transaction coordinator sending a WriteTxnMarker is no longer the "
        "current coordinator for a given producer.",
    )
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = _error(53, "Transactional Id authorization failed.")
    SECURITY_DISABLED = _error(54, "Security features are disabled.")
    OPERATION_NOT_ATTEMPTED = _error(
        55,
        "The broker did not attempt to execute this operation. This may happen for batched RPCs"
        " where some operations in the batch failed, causing the broker to respond without "
        "trying the rest.",
    )
    KAFKA_STORAGE_ERROR = _error(
        56, "Disk error when trying to access log file on the disk.", retriable=True
    )
    LOG_DIR_NOT_FOUND = _error(
        57, "The user-specified log directory is not found in the broker config."
    )
    SASL_AUTHENTICATION_FAILED = _error(58, "SASL Authentication failed.")
    UNKNOWN_PRODUCER_ID = _error(
        59,
        "This exception is raised by the broker if it could not locate the producer metadata "
        "associated with the producerId in question. This could happen if, for instance, the "
        "producer's records were deleted because their retention time had elapsed. Once the "
        "last records of the producerId are removed, the producer's metadata is removed from "
        "the broker, and future appends by the producer will return this exception.",
    )
    REASSIGNMENT_IN_PROGRESS = _error(60, "A partition reassignment is in progress.")
    DELEGATION_TOKEN_AUTH_DISABLED = _error(61, "Delegation Token feature is not enabled.")
    DELEGATION_TOKEN_NOT_FOUND = _error(62, "Delegation Token is not found on server.")
    DELEGATION_TOKEN_OWNER_MISMATCH = _error(63, "Specified Principal is not valid Owner/Renewer.")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = _error(
        64,
        "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on "
        "delegation token authenticated channels.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = _error(65, "Delegation Token authorization failed.")
    DELEGATION_TOKEN_EXPIRED = _error(66, "Delegation Token is expired.")
    INVALID_PRINCIPAL_TYPE = _error(67, "Supplied principalType is not supported.")
    NON_EMPTY_GROUP = _error(68, "The group is not empty.")
    GROUP_ID_NOT_FOUND = _error(69, "The group id does not exist.")
    FETCH_SESSION_ID_NOT_FOUND = _error(70, "The fetch session ID was not found.", retriable=True)
    INVALID_FETCH_SESSION_EPOCH = _error(71, "The fetch session epoch is invalid.", retriable=True)
    LISTENER_NOT_FOUND = _error(
        72,
        "There is no listener on the leader broker that matches the listener on which metadata "
        "request was processed.",
        retriable=True,
    )
    TOPIC_DELETION_DISABLED = _error(73, "Topic deletion is disabled.")
    FENCED_LEADER_EPOCH = _error(
        74, "The leader epoch in the request is older than the epoch on the broker.", retriable=True
    )
    UNKNOWN_LEADER_EPOCH = _error(
        75, "The leader epoch in the request is newer than the epoch on the broker.", retriable=True
    )
    UNSUPPORTED_COMPRESSION_TYPE = _error(
        76, "The requesting client does not support the compression type of given partition."
    )
    STALE_BROKER_EPOCH = _error(77, "Broker epoch has changed.")
    OFFSET_NOT_AVAILABLE = _error(
        78,
        "The leader high watermark has not caught up from a recent leader election so the "
        "offsets cannot be guaranteed to be monotonically increasing.",
        retriable=True,
    )
    MEMBER_ID_REQUIRED = _error(
        79,
        "The group member needs to have a valid member id before actually entering a consumer "
        "group.",
    )
    PREFERRED_LEADER_NOT_AVAILABLE = _error(
        80, "The preferred leader was not available.", retriable=True
    )
    GROUP_MAX_SIZE_REACHED = _error(81, "The group has reached its maximum size.")
    FENCED_INSTANCE_ID = _error(
        82,
        "The broker rejected this static consumer since another consumer with the same "
        "group.instance.id has registered with a different member.id.",
    )
    ELIGIBLE_LEADERS_NOT_AVAILABLE = _error(
        83, "Eligible topic partition leaders are not available.", retriable=True
    )
    ELECTION_NOT_NEEDED = _error(
        84, "Leader election not needed for topic partition.", retriable=True
    )
    NO_REASSIGNMENT_IN_PROGRESS = _error(85, "No partition reassignment is in progress.")
    GROUP_SUBSCRIBED_TO_TOPIC = _error(
        86,
        "Deleting offsets of a topic is forbidden while the consumer group is actively "
        "subscribed to it.",
    )
    INVALID_RECORD = _error(
        87, "This record has failed the validation on broker and hence will be rejected."
    )
    UNSTABLE_OFFSET_COMMIT = _error(
        88, "There are unstable offsets that need to be cleared.", retriable=True
    )
    THROTTLING_QUOTA_EXCEEDED = _error(
        89, "The throttling quota has been exceeded.", retriable=True
    )
    PRODUCER_FENCED = _error(
        90, "There is a newer producer with the same transactionalId which fences the current one."
    )
    RESOURCE_NOT_FOUND = _error(
        91, "A request illegally referred to a resource that does not exist."
    )
    DUPLICATE_RESOURCE = _error(92, "A request illegally referred to the same resource twice.")
    UNACCEPTABLE_CREDENTIAL = _error(
        93, "Requested credential would not meet criteria for acceptability."
    )
    INCONSISTENT_VOTER_SET = _error(
        94,
        "Indicates that the either the sender or recipient of a voter-only request is not one "
        "of the expected voters.",
    )
    INVALID_UPDATE_VERSION = _error(95, "The given update version was invalid.")
    FEATURE_UPDATE_FAILED = _error(
        96, "Unable to update finalized features due to an unexpected server error."
    )
    PRINCIPAL_DESERIALIZATION_FAILURE = _error(
        97,
        "Request principal deserialization failed during forwarding. This indicates an internal"
        " error on the broker cluster security setup.",
    )
    SNAPSHOT_NOT_FOUND = _error(98, "Requested snapshot was not found.")
    POSITION_OUT_OF_RANGE = _error(
        99,
        "Requested position is not greater than or equal to zero, and less than the size of the"
        " snapshot.",
    )
    UNKNOWN_TOPIC_ID = _error(100, "This server does not host this topic ID.", retriable=True)
    DUPLICATE_BROKER_REGISTRATION = _error(101, "This broker ID is already in use.")
    BROKER_ID_NOT_REGISTERED = _error(102, "The given broker ID was not registered.")
    INCONSISTENT_TOPIC_ID = _error(
        103, "The log's topic ID did not match the topic ID in the request.", retriable=True
    )
    INCONSISTENT_CLUSTER_ID = _error(
        104, "The clusterId in the request does not match that found on the server."
    )
    TRANSACTIONAL_ID_NOT_FOUND = _error(105, "The transactionalId could not be found.")
    FETCH_SESSION_TOPIC_ID_ERROR = _error(
        106, "The fetch session encountered inconsistent topic ID usage.", retriable=True
    )
    INELIGIBLE_REPLICA = _error(107, "The new ISR contains at least one ineligible replica.")
    NEW_LEADER_ELECTED = _error(
        108,
        "The AlterPartition request successfully updated the partition state but the leader has"
        " changed.",
    )
    OFFSET_MOVED_TO_TIERED_STORAGE = _error(109, "The requested offset is moved to tiered storage.")
    FENCED_MEMBER_EPOCH = _error(
        110,
        "The member epoch is fenced by the group coordinator. The member must abandon all its "
        "partitions and rejoin.",
    )
    UNRELEASED_INSTANCE_ID = _error(
        111,
        "The instance ID is still used by another member in the consumer group. That member "
        "must leave first.",
    )
    UNSUPPORTED_ASSIGNOR = _error(
        112, "The assignor or its version range is not supported by the consumer group."
    )
    STALE_MEMBER_EPOCH = _error(
        113,
        "The member epoch is stale. The member must retry after receiving its updated member "
        "epoch via the ConsumerGroupHeartbeat API.",
    )
    MISMATCHED_ENDPOINT_TYPE = _error(114, "The request was sent to an endpoint of the wrong type.")
    UNSUPPORTED_ENDPOINT_TYPE = _error(115, "This endpoint type is not supported yet.")
    UNKNOWN_CONTROLLER_ID = _error(116, "This controller ID is not known.")
    UNKNOWN_SUBSCRIPTION_ID = _error(
        117, "Client sent a push telemetry request with an invalid or outdated subscription ID."
    )
    TELEMETRY_TOO_LARGE = _error(
        118,
        "Client sent a push telemetry request larger than the maximum size the broker will accept.",
    )
    INVALID_REGISTRATION = _error(
        119, "The controller has considered the broker registration to be invalid."
    )
    TRANSACTION_ABORTABLE = _error(
        120,
        "The server encountered an error with the transaction. The client can abort the "
        "transaction to continue using this transactional ID.",
    )
    INVALID_RECORD_STATE = _error(
        121, "The record state is invalid. The acknowledgement of delivery could not be completed."
    )
    SHARE_SESSION_NOT_FOUND = _error(122, "The share session was not found.", retriable=True)
    INVALID_SHARE_SESSION_EPOCH = _error(123, "The share session epoch is invalid.", retriable=True)
    FENCED_STATE_EPOCH = _error(
        124,
        "The share coordinator rejected the request because the share-group state epoch did not"
        " match.",
    )
    INVALID_VOTER_KEY = _error(125, "The voter key doesn't match the receiving replica's key.")
    DUPLICATE_VOTER = _error(126, "The voter is already part of the set of voters.")
    VOTER_NOT_FOUND = _error(127, "The voter is not part of the set of voters.")
    INVALID_REGULAR_EXPRESSION = _error(128, "The regular expression is not valid.")
    REBOOTSTRAP_REQUIRED = _error(
        129, "Client metadata is stale. The client should rebootstrap to obtain new metadata."
    )
    STREAMS_INVALID_TOPOLOGY = _error(130, "The supplied topology is invalid.")
    STREAMS_INVALID_TOPOLOGY_EPOCH = _error(131, "The supplied topology epoch is invalid.")
    STREAMS_TOPOLOGY_FENCED = _error(132, "The supplied topology epoch is outdated.")
    SHARE_SESSION_LIMIT_REACHED = _error(
        133, "The limit of share sessions has been reached.", retriable=True
    )


ERROR_CODES = {int(error): error for error in ErrorCode}
"""The error codes by their numbers."""
