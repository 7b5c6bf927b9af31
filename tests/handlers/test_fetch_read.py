"""Targets of a fetch session that rest: each answer is as if the broker looked at every target.

Two clusters have the same history. In one of them no target rests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.fetching import fetch_session
from mockbroker.core.fetching.fetch_session import FetchSession
from mockbroker.handlers import fetch_read
from mockbroker.handlers.base import Parked
from mockbroker.handlers.fetch import fetch
from mockbroker.handlers.fetch_read import FetchReader
from mockbroker.handlers.produce import produce
from mockbroker_protocol.messages.fetch import FetchResponse, ForgottenTopic
from tests.support.requests import Node, batch_of, done, fetch_request, produce_request

NODES = (1, 2, 3)
TOPICS = ("a", "b")
PARTITIONS = (0, 1)
PLACES = [(topic, partition) for topic in TOPICS for partition in PARTITIONS]
Step = tuple[Any, ...]
REFUSED = (ActionError, ApiError, KeyError)

node_ids = st.sampled_from(NODES)
places = st.sampled_from(PLACES)
released = st.booleans()
offsets = st.integers(0, 6)
END, STABLE = -10, -11  # the high watermark and the last stable offset, as offsets of a fetch
fetched_offsets = st.sampled_from((END, END, END, STABLE, 0, 1))

produces = st.tuples(st.just("produce"), st.lists(places, min_size=1, unique=True), st.booleans())
fetches = st.tuples(
    st.just("fetch"), node_ids, st.lists(st.tuples(places, fetched_offsets), max_size=4),
    st.lists(places, max_size=1), st.sampled_from((0, 0, 1)), st.sampled_from((0, 300)),
    st.sampled_from((1, 1, 200)),
)  # fmt: skip
changes = st.one_of(
    st.tuples(st.just("open"), node_ids, st.sampled_from((12, 13)), fetched_offsets),
    st.tuples(st.just("close"), node_ids),
    st.tuples(st.just("pass"), st.sampled_from((1, 100, 400, 31_000))),
    st.tuples(st.just("move_leader"), places, node_ids),
    st.tuples(st.just("delete_records"), places, offsets),
    st.tuples(st.just("set_high_watermark"), places, offsets),
    st.tuples(st.just("hold_high_watermark"), places, released),
    st.tuples(st.just("hold_last_stable_offset"), places, released),
    st.tuples(st.just("lag_follower"), places, node_ids, released),
    st.tuples(st.just("stop_broker"), node_ids, st.sampled_from(("controlled", "unclean"))),
    st.tuples(st.just("start_broker"), node_ids),
    st.tuples(st.just("cut_network"), node_ids),
    st.tuples(st.just("heal_network")),
    st.tuples(st.just("recreate_topic"), st.sampled_from(TOPICS)),
)
# What clients do between two changes.
rounds = st.tuples(
    st.lists(fetches, max_size=2), st.lists(produces, max_size=1), st.lists(fetches, max_size=2),
    st.lists(changes, max_size=1),
)  # fmt: skip


class Twin:
    """A cluster and one session on each broker; `rests` is False if no target may rest."""

    def __init__(self, *, rests: bool) -> None:
        self.rests = rests
        self.node = Node(racks=(None,) * len(NODES))
        for topic in TOPICS:
            self.node.topic(topic, len(PARTITIONS))
        self.sessions: dict[int, list[int]] = {}  # broker -> version, session id, next epoch
        self.parked: list[Any] = []

    def take(self, step: Step) -> list[Any]:
        """Take a step; what was answered."""
        name, *arguments = step
        own: Callable[..., list[Any]] | None = getattr(self, f"on_{name}", None)
        try:
            found = self.act(name, *arguments) if own is None else own(*arguments)
        except REFUSED as error:
            found = [type(error).__name__]
        answered = [answer.done for answer in self.parked]
        found += [_plain(answer.response) for answer in self.parked if answer.done]
        self.parked = [answer for answer in self.parked if not answer.done]
        return [*found, answered]

    def act(self, name: str, *arguments: Any) -> list[Any]:
        match name, *arguments:
            case "move_leader", (topic, index), node:
                self.node.cluster.move_leader(topic, index, node=node)
            case "delete_records", (topic, index), offset:
                self.node.cluster.delete_records(topic, index, before_offset=offset)
            case "set_high_watermark", (topic, index), offset:
                self.node.cluster.set_high_watermark(topic, index, offset=offset)
            case (("hold_high_watermark" | "hold_last_stable_offset"), (topic, index), release):
                getattr(self.node.cluster, name)(topic, index, release=release)
            case "lag_follower", (topic, index), node, release:
                self.node.cluster.lag_follower(topic, index, node=node, release=release)
            case "stop_broker", node, how:
                self.node.cluster.stop_broker(node, how=how)
                self.sessions.pop(node, None)
            case "start_broker", node:
                self.node.cluster.start_broker(node)
            case "cut_network", node:
                self.node.cluster.cut_network([node])
            case ("heal_network",):
                self.node.cluster.heal_network()
            case "recreate_topic", topic:
                self.node.cluster.recreate_topic(topic)
        return []

    def on_pass(self, by_ms: int) -> list[Any]:
        self.node.advance(by_ms)
        return []

    def on_produce(self, wanted: list[tuple[str, int]], large: bool) -> list[Any]:
        """One request to the leader of the first place; other leaders' partitions are refused."""
        topic, index = wanted[0]
        leader = self.node.cluster.topics[topic].partitions[index].leader_id
        if leader in self.node.cluster.processes:
            batch = batch_of(b"v" * (150 if large else 1))
            request = produce_request(dict.fromkeys(wanted, batch), acks=1)
            produce(self.node.ctx(9, broker=leader), request)
        return []

    def on_open(self, broker: int, version: int, offset: int) -> list[Any]:
        wanted = [(*place, self._offset(place, offset)) for place in PLACES]
        answer = self._fetch(broker, version, wanted, session_epoch=0)
        self.sessions[broker] = [version, answer.session_id, 1]
        return [_plain(answer)]

    def on_close(self, broker: int) -> list[Any]:
        version, session_id, _ = self.sessions[broker]
        return [_plain(self._fetch(broker, version, [], session_id=session_id, session_epoch=-1))]

    def on_fetch(
        self,
        broker: int,
        named: list[tuple[tuple[str, int], int]],
        forgotten: list[tuple[str, int]],
        isolation_level: int,
        max_wait_ms: int,
        min_bytes: int,
    ) -> list[Any]:
        """An incremental request; another one that waits may be answered with an error later."""
        version, session_id, epoch = self.sessions[broker]
        wanted = [(*place, self._offset(place, offset)) for place, offset in dict(named).items()]
        answer = self._fetch(
            broker, version, wanted, forgotten,
            session_id=session_id, session_epoch=epoch, isolation_level=isolation_level,
            max_wait_ms=max_wait_ms, min_bytes=min_bytes,
        )  # fmt: skip
        self.sessions[broker][2] += 1
        if isinstance(answer, Parked) and not answer.done:
            self.parked.append(answer)
            return []
        return [_plain(done(answer))]

    def _offset(self, place: tuple[str, int], offset: int) -> int:
        partition = self.node.cluster.topics[place[0]].partitions[place[1]]
        named = {END: partition.high_watermark, STABLE: partition.last_stable_offset}
        return named.get(offset, offset)

    def _fetch(
        self,
        broker: int,
        version: int,
        wanted: list[Any],
        forgotten: list[tuple[str, int]] | None = None,
        **fields: Any,
    ) -> Any:
        cluster = self.node.cluster
        request = fetch_request(cluster, wanted, version, **fields)
        for topic, index in forgotten or ():
            topic_id = cluster.topics[topic].topic_id
            request.forgotten_topics_data.append(ForgottenTopic(topic, topic_id, [index]))
        answer = fetch(self.node.ctx(version, broker=broker), request)
        if not self.rests:
            for session in cluster.processes[broker].fetch_sessions._sessions.values():
                session._closed = True  # such a session's targets do not rest
        return answer


