"""Two instances of one worker that overlap, in many schedules of their requests.

An instance restores its position from what is committed, then writes the rest, two records to a
transaction. The old one is at work when the new one starts, and neither knows of the other. Each
request is a turn; whose turn it is, and when markers arrive, is drawn from a seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import ControlType, Record, parse_marker
from tests.support.group_node import Pending
from tests.support.txn_node import TV2, Txn, TxnNode

RECORDS = 6
MANY, SOME = 1000, 100

# An instance's life: it yields after each request.
Life = Iterator[None]
Start = Callable[["Instance"], Life]

LATER = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS}


class FencedError(Exception):
    """Another instance has the transactional id."""


class Instance:
    """A worker that writes the numbers from its position up to RECORDS."""

    def __init__(self, node: TxnNode, topic: str, transactional_id: str) -> None:
        self.node = node
        self.topic = topic
        self.txn = Txn(node, transactional_id)
        self.position = 0

    def live(self, start: Start) -> Life:
        """Start, work, and leave when fenced."""
        try:
            yield from start(self)
            while self.position < RECORDS:
                yield from self.transact()
        except FencedError:
            return

    def fence(self) -> Life:
        while self.txn.init().error_code:
            yield
        yield

    def restore(self) -> Life:
        self.position = 1 + max(map(int, committed(self.node, self.topic)), default=-1)
        yield

    def transact(self) -> Life:
        numbers = [b"%d" % n for n in range(self.position, min(self.position + 2, RECORDS))]
        error = ErrorCode.CONCURRENT_TRANSACTIONS
        while error in LATER:
            pending = self.txn.send(numbers, topic=self.topic)
            while pending.parked:
                yield
            error = produced(pending)
        if error:
            raise FencedError
        yield
        if self.txn.end(version=TV2).error_code:
            raise FencedError
        self.position += len(numbers)
        yield


def produced(pending: Pending) -> ErrorCode:
    [topic] = pending.response.responses
    return ErrorCode(topic.partition_responses[0].error_code)


def committed(node: TxnNode, topic: str) -> list[bytes]:
    """What a read_committed reader gets."""
    partition = node.cluster.partition(topic, 0)
    assert partition is not None
    open_since: dict[int, list[Record]] = {}
    counting: list[Record] = []
    for header, record in node.stored(topic):
        if not header.is_control:
            open_since.setdefault(header.producer_id, []).append(record)
        else:
            ended = open_since.pop(header.producer_id, [])
            if parse_marker(record).control_type is ControlType.COMMIT:
                counting += ended
    counting.sort(key=lambda record: record.offset)
    stable_end = partition.last_stable_offset
    return [bytes(record.value or b"") for record in counting if record.offset < stable_end]


def fence_first(instance: Instance) -> Life:
    yield from instance.fence()
    yield from instance.restore()


def restore_first(instance: Instance) -> Life:
    yield from instance.restore()
    yield from instance.fence()


def play(node: TxnNode, name: str, start: Start, ids: tuple[str, str], seed: int) -> Counter[bytes]:
    """One schedule; how often each number was committed."""
    chance = random.Random(seed)
    node.topic(name)
    lives = [Instance(node, name, f"{name}-{each}").live(start) for each in ids]
    head_start = chance.randrange(12)  # of the old one
    turn = 0
    while lives:
        if chance.random() < 0.7:
            node.advance(chance.choice((0, 5, 50)))  # what is on its way arrives, or tries again
        alive = lives[:1] if turn < head_start else lives
        life = chance.choice(alive)
        if next(life, life) is life:
            lives.remove(life)
        turn += 1
    node.advance(1000)
    return Counter(committed(node, name))


def verdicts(start: Start, ids: tuple[str, str], schedules: int) -> list[tuple[int, int]]:
    """How many numbers were lost and doubled, schedule by schedule."""
    node = TxnNode()
    found = []
    for seed in range(schedules):
        counts = play(node, f"race-{seed}", start, ids, seed)
        found.append((RECORDS - len(counts), sum(counts.values()) - len(counts)))
    return found


@pytest.mark.covers("S246", "S264")
def test_who_fences_before_it_restores_loses_and_doubles_nothing() -> None:
    assert set(verdicts(fence_first, ("id", "id"), MANY)) == {(0, 0)}


@pytest.mark.covers("S246", "S264")
def test_who_restores_before_it_fences_doubles_in_some_schedules() -> None:
    found = verdicts(restore_first, ("id", "id"), SOME)
    assert {lost for lost, _ in found} == {0}
    assert 0 < len([doubled for _, doubled in found if doubled]) < SOME


@pytest.mark.covers("S264")
def test_ids_of_their_own_fence_nobody() -> None:
    """As with instances that only close when they hear of it: the old one goes on for a while."""
    found = verdicts(fence_first, ("old", "new"), SOME)
    assert {lost for lost, _ in found} == {0}
    assert len([doubled for _, doubled in found if doubled]) > SOME / 2
