"""Transactions where their data is: Produce, Fetch, offsets of groups, markers."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
)
from mockbroker_protocol.messages.fetch import FetchRequest
from mockbroker_protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.differential.cases.groups import new_group, stable_group
from tests.differential.cases.offsets import commit
from tests.differential.dialogue import batch, produce_request
from tests.differential.registry import case
from tests.differential.session import Session
from tests.differential.transacting import (
    TV1,
    TV2,
    java_partition,
    look,
    make_topic,
    producer,
    producers,
    read,
    stable_offset,
)

# ---------------------------------------------------------------------------------------- Produce


@case()
def txn_produce_first_protocol(session: Session) -> None:
    """A partition has to be added before it is written to."""
    topic = make_topic(session, partitions=2)
    p = producer(session)
    for version in (9, 10, 11):
        session.ask(p.produce(topic), version, label="not added")
    session.ask(p.add(topic), 3)
    session.ask(p.produce(topic, partition=1), 11, label="another one was added")
    session.ask(p.produce(topic), 11, label="added")
    session.ask(p.produce(topic), 11, label="retried")
    session.ask(p.produce(topic, 3), 11, label="a gap")
    session.ask(p.produce(topic, 1, transactional=False), 11, label="not transactional")
    session.ask(p.produce(topic, 1, transactional=False, id=None), 11, label="plain")
    session.ask(p.produce(topic, 1, id=None), 11, label="transactional without an id")
    session.ask(p.produce(topic, 1, epoch=p.epoch + 1), 11, label="an epoch to come")
    session.ask(p.produce(topic, 0, epoch=p.epoch + 1), 11, label="an epoch to come, from 0")
    session.ask(p.produce(topic, 1), 11, label="next")
    for version in (9, 10, 11):
        session.ask(p.produce(topic, 2, pid=p.pid + 1000), version, label="another producer id")
        session.ask(p.produce(topic, 2, id="nobody-" + p.id, pid=77), version, label="unknown id")
        session.ask(p.produce(topic, 2, id="nobody-" + p.id), version, label="open, unknown id")
        session.ask(p.produce(topic, 2, id=""), version, label="open, empty id")
        session.ask(p.produce(topic, 0, id="", pid=78), version, label="empty id")
    producers(session, topic)
    p.finish(TV1)
    session.ask(p.produce(topic, 2), 11, label="after the end")
    session.ask(p.produce(topic, 2), 9, label="after the end")
    session.ask(p.add(topic), 3)
    session.ask(p.produce(topic, 5), 11, label="a gap from before the end")
    session.ask(p.produce(topic, 2), 11, label="the sequence goes on")
    p.finish(TV1, committed=False)
    look(session, topic)
    producers(session, topic)


@case()
def txn_produce_second_protocol(session: Session) -> None:
    """The leader adds the partition."""
    topic = make_topic(session, partitions=2)
    p = producer(session)
    session.ask(p.produce(topic, 1), 12, label="does not begin at 0")
    session.ask(p.produce(topic), 12, label="first")
    p.describe()
    session.ask(p.produce(topic), 12, label="retried")
    session.ask(p.produce(topic, 1), 12, label="next")
    session.ask(p.produce(topic, partition=1), 12, label="another partition")
    p.describe()
    session.ask(p.produce(topic, 2, transactional=False), 12, label="not transactional")
    session.ask(p.produce(topic, 0, epoch=p.epoch + 1), 12, label="an epoch to come")
    session.ask(p.produce(topic, 2, pid=p.pid + 1000), 12, label="another producer id")
    session.ask(p.produce(topic, 0, id="nobody-" + p.id, pid=77), 12, label="unknown id")
    session.ask(p.produce(topic, 0, id="", pid=78), 12, label="empty id")
    producers(session, topic)
    old = p.epoch
    p.finish()
    session.ask(p.produce(topic, 2, epoch=old), 12, label="the epoch before")
    session.ask(p.produce(topic, 2, epoch=old), 11, label="the epoch before, v11")
    session.ask(p.produce(topic, 2), 12, label="the sequence does not go on")
    session.ask(p.produce(topic, 0), 12, label="it starts again")
    p.finish(committed=False)
    look(session, topic)
    producers(session, topic)


@case()
def txn_produce_two_producers_at_once(session: Session) -> None:
    """One request is one producer's."""
    topic = make_topic(session, partitions=2)
    p = producer(session)
    request = p.produce(topic)
    other = p.produce(topic, pid=p.pid + 1000, partition=1)
    request.topic_data[0].partition_data += other.topic_data[0].partition_data
    session.ask(request, 12)
    plain = p.produce(topic)
    other = p.produce(topic, pid=p.pid + 1000, partition=1, transactional=False)
    plain.topic_data[0].partition_data += other.topic_data[0].partition_data
    session.ask(plain, 12, label="one of them plain")


