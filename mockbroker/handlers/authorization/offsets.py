"""The offsets of groups: kept, told and forgotten by who may read group and topic."""

from __future__ import annotations

import msgspec

from mockbroker.core.security.acls import Operation
from mockbroker.handlers.authorization.access import (
    Access,
    Go,
    after,
    group,
    guard,
    needs,
    split,
    topic,
    transactional_id,
)
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages import offset_fetch as fetching
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from mockbroker_protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from mockbroker_protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

O = Operation  # noqa: E741 - as in the tables of Kafka
GROUP_DENIED = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
TOPIC_DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
UNKNOWN_ID = int(ErrorCode.UNKNOWN_TOPIC_ID)
TRANSACTION_DENIED = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

TOPIC_IDS_SINCE = 10
FETCH_BATCHES_SINCE = 8
FETCH_GROUP_ERROR_SINCE = 2
INVALID_OFFSET = -1

_OF_GROUP = "`GROUP_AUTHORIZATION_FAILED`"
_OF_TOPIC = "`TOPIC_AUTHORIZATION_FAILED` for it"


def _name(access: Access, name: str, topic_id: bytes) -> str | None:
    """The name of a topic that a request names by name or, since v10, by id; None if unknown."""
    if access.ctx.api_version < TOPIC_IDS_SINCE:
        return name
    found = access.ctx.image.topics_by_id.get(topic_id)
    return None if found is None else found.name


# -- OffsetCommit ----------------------------------------------------------------------------------


@guard(
    ApiKey.OFFSET_COMMIT,
    needs(group(O.READ), otherwise=_OF_GROUP),
    needs(topic(O.READ), about="each", otherwise=_OF_TOPIC),
)
def offset_commit(access: Access, request: OffsetCommitRequest, go: Go) -> object:
    if not access.group(O.READ, request.group_id):
        return OffsetCommitResponse(
            topics=[_commit_refused(t, t.name, GROUP_DENIED) for t in request.topics]
        )
    names = [_name(access, t.name, t.topic_id) for t in request.topics]
    refused = [
        _commit_refused(t, name, TOPIC_DENIED)
        for t, name in zip(request.topics, names, strict=True)
        if name is not None and not access.topic(O.READ, name)
    ]
    if not refused:
        return go(request)
    granted = [
        t
        for t, name in zip(request.topics, names, strict=True)
        if name is None or access.topic(O.READ, name)
    ]

    def tell(response: OffsetCommitResponse) -> OffsetCommitResponse:
        response.topics = refused + response.topics
        return response

    return after(go(msgspec.structs.replace(request, topics=granted)), tell)


def _commit_refused(
    wanted: OffsetCommitRequestTopic, name: str, error: int
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=name,
        topic_id=wanted.topic_id,
        partitions=[
            OffsetCommitResponsePartition(p.partition_index, error) for p in wanted.partitions
        ],
    )


# -- TxnOffsetCommit -------------------------------------------------------------------------------


@guard(
    ApiKey.TXN_OFFSET_COMMIT,
    needs(transactional_id(O.WRITE), otherwise="`TRANSACTIONAL_ID_AUTHORIZATION_FAILED`"),
    needs(group(O.READ), otherwise=_OF_GROUP),
    needs(topic(O.READ), about="each", otherwise=_OF_TOPIC),
)
def txn_offset_commit(access: Access, request: TxnOffsetCommitRequest, go: Go) -> object:
    error = 0
    if not access.transactional_id(O.WRITE, request.transactional_id):
        error = TRANSACTION_DENIED
    elif not access.group(O.READ, request.group_id):
        error = GROUP_DENIED
    if error:
        return TxnOffsetCommitResponse(topics=[_txn_refused(t, error) for t in request.topics])
    granted, denied = split(request.topics, lambda t: access.topic(O.READ, t.name))
    if not denied:
        return go(request)
    refused = [_txn_refused(t, TOPIC_DENIED) for t in denied]

    def tell(response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
        response.topics = refused + response.topics
        return response

    return after(go(msgspec.structs.replace(request, topics=granted)), tell)


def _txn_refused(wanted: TxnOffsetCommitRequestTopic, error: int) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        wanted.name,
        [TxnOffsetCommitResponsePartition(p.partition_index, error) for p in wanted.partitions],
    )


# -- OffsetDelete ----------------------------------------------------------------------------------


