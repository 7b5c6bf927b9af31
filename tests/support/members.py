"""Members of consumer groups (confluent-kafka), polled in turn by the test's own thread.

    with Members(kafka) as members:
        one, two = members("g", "orders"), members("g", "orders")
        owned = members.settle(one, two, partitions=4)

A *member* is a subscribed consumer with a memory: which partitions it owns, what it was told about
them (*events*), and the records it got. Members act while the test waits (`until`, `settle`), so
what one of them is not polled for does not happen to it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from mockbroker import Cluster
from mockbroker.core.groups.states import ClassicGroupState
from mockbroker_protocol.consumer_protocol import decode_assignment

WAIT_TIMEOUT_S = 30.0
# How long one poll of one member may wait: short, for they take turns.
POLL_S = 0.005
HEARTBEAT_MS = 50

Partition = tuple[str, int]
_NUMBERS = itertools.count(1)


class Event(NamedTuple):
    """What a member was told: "assigned", "revoked" or "lost" partitions, when, in which
    generation.
    """

    kind: str
    partitions: frozenset[Partition]
    at_s: float


def settings(kafka: Cluster, **config: Any) -> dict[str, Any]:
    """A client's configuration; `session_timeout_ms=…` means session.timeout.ms, None not to set
    it.
    """
    defaults: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
    wanted = {name.replace("_", "."): value for name, value in config.items() if value is not None}
    return defaults | wanted


def partitions_of(partitions: Iterable[TopicPartition]) -> frozenset[Partition]:
    return frozenset((each.topic, each.partition) for each in partitions)


class Member:
    """A consumer that has subscribed; topics that begin with ^ are patterns."""

    def __init__(self, kafka: Cluster, group: str, topics: Sequence[str], **config: Any) -> None:
        self.group = group
        self.name = config.setdefault("client_id", f"member-{next(_NUMBERS)}")
        defaults: dict[str, Any] = {
            "group_id": group,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "fetch_wait_max_ms": 20,
        }
        self.consumer = Consumer(settings(kafka, **(defaults | config)))
        self.static = "group_instance_id" in config
        self.owned: set[Partition] = set()
        self.events: list[Event] = []
        self.records: list[Message] = []
        self.errors: list[KafkaError] = []
        self.closed = False
        # Called with the partitions inside of the callback of that name, while they can be worked
        # on.
        self.on_assigned: Callable[[list[TopicPartition]], None] | None = None
        self.on_revoked: Callable[[list[TopicPartition]], None] | None = None
        if topics:
            self.subscribe(*topics)

    def __repr__(self) -> str:
        return f"{self.name} owns {sorted(self.owned)}"

    def subscribe(self, *topics: str) -> None:
        self.consumer.subscribe(
            list(topics),
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._lost,
        )

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._heard("assigned", partitions)
        self.owned |= partitions_of(partitions)
        if self.on_assigned is not None:
            self.on_assigned(partitions)

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._heard("revoked", partitions)
        if self.on_revoked is not None:
            self.on_revoked(partitions)
        self.owned -= partitions_of(partitions)

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._heard("lost", partitions)
        self.owned -= partitions_of(partitions)

    def _heard(self, kind: str, partitions: list[TopicPartition]) -> None:
        self.events.append(Event(kind, partitions_of(partitions), time.monotonic()))

    def told(self) -> list[tuple[str, list[Partition]]]:
        """The events so far, without those that name no partition, and forget them."""
        events, self.events = self.events, []
        return [(event.kind, sorted(event.partitions)) for event in events if event.partitions]

    def poll(self, timeout_s: float = POLL_S) -> Message | None:
        """One poll; a record is kept in `records`, an error in `errors`."""
        # librdkafka looks after its heartbeats when something wakes its main thread, or else once a
        # second. This wakes it.
        self.consumer.memberid()
        message = self.consumer.poll(timeout_s)
        if message is None:
            return None
        error = message.error()
        if error is not None:
            self.errors.append(error)
            return None
        self.records.append(message)
        return message

    def values(self) -> list[str]:
        """The values of the records so far."""
        return [text_of(record) for record in self.records]

    def commit(self, *offsets: tuple[str, int, int]) -> None:
        """Commit (topic, partition, offset)s, or the positions, and wait for the answer.

        Raises KafkaException, also when a single partition is refused.
        """
        if offsets:
            wanted = [TopicPartition(*each) for each in offsets]
            answered = self.consumer.commit(offsets=wanted, asynchronous=False)
        else:
            answered = self.consumer.commit(asynchronous=False)
        for each in answered or []:
            if each.error is not None:
                raise KafkaException(each.error)

    def committed(self, *partitions: Partition) -> dict[Partition, int]:
        """The committed offset of each partition, -1001 where there is none."""
        wanted = [TopicPartition(*each) for each in partitions]
        found = self.consumer.committed(wanted, timeout=WAIT_TIMEOUT_S)
        return {(each.topic, each.partition): each.offset for each in found}

    def positions(self) -> dict[Partition, int]:
        """The position in each partition that it owns and has read from."""
        owned = [TopicPartition(*each) for each in sorted(self.owned)]
        found = self.consumer.position(owned)
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def close(self) -> None:
        """Close; a dynamic member leaves its group, a static one does not.

        What is owned is given up first where that changes nothing: librdkafka can hang in `close`
        when it meets a cooperative rebalance there.
        """
        if self.closed:
            return
        self.closed = True
        if not self.static:
            self.consumer.unsubscribe()
            deadline = time.monotonic() + WAIT_TIMEOUT_S
            while self.owned and time.monotonic() < deadline:
                self.poll()
        self.consumer.close()


def text_of(record: Message) -> str:
    value = record.value()
    assert value is not None
    return value.decode()


class Members:
    """The members of a test; closed when it ends."""

    def __init__(self, kafka: Cluster) -> None:
        self.kafka = kafka
        self.all: list[Member] = []
        # So that no client meets COORDINATOR_NOT_AVAILABLE and waits half a second before it asks
        # again.
        kafka.call(lambda cluster: cluster.ensure_internal_topic("__consumer_offsets"))

    def __call__(self, group: str, *topics: str, **config: Any) -> Member:
        """A new member, subscribed but never polled."""
        member = Member(self.kafka, group, topics, **config)
        self.all.append(member)
        return member

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for member in self.all:
            member.close()

    def until(
        self,
        condition: Callable[[], bool],
        what: str = "",
        *,
        polling: Sequence[Member] | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> None:
        """Poll all members, or those in `polling`, in turn until the condition holds.

        Raises AssertionError, with what each member owns, after `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not within {timeout_s:.0f} s: {what or condition}: {self.all}"
                )
            turn = self.all if polling is None else polling
            polled = [member.poll() for member in turn if not member.closed]
            assert polled, f"nobody is left to wait with: {what or condition}"

    def settle(
        self, *members: Member, partitions: int, polling: Sequence[Member] | None = None
    ) -> dict[str, list[Partition]]:
        """Wait until these members are their group, it is Stable, and together they own so many
        partitions, each of them once. Returns who owns what.
        """
        group = members[0].group

        def settled() -> bool:
            owned = [each for member in members for each in member.owned]
            if len(owned) != partitions or len(set(owned)) != partitions:
                return False
            # What the members were told so far may be older than what they have agreed on.
            found = look(self.kafka, group)
            return (found.state, found.owned) == ("Stable", by_name())

        def by_name() -> dict[str, list[Partition]]:
            return {member.name: sorted(member.owned) for member in members}

        what = f"{partitions} partitions owned by {len(members)} members of {group}"
        self.until(settled, what, polling=polling)
        return by_name()

    def collect(self, count: int, *members: Member) -> list[Message]:
        """Wait until these members (or all) have received so many records in all; return them."""
        wanted = members or tuple(self.all)
        self.until(
            lambda: sum(len(member.records) for member in wanted) >= count, f"{count} records"
        )
        return [record for member in wanted for record in member.records]


class Look(NamedTuple):
    """A group as its coordinator sees it: the assignments of all members, sorted, and `owned` by
    client id.
    """

    state: str
    generation: int
    owned: dict[str, list[Partition]]
    assignments: list[list[Partition]]


def look(kafka: Cluster, group: str) -> Look:
    """The group's state, generation and assignments; Dead when there is none."""
    return kafka.call(lambda cluster: _look(cluster, group))


def _look(cluster: Any, group: str) -> Look:
    topic = cluster.topics["__consumer_offsets"]
    partition = topic.partitions[cluster.find_coordinator_partition(group)]
    found = cluster.brokers[partition.leader_id].groups.shard_of(group).classic.get(group)
    if found is None:
        return Look(ClassicGroupState.DEAD.value, -1, {}, [])
    members = list(found.members.values())
    assignments = [_assigned(member.assignment) for member in members]
    owned = {member.client_id: each for member, each in zip(members, assignments, strict=True)}
    return Look(found.state.value, found.generation, owned, sorted(assignments))


def _assigned(assignment: bytes) -> list[Partition]:
    """What an assignment of the protocol type "consumer" names."""
    if not assignment:
        return []
    topics = decode_assignment(assignment).assigned_partitions
    return sorted((topic.topic, index) for topic in topics for index in topic.partitions)
