"""Creates the internal topics of a streams group for a member, with the member's authorization.

A topic whose creation has failed is not tried again for two heartbeat intervals; the status of the
members has the error meanwhile. With `mockbroker.auto.created.at.once` the topics exist before the
group looks for them, so that a member gets its tasks with its first heartbeat.

Source: KafkaApis.handleStreamsGroupHeartbeat, AutoTopicCreationManager.createStreamsInternalTopics.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.configs.differences import AUTO_CREATED_AT_ONCE
from mockbroker.core.groups.streams.states import StatusCode
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.base import Parked, RequestContext, at_controller
from mockbroker.handlers.create_topics import create_for_broker
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from mockbroker.core.groups.streams.configured import CreatableTopic as MissingTopic
    from mockbroker.core.groups.streams.events import SentTopology
    from mockbroker.core.groups.streams.shard import StreamsGroups
    from mockbroker.handlers.authorization import AuthHelper
    from mockbroker_protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

CREATE_TOPICS_VERSION = 7
SHOWN_ERRORS_MAX = 3


class InternalTopics:
    """The internal topics of the group of one request."""

    __slots__ = ("_auth", "_creations", "_group_id")

    def __init__(self, auth: AuthHelper, group_id: str) -> None:
        self._auth = auth
        self._group_id = group_id
        self._creations = auth.ctx.broker.groups.topic_creations

    def add_details(
        self, response: StreamsGroupHeartbeatResponse, missing: Iterable[MissingTopic]
    ) -> list[MissingTopic]:
        """Add to the status why topics are not created; returns the topics to create."""
        topics = list(missing)
        status = next(
            each
            for each in response.status or ()
            if each.status_code == StatusCode.MISSING_INTERNAL_TOPICS
        )
        denied = self._denied(topics)
        if denied:
            status.status_detail += f"; Unauthorized to CREATE on topics {', '.join(denied)}."
            return []
        now_ms = self._auth.ctx.cluster.runtime.now_ms()
        failed = self._creations.errors([topic.name for topic in topics], now_ms)
        if failed:
            shown = [f"{name} ({failed[name]})" for name in list(failed)[:SHOWN_ERRORS_MAX]]
            more = len(failed) - len(shown)
            listed = ", ".join(shown) + (f" and {more} more" if more else "")
            status.status_detail += f"; Creation failed: {listed}."
        return topics

    def _denied(self, topics: Iterable[MissingTopic]) -> list[str]:
        auth = self._auth
        if auth.cluster(AclOperation.CREATE):
            return []
        return [each.name for each in topics if not auth.topic(AclOperation.CREATE, each.name)]

    def create_ahead(self, groups: StreamsGroups, topology: SentTopology) -> None:
        """Create the topics that a joining member will find missing, if they are created at
        once.
        """
        if not self._auth.ctx.cluster.config(AUTO_CREATED_AT_ONCE):
            return
        missing = groups.missing_topics(self._group_id, topology)
        if missing and not self._denied(missing):
            self.create(missing)

    def create(self, topics: Iterable[MissingTopic]) -> None:
        """Create topics, except those whose creation is under way or has failed just now."""
        ctx = self._auth.ctx
        begun = self._creations.begin(list(topics), ctx.cluster.runtime.now_ms())
        if not begun:
            return
        names = [topic.name for topic in begun]
        request = CreateTopicsRequest(
            timeout_ms=ctx.cluster.config_int("request.timeout.ms"),
            topics=[
                CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    configs=[CreatableTopicConfig(*each) for each in topic.configs.items()],
                )
                for topic in begun
            ],
        )
        context = _context(ctx)
        answer = at_controller(context, request, partial(create_for_broker, context, request))
        if isinstance(answer, Parked) and not answer.done:
            answer.on_complete = lambda: self._created(names, answer.response)
        else:
            self._created(names, answer.response if isinstance(answer, Parked) else answer)

    def _created(self, names: list[str], response: object) -> None:
        assert isinstance(response, CreateTopicsResponse)
        configs = self._auth.ctx.cluster.configs
        interval_ms = configs.group_value(self._group_id, "streams.heartbeat.interval.ms")
        assert isinstance(interval_ms, int)
        until_ms = self._auth.ctx.cluster.runtime.now_ms() + 2 * interval_ms
        errors = {
            each.name: each.error_message or _sentence(each.error_code)
            for each in response.topics
            if each.error_code
        }
        self._creations.end(names, errors, until_ms)


def _sentence(code: int) -> str:
    known = ErrorCode._value2member_map_[code]
    assert isinstance(known, ErrorCode)
    return known.message


def _context(ctx: RequestContext) -> RequestContext:
    """The context of a CreateTopics of the same client (TopicCreator.createTopicWithPrincipal)."""
    header = RequestHeader(
        api_key=ApiKey.CREATE_TOPICS,
        api_version=CREATE_TOPICS_VERSION,
        correlation_id=ctx.header.correlation_id,
        client_id=ctx.header.client_id,
    )
    return RequestContext(
        ctx.cluster, ctx.broker, ctx.listener, header, ctx.connection, ctx.cluster.runtime.now_ms()
    )
