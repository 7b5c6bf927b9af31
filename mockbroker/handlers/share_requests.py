"""What ShareFetch and ShareAcknowledge have in common: their checks, and acknowledgements.

The answer about acknowledgements has a row for each partition (`Acknowledged`). Errors of a request
itself have no message, those of the share partition do.

Source: KafkaApis.handleAcknowledgements, .validateAcknowledgementBatches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import AclOperation
from mockbroker.core.share.acknowledgement import AcknowledgementBatch, acknowledge
from mockbroker.core.share.configs import ShareGroupConfigs
from mockbroker.core.share.sessions import ShareTarget, TopicPartitionKey
from mockbroker.core.share.states import ACKNOWLEDGE_TYPES, RENEW_TYPE
from mockbroker.handlers.authorization import AuthHelper
from mockbroker.handlers.share_groups import is_member_id_valid, share_groups_enabled
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.share.manager import SharePartitionManager
    from mockbroker.core.share.partition import SharePartition
    from mockbroker.handlers.base import RequestContext

RENEW_SINCE = 2  # KIP-1222
HINTED = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))


class Batch(Protocol):
    """An AcknowledgementBatch of either API."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class PartitionOfRequest(Protocol):
    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[Batch]: ...


class TopicOfRequest(Protocol):
    topic_id: bytes

    @property
    def partitions(self) -> Sequence[PartitionOfRequest]: ...


class Acknowledged(NamedTuple):
    """The answer about one partition."""

    target: ShareTarget
    error: ErrorCode
    message: str | None = None


def refused(ctx: RequestContext, group_id: str | None, member_id: str | None) -> ErrorCode | None:
    """The error of a whole request, before its session is looked at."""
    if not share_groups_enabled(ctx):
        return ErrorCode.UNSUPPORTED_VERSION
    if group_id is None:
        return ErrorCode.INVALID_REQUEST
    if not AuthHelper(ctx).group(AclOperation.READ, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not is_member_id_valid(member_id):
        return ErrorCode.INVALID_REQUEST
    return None


def lock_duration_ms(ctx: RequestContext, group_id: str) -> int:
    """The time for which acquired records are locked, for the answer."""
    return ShareGroupConfigs(ctx.cluster.configs, group_id).lock_duration_ms


def target_of(ctx: RequestContext, topic_id: bytes, index: int) -> ShareTarget:
    """A partition that a request names."""
    topic = ctx.image.topics_by_id.get(topic_id)
    return ShareTarget(topic_id, index, None if topic is None else topic.name)


class TopicAccess:
    """The topics that the client may read, each checked once in a request."""

    __slots__ = ("_allowed", "_auth")

    def __init__(self, ctx: RequestContext) -> None:
        self._auth = AuthHelper(ctx)
        self._allowed: dict[str, bool] = {}

    def check_names(self, targets: Iterable[ShareTarget]) -> None:
        """Raises ApiError for an unknown topic id if there is an authorizer: the ResourcePattern of
        AuthHelper.filterByAuthorized throws for a topic without a name.
        """
        if self._auth.is_needed and any(target.topic is None for target in targets):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def allows(self, topic: str) -> bool:
        allowed = self._allowed.get(topic)
        if allowed is None:
            allowed = self._allowed[topic] = self._auth.topic(AclOperation.READ, topic)
        return allowed


class Acknowledgements:
    """The acknowledgements of one request. `then` gets a row for each partition, once."""

    def __init__(
        self,
        ctx: RequestContext,
        group_id: str,
        member_id: str,
        access: TopicAccess,
        then: Callable[[list[Acknowledged]], None],
        *,
        is_renew: bool,
    ) -> None:
        self._ctx = ctx
        self._manager: SharePartitionManager = ctx.broker.share_partitions
        self._group_id = group_id
        self._member_id = member_id
        self._access = access
        self._is_renew = is_renew
        self._then = then
        self._rows: dict[TopicPartitionKey, Acknowledged] = {}
        self._missing = 0

    def start(self, topics: Iterable[TopicOfRequest]) -> None:
        """Apply the acknowledgements."""
        batches: dict[ShareTarget, Sequence[Batch]] = {}
        for topic in topics:
            for named in topic.partitions:
                target = target_of(self._ctx, topic.topic_id, named.partition_index)
                if target.topic is None:
                    self._add(target, ErrorCode.UNKNOWN_TOPIC_ID)
                else:
                    batches[target] = named.acknowledgement_batches
        empty = []
        applied = []
        for target, those in batches.items():
            error = self._refusal(target, those)
            if error is not None:
                self._add(target, error)
            elif not those:
                empty.append(target)
            else:
                applied.append((target, [_batch(each) for each in those]))
        if applied:
            # A request without any acknowledgement has no rows for such partitions.
            for target in empty:
                self._add(target, ErrorCode.NONE)
        self._missing = len(applied) + 1
        for target, those_applied in applied:
            self._apply(target, those_applied)
        self._part_done()

    def _refusal(self, target: ShareTarget, batches: Sequence[Batch]) -> ErrorCode | None:
        may_renew = self._ctx.api_version >= RENEW_SINCE
        if not are_valid(batches, may_renew=may_renew, is_renew=self._is_renew):
            return ErrorCode.INVALID_REQUEST
        name = target.topic or ""
        if not self._access.allows(name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if self._ctx.image.partition(name, target.partition) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return None

    def _apply(self, target: ShareTarget, batches: Sequence[AcknowledgementBatch]) -> None:
        self._manager.release_left((self._group_id, self._member_id), target.key)
        share_partition = self._manager.get(self._group_id, target.topic_id, target.partition)
        if share_partition is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._add(target, error, error.message)
            self._part_done()
            return
        done = partial(self._applied, target, share_partition)
        acknowledge(share_partition, self._member_id, batches, done)
        share_partition.notify()

    def _applied(
        self, target: ShareTarget, share_partition: SharePartition, error: ApiError | None
    ) -> None:
        self._manager.fence_if(share_partition, error)
        if error is None:
            self._add(target, ErrorCode.NONE)
        else:
            self._add(target, error.error, error.message)
        self._part_done()

    def _add(self, target: ShareTarget, error: ErrorCode, message: str | None = None) -> None:
        self._rows[target.key] = Acknowledged(target, error, message)

    def _part_done(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._then(list(self._rows.values()))


def _batch(batch: Batch) -> AcknowledgementBatch:
    return AcknowledgementBatch(batch.first_offset, batch.last_offset, batch.acknowledge_types)


def are_valid(batches: Sequence[Batch], *, may_renew: bool, is_renew: bool) -> bool:
    """Whether the ranges are in order and have valid acknowledge types."""
    former_last = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last or first < former_last or not types:
            return False
        if len(types) > 1 and last - first != len(types) - 1:
            return False
        if any(each not in ACKNOWLEDGE_TYPES for each in types):
            return False
        if RENEW_TYPE in types and not (may_renew and is_renew):
            return False
        former_last = last
    return True
