"""Ends that are decided and cannot be completed: what PrepareCommit and PrepareAbort answer.

A real broker is held there like this: an administrator writes a marker of a later epoch into the
partition, which then refuses the coordinator's own for good. The coordinator stops sending it, and
the transactional id stays where it is.
"""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.list_transactions import ListTransactionsRequest
from tests.differential.cases.groups import new_group
from tests.differential.cases.transactions import list_them
from tests.differential.cases.transactions_data import marker
from tests.differential.registry import case
from tests.differential.session import Session
from tests.differential.transacting import (
    TV1,
    TV2,
    Producer,
    look,
    make_topic,
    producer,
    producers,
)
from tests.support.waiting import wait_until

EPOCHS_AHEAD = 7


def held(session: Session, protocol: int, *, committed: bool) -> tuple[Producer, str]:
    """A producer whose transaction is decided, by EndTxn of a version, and never completed.

    Its topic has a second partition that is not in the transaction.
    """
    suffix = f"-v{protocol}-{'commit' if committed else 'abort'}"
    topic = make_topic(session, suffix, partitions=2)
    p = producer(session, suffix)
    p.init()
    session.ask(p.add(topic), 3)
    session.ask(p.produce(topic), 11)
    session.ask(marker(topic, p.pid, p.epoch + EPOCHS_AHEAD), 1)
    answer = session.ask(p.end(committed=committed), protocol, label="decided")
    if protocol >= TV2:
        p.epoch = answer.producer_epoch
    return p, topic


def wait_until_listed(session: Session, p: Producer) -> None:
    """Wait until the transaction is older than 0 ms: it may have begun in this millisecond."""
    request = ListTransactionsRequest(duration_filter=0)

    def is_listed() -> bool:
        lines = session.quietly(request, 2).transaction_states
        return any(line.transactional_id == p.id for line in lines)

    wait_until(is_listed, what=f"a duration of {p.id}")


def ends(session: Session, p: Producer) -> None:
    """Every form of EndTxn: both protocols, the epochs around the present one."""
    for version in (TV1, TV2):
        for committed in (True, False):
            for step in (-2, -1, 0, 1):
                request = p.end(committed=committed, epoch=p.epoch + step)
                session.ask(request, version, label=f"end {committed} {step:+}")
        session.ask(p.end(pid=p.pid + 1000), version, label="end of another producer id")


def questions(session: Session, p: Producer, topic: str) -> None:
    """Everything else that producers, leaders and group coordinators ask of an id."""
    group = new_group(session)

    def init(pid: int, epoch: int, version: int) -> None:
        request = InitProducerIdRequest(
            transactional_id=p.id,
            transaction_timeout_ms=60_000,
            producer_id=pid,
            producer_epoch=epoch,
        )
        session.ask(request, version, label=f"init {epoch - p.epoch:+}")

    init(-1, -1, 1)
    for epoch in (-1, p.epoch - 1, p.epoch, p.epoch + 1):
        init(-1 if epoch == -1 else p.pid, epoch, 5)
    for version in (1, 3):
        session.ask(p.add(topic, partitions=[1]), version, label="add")
        session.ask(p.add(topic), version, label="add what is there")
        session.ask(p.add(topic, epoch=p.epoch - 1), version, label="add of the epoch before")
        session.ask(p.add(topic, pid=p.pid + 1000), version, label="add of another")
    for version in (4, 5):
        for verify in (True, False):
            for partition in (0, 1):
                line = p.batched(topic, partitions=[partition], verify=verify)
                request = AddPartitionsToTxnRequest(transactions=[line])
                session.ask(request, version, label=f"batched {verify} {partition}")
    session.ask(p.add_offsets(group), 3)
    for version in (9, 11, 12):
        session.ask(p.produce(topic, partition=1), version, label="another partition")
        session.ask(p.produce(topic, 1), version, label="the epoch is behind")
    for version in (3, 4, 5):
        session.ask(p.offsets(group, topic), version)


def play(session: Session, protocol: int, **how: Any) -> None:
    p, topic = held(session, protocol, **how)
    p.describe("held")
    list_them(session, 2, "prepared", state_filters=["PrepareCommit", "PrepareAbort"])
    wait_until_listed(session, p)
    list_them(session, 2, "for how long", duration_filter=0)
    ends(session, p)
    questions(session, p, topic)
    p.describe("still held")
    look(session, topic)
    producers(session, topic)


@case()
def txn_held_commit_first_protocol(session: Session) -> None:
    """PrepareCommit of TV1."""
    play(session, TV1, committed=True)


@case()
def txn_held_abort_first_protocol(session: Session) -> None:
    """PrepareAbort of TV1."""
    play(session, TV1, committed=False)


@case()
def txn_held_commit_second_protocol(session: Session) -> None:
    """PrepareCommit of TV2, with the epoch raised already."""
    play(session, TV2, committed=True)


@case()
def txn_held_abort_second_protocol(session: Session) -> None:
    """PrepareAbort of TV2."""
    play(session, TV2, committed=False)


@case()
def txn_held_fence(session: Session) -> None:
    """What a second producer fenced stays held as well; neither gets anywhere."""
    topic = make_topic(session, partitions=2)
    p = producer(session)
    session.ask(p.produce(topic), 12)
    session.ask(marker(topic, p.pid, p.epoch + EPOCHS_AHEAD), 1)
    q = Producer(session)
    q.init(label="fences")
    q.init(label="again")
    p.describe("fenced")
    ends(session, p)
    questions(session, p, topic)
    p.epoch += 1
    ends(session, p)
    p.describe("still")
