"""Kafka's error codes: one enum with the code, whether a client may retry, and one sentence each.

Codes and retriability are those of `org.apache.kafka.common.protocol.Errors` in 4.3: an error is
retriable when its exception extends `RetriableException`.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """An error code as it stands in a response (int16)."""

    retriable: bool
    sentence: str

    def __new__(cls, code: int, retriable: int, sentence: str) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = bool(retriable)
        member.sentence = sentence
        return member

    UNKNOWN_SERVER_ERROR = -1, 0, "The broker failed in a way that has no code of its own."
    NONE = 0, 0, "All went well."
    OFFSET_OUT_OF_RANGE = (
        1,
        0,
        "The offset lies before the log start or after the log end of the partition.",
    )
    CORRUPT_MESSAGE = (
        2,
        1,
        "A batch fails its checksum, exceeds its stated size or breaks the format.",
    )
    UNKNOWN_TOPIC_OR_PARTITION = 3, 1, "This broker does not know the topic or the partition."
    INVALID_FETCH_SIZE = 4, 0, "The requested fetch size makes no sense."
    LEADER_NOT_AVAILABLE = 5, 1, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = (
        6,
        1,
        "This broker is not the partition's leader, or holds no replica of it.",
    )
    REQUEST_TIMED_OUT = 7, 1, "The request was not finished within the time it allowed."
    BROKER_NOT_AVAILABLE = 8, 0, "The broker is not up."
    REPLICA_NOT_AVAILABLE = 9, 1, "The replica asked for is not on this broker or not ready."
    MESSAGE_TOO_LARGE = 10, 0, "A batch is larger than the topic's max.message.bytes."
    STALE_CONTROLLER_EPOCH = 11, 0, "A controller with a newer epoch has taken over."
    OFFSET_METADATA_TOO_LARGE = 12, 0, "The metadata string of an offset commit is too long."
    NETWORK_EXCEPTION = 13, 1, "The connection broke before the answer came."
    COORDINATOR_LOAD_IN_PROGRESS = (
        14,
        1,
        "The coordinator is still reading its partition and cannot answer yet.",
    )
    COORDINATOR_NOT_AVAILABLE = 15, 1, "No coordinator is up for this group or transactional id."
    NOT_COORDINATOR = 16, 1, "Another broker coordinates this group or transactional id."
    INVALID_TOPIC_EXCEPTION = 17, 0, "The topic name is not allowed, or the topic is internal."
    RECORD_LIST_TOO_LARGE = 18, 0, "The batches of the request exceed the segment size."
    NOT_ENOUGH_REPLICAS = (
        19,
        1,
        "Fewer replicas are in sync than min.insync.replicas asks for; nothing was written.",
    )
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        1,
        "The records were written, but too few replicas stayed in sync.",
    )
    INVALID_REQUIRED_ACKS = 21, 0, "acks must be 0, 1 or -1."
    ILLEGAL_GENERATION = 22, 0, "The generation is not the group's current one."
    INCONSISTENT_GROUP_PROTOCOL = (
        23,
        0,
        "The member's protocol type or protocols do not fit the group's.",
    )
    INVALID_GROUP_ID = 24, 0, "The group id is empty or not allowed here."
    UNKNOWN_MEMBER_ID = 25, 0, "The group has no such member."
    INVALID_SESSION_TIMEOUT = (
        26,
        0,
        "The session timeout is outside the bounds that the broker allows.",
    )
    REBALANCE_IN_PROGRESS = 27, 0, "The group is rebalancing; the member should join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, 0, "The offset commit would exceed the largest batch."
    TOPIC_AUTHORIZATION_FAILED = 29, 0, "The principal may not do this to the topic."
    GROUP_AUTHORIZATION_FAILED = 30, 0, "The principal may not do this to the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, 0, "The principal may not do this to the cluster."
    INVALID_TIMESTAMP = 32, 0, "A record's timestamp is outside the bounds that the topic accepts."
    UNSUPPORTED_SASL_MECHANISM = 33, 0, "The broker does not offer the SASL mechanism."
    ILLEGAL_SASL_STATE = 34, 0, "The request does not belong to this step of the SASL exchange."
    UNSUPPORTED_VERSION = 35, 0, "The broker does not speak this version of the API."
    TOPIC_ALREADY_EXISTS = 36, 0, "A topic of this name exists already."
    INVALID_PARTITIONS = (
        37,
        0,
        "The number of partitions is below one, or below the present number.",
    )
    INVALID_REPLICATION_FACTOR = (
        38,
        0,
        "The replication factor is below one or above the number of brokers.",
    )
    INVALID_REPLICA_ASSIGNMENT = (
        39,
        0,
        "The replica assignment names unknown, repeated or missing brokers.",
    )
    INVALID_CONFIG = 40, 0, "A configuration key or value is not valid."
    NOT_CONTROLLER = 41, 1, "This node is not the active controller."
    INVALID_REQUEST = 42, 0, "The request contradicts itself or the protocol."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, 0, "The record format of the log cannot do this."
    POLICY_VIOLATION = 44, 0, "A policy of the cluster forbids the request."
    OUT_OF_ORDER_SEQUENCE_NUMBER = (
        45,
        0,
        "The batch's sequence number does not follow the producer's last one.",
    )
    DUPLICATE_SEQUENCE_NUMBER = (
        46,
        0,
        "The batch repeats a sequence number that is no longer remembered exactly.",
    )
    INVALID_PRODUCER_EPOCH = 47, 0, "The producer's epoch is older than the one in force."
    INVALID_TXN_STATE = 48, 0, "The transaction is in a state that does not allow this step."
    INVALID_PRODUCER_ID_MAPPING = (
        49,
        0,
        "The producer id is not the one given to this transactional id.",
    )
    INVALID_TRANSACTION_TIMEOUT = (
        50,
        0,
        "The transaction timeout exceeds transaction.max.timeout.ms.",
    )
    CONCURRENT_TRANSACTIONS = 51, 1, "A transaction of this producer is still being completed."
    TRANSACTION_COORDINATOR_FENCED = (
        52,
        0,
        "The marker comes from a coordinator that has been replaced.",
    )
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, 0, "The principal may not use the transactional id."
    SECURITY_DISABLED = 54, 0, "The cluster has no authorizer or security feature to ask."
    OPERATION_NOT_ATTEMPTED = (
        55,
        0,
        "Another part of the request failed first, so this part was not tried.",
    )
    KAFKA_STORAGE_ERROR = 56, 1, "The log directory failed while it was read or written."
    LOG_DIR_NOT_FOUND = 57, 0, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, 0, "The credentials are wrong."
    UNKNOWN_PRODUCER_ID = 59, 0, "Nothing is remembered about the producer id any more."
    REASSIGNMENT_IN_PROGRESS = 60, 0, "The partition's replicas are being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, 0, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, 0, "The broker knows no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, 0, "The delegation token belongs to another principal."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        0,
        "Delegation tokens cannot be asked for over this kind of connection.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, 0, "The principal may not use delegation tokens."
    DELEGATION_TOKEN_EXPIRED = 66, 0, "The delegation token is past its expiry."
    INVALID_PRINCIPAL_TYPE = 67, 0, "The principal's type is not supported."
    NON_EMPTY_GROUP = 68, 0, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, 0, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, 1, "The broker holds no fetch session of this id."
    INVALID_FETCH_SESSION_EPOCH = 71, 1, "The fetch session expected another epoch."
    LISTENER_NOT_FOUND = 72, 1, "The leader has no listener like the one the request came in on."
    TOPIC_DELETION_DISABLED = 73, 0, "delete.topic.enable is false."
    FENCED_LEADER_EPOCH = 74, 1, "The leader epoch in the request is older than the broker's."
    UNKNOWN_LEADER_EPOCH = 75, 1, "The leader epoch in the request is newer than the broker's."
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        0,
        "The request's version cannot carry this compression type.",
    )
    STALE_BROKER_EPOCH = 77, 0, "The broker has registered again since it sent this."
    OFFSET_NOT_AVAILABLE = (
        78,
        1,
        "The high watermark has not caught up after a leader change; try again.",
    )
    MEMBER_ID_REQUIRED = (
        79,
        0,
        "The group asks the member to join again with the member id it was just given.",
    )
    PREFERRED_LEADER_NOT_AVAILABLE = 80, 1, "The preferred leader is not up or not in sync."
    GROUP_MAX_SIZE_REACHED = 81, 0, "The group has as many members as it may have."
    FENCED_INSTANCE_ID = 82, 0, "Another member has taken over this group.instance.id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, 1, "None of the replicas that may lead is up."
    ELECTION_NOT_NEEDED = 84, 1, "The partition has the leader that the election would give it."
    NO_REASSIGNMENT_IN_PROGRESS = 85, 0, "There is no reassignment of this partition to cancel."
    GROUP_SUBSCRIBED_TO_TOPIC = (
        86,
        0,
        "Offsets cannot be deleted while the group subscribes to the topic.",
    )
    INVALID_RECORD = 87, 0, "The broker refused a record or its batch."
    UNSTABLE_OFFSET_COMMIT = (
        88,
        1,
        "A transaction has offsets pending that are neither committed nor aborted.",
    )
    THROTTLING_QUOTA_EXCEEDED = 89, 1, "The quota on topic changes is used up for now."
    PRODUCER_FENCED = (
        90,
        0,
        "A producer with the same transactional id and a newer epoch has taken over.",
    )
    RESOURCE_NOT_FOUND = 91, 0, "The request names a resource that does not exist."
    DUPLICATE_RESOURCE = 92, 0, "The request names a resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, 0, "The credential does not meet the rules."
    INCONSISTENT_VOTER_SET = 94, 0, "The two sides disagree about who the quorum's voters are."
    INVALID_UPDATE_VERSION = 95, 0, "The update is based on a version that is no longer current."
    FEATURE_UPDATE_FAILED = 96, 0, "The finalized features could not be changed."
    PRINCIPAL_DESERIALIZATION_FAILURE = (
        97,
        0,
        "The principal inside a forwarded request could not be read.",
    )
    SNAPSHOT_NOT_FOUND = 98, 0, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, 0, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, 1, "This broker does not know the topic id."
    DUPLICATE_BROKER_REGISTRATION = 101, 0, "A broker of this id is registered and alive."
    BROKER_ID_NOT_REGISTERED = 102, 0, "No broker of this id is registered."
    INCONSISTENT_TOPIC_ID = 103, 1, "The log's topic id differs from the one in the request."
    INCONSISTENT_CLUSTER_ID = 104, 0, "The cluster id in the request is not this cluster's."
    TRANSACTIONAL_ID_NOT_FOUND = 105, 0, "Nothing is known about the transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, 1, "The fetch session mixes topic ids with topic names."
    INELIGIBLE_REPLICA = 107, 0, "The replica may not join the in-sync replicas now."
    NEW_LEADER_ELECTED = 108, 0, "The change to the partition made another replica its leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, 0, "The offset is only in remote storage."
    FENCED_MEMBER_EPOCH = (
        110,
        0,
        "The coordinator has fenced this member epoch; the member must rejoin.",
    )
    UNRELEASED_INSTANCE_ID = 111, 0, "The group.instance.id is still in use by another member."
    UNSUPPORTED_ASSIGNOR = 112, 0, "The group coordinator offers no such assignor."
    STALE_MEMBER_EPOCH = (
        113,
        0,
        "The member's epoch is behind; it should try again after its next heartbeat.",
    )
    MISMATCHED_ENDPOINT_TYPE = (
        114,
        0,
        "The request went to a broker but meant a controller, or the reverse.",
    )
    UNSUPPORTED_ENDPOINT_TYPE = 115, 0, "The endpoint type is not supported by this API."
    UNKNOWN_CONTROLLER_ID = 116, 0, "No controller of this id is known."
    UNKNOWN_SUBSCRIPTION_ID = 117, 0, "The telemetry subscription has changed; ask for it again."
    TELEMETRY_TOO_LARGE = 118, 0, "The telemetry exceeds the size that the broker accepts."
    INVALID_REGISTRATION = 119, 0, "The controller refused the broker's registration."
    TRANSACTION_ABORTABLE = (
        120,
        0,
        "The transaction must be aborted; afterwards the producer may go on.",
    )
    INVALID_RECORD_STATE = 121, 0, "The record is not in a state that allows this acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, 1, "The broker holds no such share session."
    INVALID_SHARE_SESSION_EPOCH = 123, 1, "The share session expected another epoch."
    FENCED_STATE_EPOCH = 124, 0, "The share state epoch is older than the one in force."
    INVALID_VOTER_KEY = 125, 0, "The voter's id and directory id do not match the node's."
    DUPLICATE_VOTER = 126, 0, "The voter is in the set already."
    VOTER_NOT_FOUND = 127, 0, "The voter is not in the set."
    INVALID_REGULAR_EXPRESSION = 128, 0, "The regular expression cannot be parsed."
    REBOOTSTRAP_REQUIRED = 129, 0, "The client should start again from its bootstrap servers."
    STREAMS_INVALID_TOPOLOGY = 130, 0, "The streams topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, 0, "The streams topology epoch is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, 0, "The streams topology epoch is out of date."
    SHARE_SESSION_LIMIT_REACHED = 133, 1, "The broker holds as many share sessions as it may."
