"""Topics: create, alter and delete them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.alter import alter_incrementally, set_or_deleted
from mockbroker.core.errors import ApiError
from mockbroker.core.replication.topic_plans import MAX_RECORDS_PER_USER_OP
from mockbroker.core.security.acls import ResourceType
from mockbroker.core.validation import Count, Positive, Range, ValidationError
from mockbroker.core.views.topics import TopicView, topic_of, topic_view
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.types import parse_integer

PartitionCount = Annotated[int, Range(1, MAX_RECORDS_PER_USER_OP)]

endpoints = ApiEndpoints()

TOPICS = "/v1/topics"
REFUSED = (404, 409)


class NewTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic. Without a number the brokers' default applies.

    `assignments` ({partition: [replica, …]}) excludes `partitions` and `replication_factor`; the
    first replica of a partition is its preferred leader.
    """

    name: str
    partitions: PartitionCount | None = None
    replication_factor: Positive | None = None
    assignments: dict[str, list[Count]] | None = None
    configs: dict[str, str] = {}


class AlterTopic(msgspec.Struct, frozen=True, kw_only=True):
    """`partitions` is the new total; `configs` are set, or removed if null."""

    partitions: Positive | None = None
    configs: dict[str, str | None] = {}


@endpoints.post(TOPICS, "Create a topic", body=NewTopic, created=True, problems=REFUSED)
async def create(backend: AdminBackend, call: EndpointCall) -> TopicView:
    return await backend.cluster(lambda cluster: _create(cluster, call.body))


@endpoints.patch(
    f"{TOPICS}/{{topic}}",
    "Add partitions to a topic, and change its configs",
    body=AlterTopic,
    problems=REFUSED,
)
async def alter(backend: AdminBackend, call: EndpointCall) -> TopicView:
    return await backend.cluster(lambda cluster: _alter(cluster, call.path["topic"], call.body))


@endpoints.delete(f"{TOPICS}/{{topic}}", "Delete a topic", problems=REFUSED)
async def delete(backend: AdminBackend, call: EndpointCall) -> None:
    def carry_out(cluster: Cluster) -> None:
        cluster.delete_topic(topic_of(cluster, call.path["topic"]).name)

    await backend.cluster(carry_out)


def _create(cluster: Cluster, wanted: NewTopic) -> TopicView:
    assignments = None
    if wanted.assignments is not None:
        if wanted.partitions is not None or wanted.replication_factor is not None:
            raise ValidationError("assignments", "it excludes partitions and replication_factor")
        assignments = {}
        for index, replicas in wanted.assignments.items():
            partition = parse_integer(index, 0)
            if partition is None:
                raise ValidationError("assignments", "its names are partitions: numbers from 0")
            assignments[partition] = replicas
    topic = cluster.create_topic(
        wanted.name,
        -1 if wanted.partitions is None else wanted.partitions,
        -1 if wanted.replication_factor is None else wanted.replication_factor,
        assignments=assignments,
        configs=wanted.configs,
    )
    return topic_view(topic)


def _alter(cluster: Cluster, name: str, wanted: AlterTopic) -> TopicView:
    topic = topic_of(cluster, name)
    more = (wanted.partitions or 0) - len(topic.partitions)
    if more > MAX_RECORDS_PER_USER_OP:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"partitions: one request adds at most {MAX_RECORDS_PER_USER_OP}, not {more}",
        )
    changes = set_or_deleted(wanted.configs)
    resource = (int(ResourceType.TOPIC), name)
    if changes:  # before anything changes
        alter_incrementally(cluster, None, resource, changes, validate_only=True)
    if wanted.partitions is not None:
        cluster.topic_control.add_partitions(topic, wanted.partitions)
    if changes:
        alter_incrementally(cluster, None, resource, changes, validate_only=False)
    return topic_view(topic_of(cluster, name))