@case()
def txn_produce_without_an_id(session: Session) -> None:
    """Transactional batches in a request that names no transaction; nothing is appended."""
    topic = make_topic(session, partitions=2)
    p = producer(session)
    for version in (9, 10, 11, 12):
        session.ask(p.produce(topic, id=None), version, label="nothing is open")
    look(session, topic, "nothing was appended")
    session.ask(p.produce(topic), 12, label="opens")
    for version in (9, 11, 12):
        session.ask(p.produce(topic, 1, id=None), version, label="in an open one")
    mixed = p.produce(topic, 5, id=None)
    plain = produce_request(topic, batch((b"plain",)), partition=1)
    mixed.topic_data[0].partition_data += plain.topic_data[0].partition_data
    session.ask(mixed, 12, label="beside a plain one")
    producers(session, topic)
    p.finish()
    look(session, topic)


@case()
def txn_stale_epochs_append_nothing(session: Session) -> None:
    """After a fence, whatever the old producer sends is refused and leaves the log as it was."""
    topic, group = make_topic(session), new_group(session)
    p = producer(session)
    session.ask(p.produce(topic), 12)
    p.finish()
    old = p.epoch
    p.init(label="the next producer")
    for version in (9, 11, 12):
        session.ask(p.produce(topic, epoch=old), version, label="the epoch before")
        session.ask(p.produce(topic, epoch=old - 1), version, label="two before")
        session.ask(p.produce(topic, epoch=-1), version, label="no epoch")
    for version in (0, 1, 3):
        session.ask(p.add(topic, epoch=old), version)
    for version in (0, 1, 3):
        session.ask(p.add_offsets(group, epoch=old), version)
    for version in (0, 2, 3, 5):
        session.ask(p.offsets(group, topic, epoch=old), version)
    for version in (0, 1, 2, 4, 5):
        for committed in (True, False):
            session.ask(p.end(committed=committed, epoch=old - 1), version)
    p.describe()
    producers(session, topic)
    look(session, topic)


@case()
def txn_control_batches_from_clients(session: Session) -> None:
    """Nobody but a coordinator may write a marker with Produce."""
    topic = make_topic(session)
    p = producer(session)
    session.ask(p.add(topic), 3)
    control = batch(
        (b"\0\0\0\0\0\0",),
        control=True,
        transactional=True,
        producer_id=p.pid,
        producer_epoch=p.epoch,
        base_sequence=0,
    )
    request = produce_request(topic, control)
    request.transactional_id = p.id
    session.ask(request, 11)
    request = produce_request(topic, control)
    request.transactional_id = p.id
    session.ask(request, 12)
    look(session, topic)


# ---------------------------------------------------------------------------- reading, watermarks


@case()
def txn_reading(session: Session) -> None:
    """Records, markers and aborted transactions as both isolation levels see them."""
    topic = make_topic(session)
    session.ask(produce_request(topic, batch((b"a", b"b"))), 9)
    p, q = producer(session, "-p"), producer(session, "-q")
    session.ask(p.produce(topic, values=(b"p1", b"p2")), 12)
    look(session, topic, "p open")
    session.ask(q.produce(topic, values=(b"q1",)), 12)
    session.ask(produce_request(topic, batch((b"c",))), 9)
    q.finish()
    look(session, topic, "q committed")
    p.finish(committed=False)
    look(session, topic, "p aborted")
    session.ask(q.produce(topic, values=(b"q2",)), 12)
    q.finish(committed=False)
    session.ask(p.produce(topic, values=(b"p3",)), 12)
    p.finish()
    for offset in range(12):
        session.ask(read(topic, offset=offset), 12, label=f"from {offset}")
    for version in (4, 11):
        session.ask(read(topic), version)
    producers(session, topic)