def _plain(response: FetchResponse) -> Any:
    """An answer as values that can be compared."""
    return (
        response.error_code,
        response.session_id,
        [
            (
                topic.topic,
                topic.topic_id,
                [
                    (
                        data.partition_index,
                        data.error_code,
                        data.high_watermark,
                        data.last_stable_offset,
                        data.log_start_offset,
                        data.current_leader,
                        b"".join(map(bytes, data.records or ())),
                    )
                    for data in topic.partitions
                ],
            )
            for topic in response.responses
        ],
    )


def _history(*steps: Step) -> tuple[Twin, Twin]:
    resting, looking = Twin(rests=True), Twin(rests=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch_session, "RESTING_ABOVE", 0)
        for step in steps:
            assert resting.take(step) == looking.take(step), step
    return resting, looking


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(rounds, max_size=12))
def test_answers_are_those_of_a_broker_that_looks_at_all_targets(
    taken: list[tuple[list[Step], ...]],
) -> None:
    opened = [("open", node, 12 + node % 2, 0) for node in NODES]
    _history(*opened, *(step for each in taken for part in each for step in part))


def test_partitions_that_change_together_are_answered_together() -> None:
    """By a Produce of several partitions, and by the deletion of their topic."""
    opened = [("open", node, 12, 0) for node in NODES]
    waits = ("fetch", 1, [], [], 0, 300, 1)
    written, _ = _history(*opened, waits, ("pass", 400), waits, ("produce", PLACES, False))
    assert not written.parked
    gone, _ = _history(*opened, waits, ("pass", 400), waits, ("recreate_topic", "a"))
    assert not gone.parked


