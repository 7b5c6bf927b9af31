"""Holding back a group's answer until what it tells of is replicated.

A coordinator writes to its partition of `__consumer_offsets` with acks=all, and answers when the
high watermark has passed what is written. As long as followers are caught up that is so before the
handler returns, and nothing here costs more than a look.

Past `offsets.commit.timeout.ms` the client gets COORDINATOR_NOT_AVAILABLE, although the write may
well come to count later; when the leadership is lost meanwhile, NOT_COORDINATOR.

Source: CoordinatorRuntime and its DeferredEventQueue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mockbroker.core.topic import GROUP_METADATA_TOPIC
from mockbroker.handlers.base import Parked, RequestContext
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.partition import Partition

H = TypeVar("H", bound=Callable[..., object])


def replicated(handler: H) -> H:
    """Let the answers of a group's API wait for the followers of the group's partition."""
    handle = cast("Callable[[RequestContext, Any], object]", handler)

    @wraps(handler)
    def wrapper(ctx: RequestContext, request: Any) -> object:
        reply = handle(ctx, request)
        if isinstance(reply, Parked) and not reply.done:
            later: Parked[Any] = Parked()
            reply.on_complete = lambda: _pass_on(ctx, request, reply.response, later)
            return later
        if ctx.cluster.replication.is_idle:
            return reply
        response = reply.response if isinstance(reply, Parked) else reply
        later = Parked()
        _pass_on(ctx, request, response, later)
        return later

    return cast("H", wrapper)


def _pass_on(ctx: RequestContext, request: Any, response: Any, later: Parked[Any]) -> None:
    """Complete `later` now, or when everything written so far is replicated."""
    if not ctx.cluster.replication.is_idle:
        for partition in _partitions(ctx, request):
            if not is_replicated(partition):

                def answer(error: ErrorCode) -> None:
                    if error is not ErrorCode.NONE:
                        _fail(response, error)
                    later.complete(response)

                when_replicated(ctx, partition, answer)
                return
    later.complete(response)


def _partitions(ctx: RequestContext, request: Any) -> Iterator[Partition]:
    """The partitions that this broker leads and the request's groups belong to."""
    cluster = ctx.cluster
    names = request.groups_names if hasattr(request, "groups_names") else (request.group_id,)
    if GROUP_METADATA_TOPIC in cluster.topics:
        for name in names:
            index = cluster.find_coordinator_partition(name)
            partition = cluster.partition(GROUP_METADATA_TOPIC, index)
            if partition is not None and partition.leader_id == ctx.broker.node_id:
                yield partition


def is_replicated(partition: Partition) -> bool:
    """Whether all in the ISR have all that is written."""
    return partition.high_watermark >= partition.log_end_offset


def when_replicated(
    ctx: RequestContext, partition: Partition, then: Callable[[ErrorCode], None]
) -> None:
    """Call `then` when all that is written to the partition by now is replicated.

    It gets NONE, or what a client is to be told instead: COORDINATOR_NOT_AVAILABLE when time is up,
    NOT_COORDINATOR when the leadership is lost.
    """
    partition.watch(_Wait(ctx, partition, then))


class _Wait:
    """Waits for the high watermark of one partition."""

    __slots__ = ("_node_id", "_partition", "_required_offset", "_then", "_timer")

    def __init__(
        self, ctx: RequestContext, partition: Partition, then: Callable[[ErrorCode], None]
    ) -> None:
        self._node_id = ctx.broker.node_id
        self._partition = partition
        self._required_offset = partition.log_end_offset
        self._then = then
        due_ms = ctx.cluster.now_ms() + ctx.cluster.config_int("offsets.commit.timeout.ms")
        self._timer = ctx.cluster.timers.call_at(due_ms, self._time_out)

    def partition_changed(self, partition: Partition) -> None:
        if partition.leader_id != self._node_id or partition.deleted:
            self._finish(ErrorCode.NOT_COORDINATOR)
        elif partition.high_watermark >= self._required_offset:
            self._finish(ErrorCode.NONE)

    def _time_out(self) -> None:
        self._finish(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _finish(self, error: ErrorCode) -> None:
        self._timer.cancel()
        self._partition.unwatch(self)
        self._then(error)


def _fail(response: Any, error: ErrorCode) -> None:
    """Put an error where the response says how things went, unless there is another already."""
    if hasattr(response, "error_code"):
        places = [response]
    elif hasattr(response, "results"):
        places = response.results
    else:
        places = [partition for topic in response.topics for partition in topic.partitions]
    for place in places:
        if place.error_code == ErrorCode.NONE:
            place.error_code = int(error)
