"""Values with which a wide request is accepted: they name what exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mockbroker_protocol import ApiKey

INSTANCE = "instance"
STATE_GROUP = "state"
CLASSIC_GROUP, CONSUMER_GROUP, SHARE_GROUP, STREAMS_GROUP = (
    "classic",
    "consumer",
    "share",
    "streams",
)
NEW_GROUP = "new"

Values = Mapping[str, Any]
"""By the field's names from the request down, joined by dots: a value, a function of the number of
the element, or for an array its only element; `EMPTY` for an empty array.
"""
EMPTY: list[Any] = []
_MS = 60_000
_TOPIC, _GROUP_RESOURCE = 2, 32
_LITERAL, _ANY, _WRITE, _ALLOW = 3, 1, 4, 3


class Known(NamedTuple):
    """What exists in the cluster."""

    classic_member: str = ""
    classic_generation: int = 0
    consumer_epoch: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    consumer: str = ""
    share_member: str = ""
    """It has a share session, whose next epoch is 1."""
    new_member: str = ""
    streams_member: str = ""
    streams_epoch: int = 0
    log_dir: str = ""


def values_of(key: ApiKey, path: tuple[str, ...], known: Known) -> Values:
    """The values of a request whose array at `path` is long."""
    make = _BY_API.get(key)
    return {} if make is None else make(".".join(path), known)


def _produce(_: str, __: Known) -> Values:
    return {"transactional_id": None, "timeout_ms": _MS}


def _join_group(_: str, __: Known) -> Values:
    return {
        "group_id": "joining",
        "group_instance_id": INSTANCE,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": _MS,
    }


def _sync_group(_: str, known: Known) -> Values:
    return {
        "group_id": CLASSIC_GROUP,
        "member_id": known.classic_member,
        "generation_id": known.classic_generation,
        "group_instance_id": INSTANCE,
        "protocol_name": "range",
    }


def _create_topics(long: str, _: Known) -> Values:
    of_one = long.startswith("topics.")
    given = long.startswith("topics.assignments")
    return {
        "timeout_ms": _MS,
        "topics.name": lambda number: f"made-by-{long}" if of_one else f"made-{number}",
        "topics.num_partitions": -1 if given else 1,
        "topics.replication_factor": -1 if given else 1,
        "topics.assignments": EMPTY,
        "topics.assignments.partition_index": lambda number: number,
        "topics.assignments.broker_ids": 1,
        "topics.configs": EMPTY,
        "topics.configs.name": "retention.ms",
        "topics.configs.value": "1000",
    }


def _create_partitions(long: str, _: Known) -> Values:
    return {
        "timeout_ms": _MS,
        "topics.count": 25_000 if long.startswith("topics.") else 2,
        "topics.assignments": None,
        "topics.assignments.broker_ids": 1,
    }


def _delete_topics(_: str, __: Known) -> Values:
    return {"timeout_ms": _MS, "topics.topic_id": bytes(16)}


def _producer(_: str, known: Known) -> Values:
    return {
        "producer_id": known.producer_id,
        "producer_epoch": known.producer_epoch,
        "transactions.producer_id": known.producer_id,
        "transactions.producer_epoch": known.producer_epoch,
        "markers.producer_id": known.producer_id,
        "markers.producer_epoch": known.producer_epoch,
    }


def _log_dirs(long: str, known: Known) -> Values:
    return {} if long == "dirs" else {"dirs.path": known.log_dir}


def _credentials(_: str, __: Known) -> Values:
    return {
        "deletions": EMPTY,
        "upsertions.mechanism": 1,
        "upsertions.iterations": 4096,
        "upsertions.salt": b"salt",
        "upsertions.salted_password": bytes(32),
    }


def _share_group_offsets(_: str, __: Known) -> Values:
    return {"group_id": SHARE_GROUP}


def _create_acls(_: str, __: Known) -> Values:
    return {
        "creations.resource_type": _TOPIC,
        "creations.resource_pattern_type": _LITERAL,
        "creations.principal": lambda number: f"User:{number}",
        "creations.host": "*",
        "creations.operation": _WRITE,
        "creations.permission_type": _ALLOW,
    }


def _delete_acls(_: str, __: Known) -> Values:
    return {
        "filters.resource_type_filter": _TOPIC,
        "filters.resource_name_filter": lambda number: f"topic-{number}",
        "filters.pattern_type_filter": _LITERAL,
        "filters.principal_filter": None,
        "filters.host_filter": None,
        "filters.operation": _ANY,
        "filters.permission_type": _ANY,
    }


def _configs(long: str, _: Known) -> Values:
    if long == "resources":
        return {
            "resources.resource_type": _GROUP_RESOURCE,
            "resources.resource_name": lambda number: f"group-{number}",
            "resources.configs.name": "consumer.session.timeout.ms",
            "resources.configs.value": "45000",
        }
    return {"resources.configs.value": "1000"}


def _client_quotas(long: str, _: Known) -> Values:
    of_entity = long == "entries.entity"
    return {
        "entries.entity.entity_type": (lambda number: f"type-{number}")
        if of_entity
        else "client-id",
        "entries.ops.key": (
            (lambda number: f"key-{number}") if long == "entries.ops" else "producer_byte_rate"
        ),
        "entries.ops.value": 1e6,
    }


def _describe_client_quotas(_: str, __: Known) -> Values:
    return {"components.entity_type": lambda number: f"type-{number}", "components.match_type": 1}


def _list_config_resources(_: str, __: Known) -> Values:
    return {"resource_types": _TOPIC}


def _reassignments(_: str, __: Known) -> Values:
    return {"timeout_ms": _MS, "topics.partitions.replicas": 1}


def _consumer_group_heartbeat(long: str, known: Known) -> Values:
    values: dict[str, Any] = {
        "rebalance_timeout_ms": _MS,
        "instance_id": None,
        "rack_id": None,
        "subscribed_topic_regex": None,
        "server_assignor": None,
    }
    if long.startswith("topic_partitions"):
        return values | {
            "group_id": CONSUMER_GROUP,
            "member_id": known.consumer,
            "member_epoch": known.consumer_epoch,
            "subscribed_topic_names": None,
        }
    return values | {
        "group_id": NEW_GROUP,
        "member_id": known.new_member,
        "member_epoch": 0,
        "topic_partitions": EMPTY,
    }


def _share_group_heartbeat(_: str, known: Known) -> Values:
    return {
        "group_id": "new-share",
        "member_id": known.new_member,
        "member_epoch": 0,
        "rack_id": None,
    }


def _share_session(long: str, known: Known) -> dict[str, Any]:
    """A fetch makes a session; with acknowledgements and forgotten topics, it goes on with one."""
    goes_on = "acknowledgement_batches" in long or long.startswith("forgotten")
    return {
        "group_id": SHARE_GROUP,
        "member_id": known.share_member if goes_on else known.new_member,
        "share_session_epoch": 1 if goes_on else 0,
        "topics.partitions.acknowledgement_batches.acknowledge_types": 1,
    }


def _share_fetch(long: str, known: Known) -> Values:
    values = _share_session(long, known) | {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 26,
        "max_records": 1 << 20,
        "batch_size": 500,
        "is_renew_ack": False,
    }
    if "acknowledgement_batches" not in long:
        values["topics.partitions.acknowledgement_batches"] = EMPTY
    return values | {"topics" if long.startswith("forgotten") else "forgotten_topics_data": EMPTY}


def _share_acknowledge(_: str, known: Known) -> Values:
    return _share_session("acknowledgement_batches", known)


def _streams_group_heartbeat(long: str, known: Known) -> Values:
    topology = "topology.subtopologies."
    joins = "tasks" not in long
    return {
        "group_id": f"streams-{known.new_member}" if joins else STREAMS_GROUP,
        "member_id": known.new_member if joins else known.streams_member,
        "member_epoch": 0 if joins else known.streams_epoch,
        "active_tasks.subtopology_id": "0",
        "standby_tasks.subtopology_id": "0",
        "endpoint_information_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": _MS,
        "topology.epoch": 1,
        "user_endpoint": None,
        "active_tasks": EMPTY,
        "standby_tasks": EMPTY,
        "warmup_tasks": EMPTY,
        "client_tags": EMPTY,
        "task_offsets": None,
        "task_end_offsets": None,
        topology + "source_topics": lambda number: f"topic-{number % 2_000}",
        topology + "source_topic_regex": EMPTY,
        topology + "state_changelog_topics": EMPTY,
        topology + "state_changelog_topics.topic_configs": EMPTY,
        topology + "repartition_sink_topics": EMPTY,
        topology + "repartition_source_topics": EMPTY,
        topology + "repartition_source_topics.topic_configs": EMPTY,
        topology + "copartition_groups": EMPTY,
        topology + "copartition_groups.source_topics": EMPTY,
        topology + "copartition_groups.source_topic_regex": EMPTY,
        topology + "copartition_groups.repartition_source_topics": EMPTY,
    } | ({} if joins else {"topology": None})


def _share_group_state(_: str, __: Known) -> Values:
    batches = "topics.partitions.state_batches."
    return {
        "group_id": STATE_GROUP,
        "topics.partitions.leader_epoch": 0,
        batches + "first_offset": lambda number: number,
        batches + "last_offset": lambda number: number,
        batches + "delivery_count": 1,
    }


_BY_API: Mapping[ApiKey, Callable[[str, Known], Values]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.SYNC_GROUP: _sync_group,
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.TXN_OFFSET_COMMIT: _producer,
    ApiKey.ADD_PARTITIONS_TO_TXN: _producer,
    ApiKey.WRITE_TXN_MARKERS: _producer,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _log_dirs,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _credentials,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _share_group_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _share_group_offsets,
    ApiKey.CREATE_ACLS: _create_acls,
    ApiKey.DELETE_ACLS: _delete_acls,
    ApiKey.ALTER_CONFIGS: _configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configs,
    ApiKey.ALTER_CLIENT_QUOTAS: _client_quotas,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _describe_client_quotas,
    ApiKey.LIST_CONFIG_RESOURCES: _list_config_resources,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _reassignments,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _consumer_group_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: _share_group_heartbeat,
    ApiKey.SHARE_FETCH: _share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: _share_acknowledge,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _streams_group_heartbeat,
    **dict.fromkeys(
        (
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            ApiKey.DELETE_SHARE_GROUP_STATE,
        ),
        _share_group_state,
    ),
}