@case()
def txn_reading_beyond_what_is_stable(session: Session) -> None:
    """A Fetch from a batch above the last stable offset does not wait, however long it may; one
    from there, or from the midst of the batch that begins there, does.
    """
    topic = make_topic(session)
    session.ask(produce_request(topic, batch((b"a", b"b"))), 9)
    p = producer(session)
    session.ask(p.produce(topic, values=(b"p1", b"p2")), 12)
    session.ask(p.produce(topic, sequence=2, values=(b"p3", b"p4")), 12)

    def patient(offset: int) -> FetchRequest:
        request = read(topic, offset=offset)
        request.max_wait_ms, request.min_bytes = 60_000, 1
        return request

    for offset in (4, 5, 6):
        session.ask(patient(offset), 12, label=f"from {offset}")
    waiting = {
        offset: session.start(patient(offset), 12, f"waits at {offset}") for offset in (2, 3)
    }
    p.finish()
    for offset, finish in waiting.items():
        finish(f"from {offset}")


@case()
def txn_markers_without_records(session: Session) -> None:
    """A marker is written where the producer wrote nothing, and takes its offset."""
    topic = make_topic(session)
    p = producer(session)
    for committed in (True, False):
        session.ask(p.add(topic), 3)
        p.finish(TV1, committed=committed)
        session.ask(AddPartitionsToTxnRequest(transactions=[p.batched(topic, verify=False)]), 5)
        p.finish(TV2, committed=committed)
    look(session, topic)
    producers(session, topic)


# ------------------------------------------------------------------------------- offsets in groups


@case()
def txn_offsets_first_protocol(session: Session) -> None:
    """Offsets have to be added, are unstable until the end, and count if it is a commit."""
    topic, group = make_topic(session), new_group(session)
    p = producer(session)
    session.ask(commit(group, topic, 3), 8)
    for version in (0, 1, 2, 3, 4):
        session.ask(p.offsets(group, topic), version, label="not added")
    session.ask(p.add_offsets(group), 3)
    for version in (0, 1, 2, 3, 4):
        session.ask(p.offsets(group, topic, 10 + version), version)

    def fetched(label: str) -> None:
        for stable in (False, True):
            session.ask(stable_offset(group, topic, require=stable), 7, label=f"{label} {stable}")

    fetched("pending")
    p.finish(TV1, committed=False)
    fetched("aborted")
    session.ask(p.add_offsets(group), 3)
    session.ask(p.offsets(group, topic, 20), 3)
    session.ask(commit(group, topic, 4), 8, label="a plain commit meanwhile")
    fetched("pending")
    p.finish(TV1)
    fetched("overtaken")
    session.ask(p.add_offsets(group), 3)
    session.ask(p.offsets(group, topic, 30), 3)
    p.finish(TV1)
    fetched("committed")


@case()
def txn_offsets_second_protocol(session: Session) -> None:
    """The group's coordinator adds its partition."""
    topic, group = make_topic(session), new_group(session)
    p = producer(session)
    session.ask(p.offsets(group, topic), 5)
    p.describe()
    session.ask(stable_offset(group, topic, require=True), 7)
    p.finish()
    session.ask(stable_offset(group, topic, require=True), 7)
    session.ask(p.offsets(group, topic, 8), 5)
    p.finish(committed=False)
    session.ask(stable_offset(group, topic, require=True), 7)
    session.ask(p.offsets(group, topic, 9, epoch=p.epoch - 1), 5, label="the epoch before")
    p.describe()


@case()
def txn_offsets_refusals(session: Session) -> None:
    """What the group and the transaction refuse."""
    topic, group = make_topic(session, partitions=2), new_group(session)
    p = producer(session)
    session.ask(p.add_offsets(group), 3)
    for version in (3, 4, 5):

        def ask(label: str, *args: Any, version: int = version, **changed: Any) -> None:
            session.ask(p.offsets(group, topic, *args, **changed), version, label=label)

        ask("another producer id", pid=p.pid + 1000)
        ask("an epoch to come", epoch=p.epoch + 1)
        ask("no epoch", epoch=-1)
        ask("unknown id", id="nobody-" + p.id)
        ask("empty id", id="")
        ask("no such partition", partition=7)
        ask("long metadata", metadata="x" * 4097)
        ask("a generation of nobody", generation=1)
        ask("a member of nobody", member_id="m")
        session.ask(p.offsets(group, "no-such-topic"), version, label="no such topic")
        session.ask(p.offsets("", topic), version, label="empty group")
    p.describe()
    mixed = p.offsets(group, topic)
    mixed.topics += p.offsets(group, "no-such-topic").topics
    mixed.topics[0].partitions += p.offsets(group, topic, partition=9).topics[0].partitions
    session.ask(mixed, 3, label="mixed")


