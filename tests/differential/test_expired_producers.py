"""A partition forgets idle producers as the real broker's does, and takes what they send then.

The peers look for them several times a second here, so these are clusters of their own. Records are
of 2023: a producer is idle at once, unless it has an open transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from mockbroker import Cluster
from mockbroker_protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from tests.differential.dialogue import batch, make_topic, produce_request
from tests.differential.registry import Case
from tests.differential.session import Session
from tests.differential.test_differential import check_alike
from tests.differential.transacting import TV1, TV2, producer, producers
from tests.support.real_kafka import RealKafka
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.real_kafka, pytest.mark.java, pytest.mark.xdist_group("real_kafka")]

CONFIGS = {
    "producer.id.expiration.check.interval.ms": "100",
    "log.retention.ms": "-1",
}
KEEP = {"segment.ms": str(2**63 - 1)}


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[str, int]]:
    with RealKafka(configs=CONFIGS) as kafka:
        yield kafka.addresses[1]


@pytest.fixture(scope="module")
def ours() -> Iterator[Cluster]:
    with Cluster(brokers=1, configs=CONFIGS) as kafka:
        yield kafka


def wait_until_known(session: Session, topic: str, wanted: Sequence[int]) -> None:
    """Wait until the partition knows these producers only."""
    request = DescribeProducersRequest([TopicRequest(topic, [0])])

    def is_so() -> bool:
        (partition,) = session.quietly(request, 0).topics[0].partitions
        return [each.producer_id for each in partition.active_producers] == list(wanted)

    wait_until(is_so, what=f"producers {wanted} of {topic}")


def what_a_forgotten_producer_may_send(session: Session) -> None:
    """Any sequence of any epoch: a retry is appended again, a gap and a former epoch are taken."""
    topic = make_topic(session)

    def send(sequence: int, label: str, *, epoch: int = 3) -> None:
        data = batch([b"a", b"b"], producer_id=7, producer_epoch=epoch, base_sequence=sequence)
        session.ask(produce_request(topic, data), 9, label=label)
        wait_until_known(session, topic, [])

    send(0, "first")
    send(0, "its retry")
    send(9, "a gap")
    send(4, "an older sequence")
    send(6, "a former epoch", epoch=1)
    send(8, "a later epoch, not from 0", epoch=5)


def an_open_transaction_keeps_its_producer(session: Session) -> None:
    """A retry within it is a duplicate, and a gap is refused; its marker is of now."""
    topic = make_topic(session, configs=KEEP)
    known: list[int] = []
    for version, name in ((TV1, "-old"), (TV2, "-new")):
        p = producer(session, name)
        p.init()
        if version == TV1:
            session.ask(p.add(topic), 3)
        api_version = 11 if version == TV1 else 12
        session.ask(p.produce(topic), api_version, label="first")
        other = batch([b"x"], producer_id=99, producer_epoch=0, base_sequence=0)
        session.ask(produce_request(topic, other), 9, label="of another")
        known.append(p.pid)
        wait_until_known(session, topic, known)
        session.ask(p.produce(topic), api_version, label="retry")
        session.ask(p.produce(topic, 2), api_version, label="gap")
        session.ask(p.produce(topic, 1), api_version, label="next")
        p.finish(version)
        producers(session, topic)


def a_forgotten_producer_of_transactions(session: Session) -> None:
    """With TV2 it begins at 0, with TV1 anywhere."""
    topic = make_topic(session, configs=KEEP)
    old, new = producer(session, "-old"), producer(session, "-new")
    for p in (old, new):
        p.init()
    session.ask(old.add(topic), 3)
    session.ask(old.produce(topic, 5), 11, label="old from 5")
    session.ask(new.produce(topic, 5), 12, label="new from 5")
    session.ask(new.produce(topic, 0), 12, label="new from 0")
    for p, version in ((old, TV1), (new, TV2)):
        p.finish(version)


CASES = [
    what_a_forgotten_producer_may_send,
    an_open_transaction_keeps_its_producer,
    a_forgotten_producer_of_transactions,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_partitions_forget_producers_as_those_of_the_real_broker(
    case: Callable[[Session], None], real: tuple[str, int], ours: Cluster
) -> None:
    """Whatever they send afterwards is answered alike."""
    check_alike(Case(case.__name__, case, "expired"), real, ours)
