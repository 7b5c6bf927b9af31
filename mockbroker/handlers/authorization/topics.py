"""Topics: who may create them, let them grow and delete them."""

from __future__ import annotations

from collections import Counter

import msgspec

from mockbroker.core.security.acls import Operation
from mockbroker.handlers.authorization.access import (
    Access,
    Go,
    after,
    cluster,
    guard,
    needs,
    split,
    topic,
)
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from mockbroker_protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from mockbroker_protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from mockbroker_protocol.types import ZERO_UUID

O = Operation  # noqa: E741 - as in the tables of Kafka
DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
SENTENCE = ErrorCode.TOPIC_AUTHORIZATION_FAILED.sentence
_OF_TOPIC = "`TOPIC_AUTHORIZATION_FAILED` for it"


@guard(
    ApiKey.CREATE_TOPICS,
    needs(cluster(O.CREATE), topic(O.CREATE), about="each", otherwise=_OF_TOPIC),
    needs(
        topic(O.DESCRIBE_CONFIGS),
        about="each, to be told its configs",
        otherwise="`TOPIC_AUTHORIZATION_FAILED` in their place",
    ),
)
def create_topics(access: Access, request: CreateTopicsRequest, go: Go) -> object:
    """A name that stands twice is refused for that, whoever asks."""
    counts = Counter(t.name for t in request.topics)
    everywhere = access.cluster(O.CREATE)
    granted, denied = split(
        request.topics,
        lambda t: everywhere or counts[t.name] > 1 or access.topic(O.CREATE, t.name),
    )

    def tell(response: CreateTopicsResponse) -> CreateTopicsResponse:
        for line in response.topics:
            if not line.error_code and not access.topic(O.DESCRIBE_CONFIGS, line.name):
                line.topic_config_error_code = DENIED
                line.num_partitions = line.replication_factor = -1
                line.configs = []
        response.topics += [
            CreatableTopicResult(name=t.name, error_code=DENIED, error_message=SENTENCE)
            for t in denied
        ]
        return response

    return after(go(msgspec.structs.replace(request, topics=granted)), tell)


@guard(ApiKey.CREATE_PARTITIONS, needs(topic(O.ALTER), about="each", otherwise=_OF_TOPIC))
def create_partitions(access: Access, request: CreatePartitionsRequest, go: Go) -> object:
    counts = Counter(t.name for t in request.topics)
    granted, denied = split(
        request.topics, lambda t: counts[t.name] > 1 or access.topic(O.ALTER, t.name)
    )

    def tell(response: CreatePartitionsResponse) -> CreatePartitionsResponse:
        response.results += [
            CreatePartitionsTopicResult(name=t.name, error_code=DENIED, error_message=None)
            for t in denied
        ]
        return response

    return after(go(msgspec.structs.replace(request, topics=granted)), tell)


@guard(
    ApiKey.DELETE_TOPICS,
    needs(cluster(O.DELETE), topic(O.DELETE), about="each", otherwise=_OF_TOPIC),
    needs(
        cluster(O.DELETE),
        topic(O.DESCRIBE),
        about="each",
        otherwise="the same, whether the topic exists or not",
    ),
)
def delete_topics(access: Access, request: DeleteTopicsRequest, go: Go) -> object:
    """Who may not describe a topic does not learn whether it is there, or what its name is."""
    config = access.ctx.cluster.config
    if not config("delete.topic.enable") or request.timeout_ms <= 0 or access.cluster(O.DELETE):
        return go(request)
    named = Counter([*request.topic_names, *(t.name for t in request.topics if _by_name(t))])
    ids = Counter(t.topic_id for t in request.topics if _by_id(t))
    refused: list[DeletableTopicResult] = []

    def may_name(name: str) -> bool:
        if named[name] > 1 or _may_delete(access, name):
            return True
        refused.append(_result(name))
        return False

    def may_delete(wanted: DeleteTopicState) -> bool:
        if _by_name(wanted):
            return may_name(wanted.name or "")
        found = access.ctx.image.topics_by_id.get(wanted.topic_id)
        if not _by_id(wanted) or ids[wanted.topic_id] > 1 or found is None:
            return True
        if access.topic(O.DELETE, found.name):
            return True
        known = access.topic(O.DESCRIBE, found.name)
        refused.append(_result(found.name if known else None, wanted.topic_id))
        return False

    names = [name for name in request.topic_names if may_name(name)]
    topics = [wanted for wanted in request.topics if may_delete(wanted)]

    def tell(response: DeleteTopicsResponse) -> DeleteTopicsResponse:
        response.responses += refused
        return response

    return after(go(msgspec.structs.replace(request, topic_names=names, topics=topics)), tell)


def _by_name(wanted: DeleteTopicState) -> bool:
    return wanted.name is not None and wanted.topic_id == ZERO_UUID


def _by_id(wanted: DeleteTopicState) -> bool:
    return wanted.name is None and wanted.topic_id != ZERO_UUID


def _may_delete(access: Access, name: str) -> bool:
    """Whether a topic may be deleted; who may describe one that is missing is told that."""
    if not access.topic(O.DESCRIBE, name):
        return False
    return name not in access.ctx.image.topics or access.topic(O.DELETE, name)


def _result(name: str | None, topic_id: bytes = ZERO_UUID) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=DENIED, error_message=SENTENCE
    )
