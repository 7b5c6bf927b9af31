"""Clients that come and go leave no entry in any table of a cluster.

Each client has a member id, a connection, a producer id or a topic of its own. A table that keeps
one of them grows with the clients of a test run. The entries of every table are counted after some
lives and after more of them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mockbroker.handlers.base import ConnectionInfo
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.group_node import (
    GroupNode,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)
from tests.support.requests import Node, batch_of
from tests.support.share import ShareNode
from tests.support.streams_node import StreamsNode
from tests.support.tables import tables

FEW, MORE = 20, 60
# Timers of a life may still be in a heap: with the clock they leave, not with the life.
HEAPS = frozenset({"TimerHeap._heap", "DomainTimers._heap", "LazyTimerHeap._heap"})
Life = Callable[[int], None]


def over(node: Node) -> None:
    """The connection of a life is closed, and time passes."""
    node.cluster.brokers[1].connection_closed(ConnectionInfo(1, "127.0.0.1", 50_000))
    node.advance(1000)


def classic(node: GroupNode) -> Life:
    def live(_: int) -> None:
        member = node.ask(join_request("g")).member_id
        joining = node.send(join_request("g", member))
        node.advance(3000)
        generation = joining.response.generation_id
        node.ask(sync_request("g", member, generation, {member: b"x"}))
        node.ask(heartbeat_request("g", member, generation))
        node.ask(leave_request("g", member))
        over(node)

    return live


def consumer(node: GroupNode) -> Life:
    def live(number: int) -> None:
        def beat(epoch: int, **fields: object) -> int:
            request = ConsumerGroupHeartbeatRequest(
                group_id="g", member_id=f"m{number}", member_epoch=epoch, **fields
            )
            return node.ask(request, 1).member_epoch

        epoch = beat(
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex=f"t|x{number}",
            topic_partitions=[],
        )
        beat(epoch)
        beat(-1)
        over(node)

    return live


def streams(node: StreamsNode) -> Life:
    def live(number: int) -> None:
        member = f"m{number}"
        epoch = node.joins("g", member).member_epoch
        node.beats("g", member, epoch, {"0": [0, 1, 2]})
        node.beats("g", member, -1)
        over(node)

    return live


def vanished(node: StreamsNode) -> Life:
    """Members that send no more heartbeats."""

    def live(number: int) -> None:
        node.joins("g", f"m{number}")
        over(node)
        node.advance(50_000)

    return live


def share(node: GroupNode) -> Life:
    def live(number: int) -> None:
        def beat(epoch: int, **fields: object) -> int:
            request = ShareGroupHeartbeatRequest(
                group_id="g", member_id=f"m{number}", member_epoch=epoch, **fields
            )
            return node.ask(request, 1).member_epoch

        beat(beat(0, subscribed_topic_names=["t"]))
        beat(-1)
        over(node)

    return live


def sharing(node: ShareNode) -> Life:
    """Members that end their session by their connection, with records that they had acquired."""
    node.topic()

    def live(number: int) -> None:
        member = f"AAAAAAAAAAAAAAAAAA{number:04}"
        node.produce(batch_of(b"a"))
        node.share_fetch(0, node.wanted(0), member=member, max_wait_ms=0)
        node.share_fetch(1, member=member, max_wait_ms=0)
        node.close(member)
        over(node)
        node.persister.states.clear()
        node.persister.writes.clear()
        node.connections.clear()

    return live


def topics(node: Node) -> Life:
    def live(number: int) -> None:
        node.topic(f"x{number}")
        node.cluster.delete_topic(f"x{number}")
        over(node)

    return live


def producers(node: Node) -> Life:
    """Idempotent producers, each with a producer id of its own."""
    for name in ("producer.id.expiration.ms", "producer.id.expiration.check.interval.ms"):
        node.cluster.configs.dynamic_default[name] = "1000"
    node.cluster.configs.changed()
    node.topic()

    def live(number: int) -> None:
        batch = batch_of(b"a", timestamp=node.now_ms, producer_id=number, base_sequence=0)
        node.produce(batch)
        over(node)

    return live


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        (GroupNode, classic),
        (GroupNode, consumer),
        (StreamsNode, streams),
        (StreamsNode, vanished),
        (GroupNode, share),
        (ShareNode, sharing),
        (Node, topics),
        (Node, producers),
    ],
    ids=lambda each: each.__name__,
)
def test_what_comes_and_goes_leaves_no_entry(
    node: Callable[[], Node], kind: Callable[[Node], Life]
) -> None:
    made = node()
    live = kind(made)
    for number in range(FEW):
        live(number)
    few = tables(made.cluster)
    for number in range(FEW, MORE):
        live(number)
    more = tables(made.cluster)
    grown = {name: more[name] - few[name] for name in more if more[name] - few[name] >= FEW}
    assert {name: by for name, by in grown.items() if name not in HEAPS} == {}