@guard(
    ApiKey.OFFSET_DELETE,
    needs(group(O.DELETE), otherwise=_OF_GROUP),
    needs(topic(O.READ), about="each", otherwise=_OF_TOPIC),
)
def offset_delete(access: Access, request: OffsetDeleteRequest, go: Go) -> object:
    if not access.group(O.DELETE, request.group_id):
        return OffsetDeleteResponse(error_code=GROUP_DENIED)
    granted, denied = split(request.topics, lambda t: access.topic(O.READ, t.name))
    refused = [
        OffsetDeleteResponseTopic(
            t.name,
            [OffsetDeleteResponsePartition(p.partition_index, TOPIC_DENIED) for p in t.partitions],
        )
        for t in denied
    ]

    def tell(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
        if not response.error_code:
            response.topics = refused + response.topics
        return response

    return after(go(msgspec.structs.replace(request, topics=granted)), tell)


# -- OffsetFetch -----------------------------------------------------------------------------------


@guard(
    ApiKey.OFFSET_FETCH,
    needs(group(O.DESCRIBE), about="each", otherwise=f"{_OF_GROUP} for it"),
    needs(topic(O.DESCRIBE), about="each one named", otherwise=_OF_TOPIC),
    needs(topic(O.DESCRIBE), about="of all that the group has", otherwise="left out"),
)
def offset_fetch(access: Access, request: OffsetFetchRequest, go: Go) -> object:
    if access.ctx.api_version < FETCH_BATCHES_SINCE:
        return _fetch_of_one(access, request, go)
    asked = request.groups
    granted, denied = split(asked, lambda g: access.group(O.DESCRIBE, g.group_id))
    lines = {
        id(g): fetching.OffsetFetchResponseGroup(g.group_id, error_code=GROUP_DENIED)
        for g in denied
    }
    reduced, refused = [], []
    for wanted in granted:
        topics, others = _split_topics(access, wanted.topics)
        reduced.append(msgspec.structs.replace(wanted, topics=topics))
        refused.append(others)

    def tell(response: OffsetFetchResponse) -> OffsetFetchResponse:
        for wanted, line, others in zip(granted, response.groups, refused, strict=True):
            lines[id(wanted)] = line
            if line.error_code:
                continue
            if wanted.topics is None:
                line.topics = [t for t in line.topics if _may_see(access, t.name, t.topic_id)]
            elif others:
                line.topics = _refused_last(wanted, [*line.topics, *others])
        response.groups = [lines[id(g)] for g in asked]
        return response

    return after(go(msgspec.structs.replace(request, groups=reduced)), tell)


def _refused_last(
    wanted: fetching.OffsetFetchRequestGroup, topics: list[fetching.OffsetFetchResponseTopics]
) -> list[fetching.OffsetFetchResponseTopics]:
    """Topics that may not be or are not known come last, in the order of the request."""
    places = {(t.name, t.topic_id): place for place, t in enumerate(wanted.topics or ())}
    told, refused = split(
        topics,
        lambda t: all(p.error_code not in (TOPIC_DENIED, UNKNOWN_ID) for p in t.partitions[:1]),
    )
    refused.sort(key=lambda t: places.get((t.name, t.topic_id), 0))
    return told + refused


def _may_see(access: Access, name: str, topic_id: bytes) -> bool:
    known = _name(access, name, topic_id)
    return known is None or access.topic(O.DESCRIBE, known)


def _split_topics(
    access: Access, topics: list[fetching.OffsetFetchRequestTopics] | None
) -> tuple[
    list[fetching.OffsetFetchRequestTopics] | None, list[fetching.OffsetFetchResponseTopics]
]:
    """What the handler is to look up, and the answers for the others."""
    if topics is None:
        return None, []
    granted, denied = split(topics, lambda t: _may_see(access, t.name, t.topic_id))
    return granted, [
        fetching.OffsetFetchResponseTopics(
            name=t.name,
            topic_id=t.topic_id,
            partitions=[
                fetching.OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=INVALID_OFFSET,
                    error_code=TOPIC_DENIED,
                )
                for index in t.partition_indexes
            ],
        )
        for t in denied
    ]


def _fetch_of_one(access: Access, request: OffsetFetchRequest, go: Go) -> object:
    """Before v8: one group, with topics of an older shape."""
    if not access.group(O.DESCRIBE, request.group_id):
        if access.ctx.api_version >= FETCH_GROUP_ERROR_SINCE:
            return OffsetFetchResponse(error_code=GROUP_DENIED)
        topics = [_old_refused(t, GROUP_DENIED) for t in request.topics or ()]
        return OffsetFetchResponse(topics=topics)
    if request.topics is None:

        def hide(response: OffsetFetchResponse) -> OffsetFetchResponse:
            response.topics = [t for t in response.topics if access.topic(O.DESCRIBE, t.name)]
            return response

        return after(go(request), hide)
    granted, denied = split(request.topics, lambda t: access.topic(O.DESCRIBE, t.name))
    refused = [_old_refused(t, TOPIC_DENIED) for t in denied]

    def tell(response: OffsetFetchResponse) -> OffsetFetchResponse:
        if not response.error_code:
            response.topics = [*response.topics, *refused]
        return response

    return after(go(msgspec.structs.replace(request, topics=granted)), tell)


def _old_refused(
    wanted: fetching.OffsetFetchRequestTopic, error: int
) -> fetching.OffsetFetchResponseTopic:
    return fetching.OffsetFetchResponseTopic(
        wanted.name,
        [
            fetching.OffsetFetchResponsePartition(
                partition_index=index, committed_offset=INVALID_OFFSET, error_code=error
            )
            for index in wanted.partition_indexes
        ],
    )