def looks(session: FetchSession) -> int:
    """How many targets the next request would look at."""
    return len(session.active(read_committed=False))


@pytest.fixture
def node() -> Node:
    node = Node()
    node.topic("t", 100)
    return node


def opened(node: Node) -> FetchSession:
    """A session of all partitions, which have no records; all targets rest."""
    wanted = [("t", index, 0) for index in range(100)]
    session_id = done(node.fetch(*wanted, session_epoch=0)).session_id
    assert done(incremental(node, session_id, 1)).responses == []
    return node.cluster.brokers[1].fetch_sessions._sessions[session_id]


def incremental(node: Node, session_id: int, epoch: int, *wanted: Any, **more: Any) -> Any:
    request = fetch_request(
        node.cluster, wanted, 12, session_id=session_id, session_epoch=epoch, **more
    )
    return fetch(node.ctx(12), request)


def test_a_request_looks_only_at_partitions_that_changed(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(node)
    seen: list[int] = []
    read_one = FetchReader._read_one

    def read(self: FetchReader, target: Any, *args: Any, **more: Any) -> Any:
        seen.append(target.request.partition)
        return read_one(self, target, *args, **more)

    monkeypatch.setattr(fetch_read.FetchReader, "_read_one", read)
    incremental(node, session.session_id, 2)
    assert seen == []
    node.produced(batch_of(b"v"), partition=7)
    node.produced(batch_of(b"v"), partition=3)
    answer = done(incremental(node, session.session_id, 3))
    assert seen == [3, 7]
    assert [data.partition_index for data in answer.responses[0].partitions] == [3, 7]
    incremental(node, session.session_id, 4, ("t", 3, 1), ("t", 7, 1), ("t", 9, 0))
    assert seen == [3, 7, 9, 3, 7]  # a partition with records is read last
    assert looks(session) == 0


def test_a_request_that_waits_watches_the_partitions_that_wake(node: Node) -> None:
    session = opened(node)
    answer = incremental(node, session.session_id, 2, max_wait_ms=500, min_bytes=150)
    partitions = node.cluster.topics["t"].partitions
    assert not any(partition.has_watchers for partition in partitions)
    node.produced(batch_of(b"v"), partition=5)
    assert not answer.done
    assert [each.index for each in partitions if each.has_watchers] == [5]
    node.produced(batch_of(b"v" * 100), partition=6)
    rows = done(answer).responses[0].partitions
    assert [data.partition_index for data in rows] == [5, 6]
    assert not any(partition.has_watchers for partition in partitions)


def test_nothing_rests_on_a_partition_for_a_session_that_is_gone(node: Node) -> None:
    """Closed by its client, or with the broker's process."""
    partitions = node.cluster.topics["t"].partitions
    session = opened(node)
    assert all(each._resting for each in partitions)
    node.fetch(session_id=session.session_id, session_epoch=-1)
    assert not any(each._resting for each in partitions)
    opened(node)
    assert all(each._resting for each in partitions)
    node.cluster.brokers[1].drop_memory()
    assert not any(each._resting for each in partitions)


def test_no_target_of_a_small_session_rests(node: Node) -> None:
    wanted = [("t", index, 0) for index in range(fetch_session.RESTING_ABOVE)]
    session_id = done(node.fetch(*wanted, session_epoch=0)).session_id
    assert done(incremental(node, session_id, 1)).responses == []
    assert not any(each._resting for each in node.cluster.topics["t"].partitions)


def test_another_image_looks_at_all_targets(node: Node) -> None:
    session = opened(node)
    broker = node.cluster.brokers[1]
    broker.take_image(broker.image.frozen())
    assert looks(session) == 100


def test_another_isolation_level_looks_at_all_targets(node: Node) -> None:
    session = opened(node)
    assert len(session.active(read_committed=True)) == 100