@case()
def txn_offsets_of_members(session: Session) -> None:
    """Member, instance and generation are checked if the producer tells them (KIP-447)."""
    topic = make_topic(session)
    group = new_group(session)
    member, _ = stable_group(session, group)
    p = producer(session)
    session.ask(p.add_offsets(group), 3)

    def ask(label: str, **changed: Any) -> None:
        session.ask(p.offsets(group, topic, **changed), 3, label=label)

    ask("as itself", member_id=member, generation=1)
    ask("as nobody")
    ask("an old generation", member_id=member, generation=0)
    ask("a generation to come", member_id=member, generation=2)
    ask("a stranger", member_id="stranger", generation=1)
    ask("no member", generation=1)
    ask("no generation", member_id=member)
    ask("an instance of nobody", member_id=member, generation=1, instance="i")
    p.finish(TV1)
    session.ask(stable_offset(group, topic, require=True), 7)


# ---------------------------------------------------------------------------------------- markers


def marker(
    topic: str,
    pid: int,
    epoch: int,
    *,
    coordinator_epoch: int = 0,
    committed: bool = False,
    partition: int = 0,
    version: int = 0,
) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=pid,
                producer_epoch=epoch,
                transaction_result=committed,
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
                coordinator_epoch=coordinator_epoch,
                transaction_version=version,
            )
        ]
    )


@case()
def txn_write_markers(session: Session) -> None:
    """An administrator ends a transaction in one partition; the coordinator does not know."""
    topic = make_topic(session)
    for version in (1, 2):
        p = producer(session, str(version))
        p.init()
        session.ask(p.add(topic), 3)
        session.ask(p.produce(topic), 9)
        session.ask(marker(topic, p.pid, -1), version, label="no epoch")
        session.ask(marker(topic, -1, 0), version, label="nobody")
        session.ask(marker(topic, p.pid, p.epoch, partition=9), version, label="no partition")
        session.ask(marker("no-such-topic", p.pid, p.epoch), version, label="no topic")
        session.ask(marker(topic, p.pid, p.epoch - 1), version, label="an epoch before")
        session.ask(marker(topic, p.pid, p.epoch, coordinator_epoch=3), version, label="written")
        producers(session, topic)
        p.describe()
        session.ask(
            marker(topic, p.pid, p.epoch, coordinator_epoch=2), version, label="a stale coordinator"
        )
        session.ask(marker(topic, p.pid, p.epoch, coordinator_epoch=3), version, label="twice")
        session.ask(
            marker(topic, p.pid, p.epoch + 2, coordinator_epoch=3), version, label="epochs ahead"
        )
        session.ask(p.produce(topic, 1), 9, label="after the marker")
        look(session, topic)
    session.ask(WriteTxnMarkersRequest(), 1, label="nothing")


@case()
def txn_write_markers_of_the_second_protocol(session: Session) -> None:
    """Markers of TV2 have to raise the epoch."""
    topic = make_topic(session)
    p = producer(session)
    session.ask(p.produce(topic), 12)

    def ask(epoch: int, label: str, version: int = 2) -> None:
        session.ask(marker(topic, p.pid, epoch, version=version), 2, label=label)

    ask(p.epoch, "the epoch of the records")
    ask(p.epoch + 1, "the next epoch")
    ask(p.epoch + 1, "twice")
    ask(p.epoch + 1, "twice, of TV1", 1)
    ask(p.epoch, "late")
    ask(p.epoch + 2, "another")
    session.ask(marker(topic, 4242, 0, version=2), 2, label="nobody")
    session.ask(marker(topic, 4242, 0, version=2), 2, label="nobody twice")
    look(session, topic)
    producers(session, topic)


@case()
def txn_write_markers_to_offsets(session: Session) -> None:
    """A marker in __consumer_offsets puts pending offsets in force."""
    topic, group = make_topic(session), new_group(session)
    p = producer(session)
    session.ask(p.offsets(group, topic), 5)
    index = java_partition(group)
    request = marker("__consumer_offsets", p.pid, p.epoch + 1, committed=True, partition=index)
    session.ask(request, 1)
    session.ask(stable_offset(group, topic, require=True), 7)
    p.describe()
