"""ShareFetch: sessions, what is acquired and how much of it, and what happens below it."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.cases.consumer_groups import topic_of
from tests.differential.cases.quotas import allow, loosely
from tests.differential.cases.share_groups import ATTEMPTS_MAX, altering, beat, catch_up
from tests.differential.dialogue import batch, wait_for_leaders
from tests.differential.registry import case
from tests.differential.session import Session
from tests.differential.sharing import (
    ACCEPT,
    FINAL,
    GAP,
    RECORD_LIMIT,
    RELEASE,
    RELEASED_MEANWHILE_MS,
    RELEASED_MS,
    Member,
    Shared,
    Wanted,
    alter_group,
    fetch_topic,
)
from tests.differential.transacting import Producer
from tests.support.share_states import ACKNOWLEDGED, write_request

UNKNOWN_ID = bytes(15) + b"\x07"


def names(session: Session, *topics: str) -> None:
    """Number the ids of topics in this order."""
    asked = [MetadataRequestTopic(name=name) for name in topics]
    answer = session.quietly(MetadataRequest(asked), 12)
    ids = {topic.name: topic.topic_id for topic in answer.topics}
    for name in topics:
        rows = [topic for topic in answer.topics if topic.name == name]
        answer.topics = rows
        session.ask(MetadataRequest([MetadataRequestTopic(name=name)]), 12)
    assert len(ids) == len(topics)


def delete_records(shared: Shared, offset: int, partition: int = 0) -> None:
    row = DeleteRecordsPartition(partition, offset)
    request = DeleteRecordsRequest([DeleteRecordsTopic(shared.topic, [row])], 5_000)
    shared.session.ask(request, 2, label="delete records")


# -- sessions --------------------------------------------------------------------------------------


@case()
def share_fetch_invalid_requests(session: Session) -> None:
    shared = Shared(session)
    shared.fill(3)
    m = shared.member()
    wrong: dict[str, dict[str, Any]] = {
        "no group": {"group": None},
        "empty group": {"group": ""},
        "no member": {"member": None},
        "empty member": {"member": ""},
        "long member": {"member": "m" * 37},
        "epoch 1 without a session": {"epoch": 1},
        "epoch -1 without a session": {"epoch": FINAL},
        "epoch -2": {"epoch": -2},
    }
    for label, fields in wrong.items():
        for version in (1, 2):
            m.look({0: []}, version=version, label=label, **{"epoch": 0, **fields})
        m.ack({0: [(0, 0, [ACCEPT])]}, label=label, **{"epoch": 0, **fields})
    m.fetch({0: [(0, 0, [ACCEPT])]}, epoch=0, label="acknowledges at once")
    for mode in (2, -1):
        m.look({0: []}, epoch=0, label=f"mode {mode}", share_acquire_mode=mode)
        m.look({0: []}, epoch=0, label=f"mode {mode}", share_acquire_mode=mode, max_records=0)
    nothing = dict.fromkeys(("max_wait_ms", "min_bytes", "max_bytes", "max_records"), 0)
    for name in nothing:
        m.look({0: []}, epoch=0, label=name, is_renew_ack=True, **{**nothing, name: 1})
    m.renew({0: []}, epoch=0, label="renews with no session")
    m.fetch({0: []}, epoch=0, member=" ", label="blank member")
    shared.stored()


@case()
def share_fetch_sessions(session: Session) -> None:
    shared = Shared(session, partitions=3)
    shared.warm(0, 1, 2)
    m, n = shared.member("m"), shared.member("n")
    m.look({0: [], 1: []}, label="opens")
    m.look(label="nothing new")
    shared.fill(2, partition=0)
    shared.fill(2, partition=2)
    m.fetch(label="a record")
    m.fetch({2: []}, label="one partition more")
    m.look(forgotten=[0, 7], label="forgets one")
    shared.fill(2, partition=0)
    shared.fill(2, partition=1)
    m.look(label="the other")
    m.look({0: []}, label="remembers it")
    for epoch in (3, m.epoch + 1, m.epoch - 1, 2**31 - 1, -5):
        m.look(epoch=epoch, label=f"epoch {epoch}")
    m.epoch = 7
    m.look(label="who knows")
    m.look(epoch=0, label="empty session")
    m.look(label="goes on")
    m.look({1: []}, label="adds")
    m.look({1: [], 2: []}, epoch=0, label="begins anew")
    n.look({0: [], 1: [], 2: []}, epoch=0, label="opens, nothing left")
    n.look({0: []}, epoch=FINAL, label="closes")
    n.look(label="is gone")
    n.look(epoch=FINAL, label="closes again")
    m.look({0: []}, epoch=FINAL, forgotten=[2], label="closes")
    all_of_them: dict[str, Any] = {"max_wait_ms": RELEASED_MS, "min_bytes": 1 << 19}
    n.fetch({0: [], 1: [], 2: []}, epoch=0, label="gets all", **all_of_them)
    shared.stored(0, 1, 2)


@case()
def share_fetch_session_of_a_closed_connection(session: Session) -> None:
    """The records of a member come back when its connection ends."""
    shared = Shared(session)
    shared.fill(3, 2)
    m, n = shared.member("m"), shared.member("n")
    m.fetch({0: []}, epoch=0)
    m.fetch({0: [(1, 1, [ACCEPT])]}, max_wait_ms=0)
    finish = n.start({0: []}, epoch=0, max_wait_ms=RELEASED_MEANWHILE_MS)
    session.drop("m")
    finish("after the connection ended")
    m.look(label="on a new connection")
    m.look({0: []}, epoch=0, label="again")
    shared.stored()


@case()
def share_fetch_unknown_partitions(session: Session) -> None:
    shared = Shared(session, partitions=2)
    other, other_id = topic_of(session, "-other", 1)  # not subscribed: no state
    shared.warm(0)
    names(session, shared.topic, other)
    shared.fill(2)
    m = shared.member()
    unknown = fetch_topic(UNKNOWN_ID, {0: [], 5: []})
    m.look({9: [], -1: []}, epoch=0, label="beyond")
    m.look(label="beyond still")
    m.look({}, topics=[unknown], label="unknown topic")
    m.look(label="unknown still")
    m.look({0: []}, topics=[unknown], epoch=0, label="both")
    m.look({0: [(1, 1, [ACCEPT])]}, topics=[fetch_topic(UNKNOWN_ID, {0: [(0, 0, [ACCEPT])]})])
    again = [fetch_topic(shared.topic_id, {0: []})]
    m.look({0: [], 1: []}, topics=again, epoch=0, label="one twice")
    m.fetch(topics=[fetch_topic(other_id, {0: []})], epoch=0, label="no state", max_wait_ms=300)
    m.fetch(label="no state still", max_wait_ms=300)
    m.look({0: []}, topics=[fetch_topic(bytes(16), {0: []})], epoch=0, label="zero id")


# -- how much --------------------------------------------------------------------------------------


@case()
def share_fetch_limits(session: Session) -> None:
    """Numbers of records and sizes of batches, in both modes."""
    shared = Shared(session)
    shared.fill(1, 5, 10, 3, 40, 2)
    m = shared.member()
    m.fetch({0: []}, epoch=0, max_records=1, label="1")
    m.look(max_records=2, label="2")
    m.look(max_records=6, batch_size=4, label="6 in batches of 4")
    m.look(max_records=10, batch_size=1, label="10 in batches of 1")
    m.look(max_records=1, batch_size=0, label="batches of 0")
    m.look(max_records=1, batch_size=-1, label="batches of -1")
    m.look(max_records=-1, label="-1")
    m.look(max_records=0, label="0")
    m.look(epoch=FINAL, label="closes")
    limit: dict[str, Any] = {"share_acquire_mode": RECORD_LIMIT}
    m.fetch({0: []}, epoch=0, max_records=2, max_wait_ms=RELEASED_MS, label="limit 2", **limit)
    m.look(max_records=5, batch_size=2, label="limit 5", **limit)
    m.look(max_records=12, batch_size=1, label="limit 12", **limit)
    m.look(max_records=-1, label="limit -1", **limit)
    m.look(max_records=17, batch_size=100, label="limit 17", **limit)
    m.look(max_records=200, batch_size=7, label="the rest", **limit)
    m.look(label="nothing left")
    shared.stored()
    m.leave()
    n = shared.member("n")
    released: dict[str, Any] = {"max_wait_ms": RELEASED_MS, "label": "3 of what was released"}
    n.fetch({0: []}, epoch=0, max_records=3, batch_size=3, **released)
    n.look(max_records=20, label="20")
    n.look(max_records=7, label="limit 7", **limit)
    n.look(version=1, label="v1")
    shared.stored()


@case()
def share_fetch_bytes(session: Session) -> None:
    shared = Shared(session)
    shared.fill(3, 3, 3, 3)
    m = shared.member()
    m.fetch({0: []}, epoch=0, max_bytes=1, label="one batch at least")
    m.look(max_bytes=0, label="no bytes")
    m.look(max_bytes=-1, label="-1")
    m.look(max_bytes=150, label="one and a bit")
    m.look(max_bytes=-1, max_wait_ms=100, label="-1, waits")
    m.look(min_bytes=1 << 19, label="does not wait for much")
    m.look(min_bytes=-1, label="nothing there")
    shared.fill(1)
    m.fetch(min_bytes=-1, label="no least bytes")
    m.look(label="nothing there")


@case()
def share_fetch_waits(session: Session) -> None:
    shared = Shared(session)
    shared.fill(1)
    m, n, o = (shared.member(name) for name in "mno")
    m.fetch({0: []}, epoch=0)
    finish = m.start()
    shared.fill(2)
    finish("a batch")
    finish = m.start(min_bytes=120)
    shared.fill(1)
    shared.fill(1)
    finish("two batches")
    finish = n.start({0: []}, epoch=0, max_wait_ms=RELEASED_MEANWHILE_MS)
    m.ack({0: [(1, 1, [RELEASE])]}, label="releases")
    finish("what was released")
    finish = n.start(max_wait_ms=RELEASED_MEANWHILE_MS)
    m.leave()
    finish("what the other left")
    o.fetch({0: []}, epoch=0, max_wait_ms=50, label="waits in vain")
    o.fetch(max_wait_ms=-1, label="negative wait")
    finish = o.start(max_wait_ms=RELEASED_MEANWHILE_MS)
    n.fetch({0: [(0, 0, [RELEASE])]}, max_wait_ms=0, max_records=0, label="releases by fetch")
    finish("what was released by a fetch")
    shared.stored()


@case()
def share_fetch_several_partitions(session: Session) -> None:
    shared = Shared(session, partitions=3)
    second = shared.beside("-second")
    names(session, shared.topic, second.topic)
    shared.warm(0, 1, 2)
    second.warm(0)
    for index in range(3):
        shared.fill(2, 3, partition=index)
    m, n = shared.member("m"), shared.member("n")
    m.look({0: [], 1: [], 2: []}, epoch=0, max_records=2, label="2 records")
    m.look(max_records=4, label="4 records")
    m.look(max_records=1, share_acquire_mode=RECORD_LIMIT, label="1 record")
    m.look(label="all the rest")
    for index in range(3):
        shared.fill(2, 3, partition=index)
    second.fill(4)
    both = fetch_topic(shared.topic_id, {2: [], 0: []}), fetch_topic(second.topic_id, {0: []})
    n.look(epoch=0, topics=both, max_records=9, label="9 of two topics")
    n.look(max_records=3, label="3 of two topics")
    n.look(label="the rest of two topics")
    several = fetch_topic(second.topic_id, {0: [(1, 2, [ACCEPT])]})
    n.look({0: [(6, 10, [ACCEPT])], 2: [(6, 6, [ACCEPT])]}, topics=[several], label="accepts")
    shared.stored(0, 1, 2)
    second.stored()


@case()
def share_fetch_several_members(session: Session) -> None:
    shared = Shared(session)
    shared.fill(4, 4, 4)
    m, n, o = (shared.member(name) for name in "mno")
    m.fetch({0: []}, epoch=0, max_records=3)
    n.look({0: []}, epoch=0, max_records=3)
    o.look({0: []}, epoch=0, max_records=3, share_acquire_mode=RECORD_LIMIT)
    o.look(max_records=5, share_acquire_mode=RECORD_LIMIT)
    m.look({0: [(0, 2, [RELEASE])]}, max_records=0)
    o.look({0: []}, label="takes them")
    n.leave()
    o.fetch(label="takes those of n", max_wait_ms=RELEASED_MS)
    o.leave()
    m.fetch(label="takes those of o", max_wait_ms=RELEASED_MS)
    shared.stored()


@case()
def share_fetch_record_locks(session: Session) -> None:
    """No more records are in flight than the group's config allows."""
    shared = Shared(session, share_partition_max_record_locks="100")
    shared.fill(60, 30, 30, 60)
    m = shared.member()
    m.fetch({0: []}, epoch=0)
    m.look(label="no room")
    m.look({0: [(10, 20, [ACCEPT])]}, label="no room in the middle")
    m.ack({0: [(30, 40, [RELEASE])]}, label="releases")
    m.look(label="may have what was released")
    m.ack({0: [(0, 9, [ACCEPT])]}, label="accepts")
    m.look(label="room at the start")
    m.look(label="nothing more")
    shared.stored()
    m.leave()
    n = shared.member("n")
    limit: dict[str, Any] = {"share_acquire_mode": RECORD_LIMIT, "max_wait_ms": RELEASED_MS}
    n.fetch({0: []}, epoch=0, label="limit", **limit)
    n.look(label="more")
    shared.stored()


# -- where it begins -------------------------------------------------------------------------------


@case()
def share_fetch_offset_reset(session: Session) -> None:
    for index, reset in enumerate(
        ("latest", "earliest", "by_duration:PT1H", "by_duration:P20000D", "by_duration:PT0S")
    ):
        shared = Shared(session, f"-{index}", share_auto_offset_reset=reset)
        shared.fill(2)
        fresh = batch([b"fresh"])
        shared.produce(fresh)
        m = shared.member()
        m.fetch({0: []}, epoch=0, max_wait_ms=300, label=reset)
        shared.fill(1)
        m.fetch(max_wait_ms=300, label=f"{reset}, a record more")
        shared.stored()


@case()
def share_fetch_of_altered_offsets(session: Session) -> None:
    shared = Shared(session)
    shared.fill(2, 3)
    m = shared.member()
    m.fetch({0: []}, epoch=0)
    m.fetch({0: [(0, 2, [ACCEPT])]}, max_wait_ms=0)
    session.ask(altering(shared.group, {shared.topic: {0: 1}}), 0, label="not empty")
    session.ask(beat(shared.group, "joined", -1), 1)
    session.ask(altering(shared.group, {shared.topic: {0: 1}}), 0, label="altered")
    shared.stored()
    m.ack({0: [(3, 3, [ACCEPT])]}, label="is fenced")
    m.fetch(label="from where it is now")
    m.fetch({0: []}, epoch=0, max_wait_ms=300, label="a new session")
    shared.stored()
    session.ask(altering(shared.group, {shared.topic: {0: 9}}), 0, label="beyond the end")
    m.ack({0: [(1, 4, [ACCEPT])]}, epoch=m.epoch, label="is fenced")
    m.fetch(max_wait_ms=100, label="beyond the end")
    m.fetch(max_wait_ms=100, label="beyond the end")
    shared.stored()


# -- what becomes of the log -----------------------------------------------------------------------


@case()
def share_fetch_of_deleted_records(session: Session) -> None:
    shared = Shared(session)
    shared.fill(3, 3, 3)
    m = shared.member()
    m.fetch({0: []}, epoch=0, max_records=4)
    delete_records(shared, 4)
    m.look(label="goes on")
    shared.stored()
    m.look({0: [(0, 3, [ACCEPT])]}, label="accepts what is gone")
    m.ack({0: [(4, 8, [RELEASE])]}, label="releases")
    m.look(label="goes on")
    m.look({0: [(4, 4, [ACCEPT])]}, label="accepts the first")
    shared.stored()
    delete_records(shared, -1)
    m.look(label="all is gone")
    m.look(label="all is gone")
    shared.fill(2)
    m.look(label="new ones")
    shared.stored()


@case()
def share_fetch_of_a_log_that_starts_later(session: Session) -> None:
    """Nothing was acquired, or all was released, when the start of the log moves."""
    shared = Shared(session)
    shared.fill(3, 3, 3)
    m = shared.member()
    m.fetch({0: []}, epoch=0, max_records=3)
    m.ack({0: [(0, 2, [RELEASE])]})
    delete_records(shared, 5)
    shared.stored()
    m.look(label="after")
    m.look(label="again")
    m.look({0: [(5, 5, [ACCEPT])]}, label="accepts")
    shared.stored()


@case()
def share_fetch_of_a_gap_below_the_log_start(session: Session) -> None:
    """The state that a new leader reads lacks records, and the log begins in this gap or after it.
    Such a gap is fetched for ever, also after the offsets were altered: the leader keeps what it
    read.
    """
    for index, (log_start, after) in enumerate(((3, "in the gap"), (5, "behind the gap"))):
        shared = Shared(session, f"-{index}")
        shared.fill(2, 2, 2, 2, 2)
        known = write_request(
            shared.topic_id,
            {0: [(4, 7, ACKNOWLEDGED, 1)]},
            group=shared.group,
            state_epoch=2,
            start=0,
        )
        session.ask(known, 1, label="acknowledged behind a gap")
        delete_records(shared, log_start)
        m = shared.member()
        m.fetch({0: []}, epoch=0, max_wait_ms=300, label=after)
        for _ in range(3):
            m.look(label=after)
        shared.fill(2)
        m.look(label=f"{after}, records more")
        m.look({0: []}, epoch=0, label=f"{after}, a new session")
        m.leave()
        shared.stored()
        session.ask(beat(shared.group, "joined", -1), 1)
        altered = altering(shared.group, {shared.topic: {0: log_start}})
        session.ask(altered, 0, label="altered")
        m.fetch({0: []}, epoch=0, max_wait_ms=300, label="altered")
        m.fetch(max_wait_ms=300, label="altered, again")
        m.leave()


@case()
def share_fetch_of_a_deleted_topic(session: Session) -> None:
    shared = Shared(session)
    shared.fill(3)
    m = shared.member()
    m.fetch({0: []}, epoch=0, max_records=2)
    request = DeleteTopicsRequest([DeleteTopicState(name=shared.topic)], timeout_ms=10_000)
    session.quietly(request, 6)
    asked = MetadataRequest([MetadataRequestTopic(name=shared.topic)], False)
    while not session.quietly(asked, 12).topics[0].error_code:
        pass
    m.ack({0: [(0, 0, [ACCEPT])]}, label="deleted")
    m.look(label="deleted")
    m.look(label="deleted still")
    m.look({0: []}, epoch=0, label="a new session")
    former = m.topic_id
    topic_of(session, "", 1)
    made = wait_for_leaders(session, shared.topic)
    joined = session.quietly(beat(shared.group, "two", 0, shared.topic), 1)
    catch_up(session, shared.group, "two", joined.member_epoch)
    shared.fill(2)
    m.look(label="the old id")
    n = Member(session, shared.group, "n", made)
    n.fetch({0: []}, epoch=0, label="made anew")
    n.ack({0: [(0, 0, [ACCEPT])]}, topics=[], label="made anew")
    assert former != made
    shared.topic_id = made
    shared.stored()


# -- transactions ----------------------------------------------------------------------------------


def begin(producer: Producer, topic: str) -> None:
    """Add a partition; a real coordinator may still be at the markers of the transaction before."""
    for _ in range(ATTEMPTS_MAX):
        answer = producer.session.quietly(producer.add(topic), 3)
        if not answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code:
            return
    raise AssertionError(f"{producer.id} cannot begin: {answer}")


def transact(shared: Shared) -> Producer:
    """Committed, aborted and open transactions, and records without one; the open one's."""
    session = shared.session
    done, still = Producer(session, f"-{shared.topic}"), Producer(session, f"-{shared.topic}-2")
    for producer in (done, still):
        producer.session.quietly(producer.init_request(), 5)
        answer = producer.session.quietly(producer.init_request(), 5)
        producer.pid, producer.epoch = answer.producer_id, answer.producer_epoch
    shared.fill(2)
    for number, committed in enumerate((True, False, False, True)):
        begin(done, shared.topic)
        session.quietly(done.produce(shared.topic, 2 * number, [b"a", b"b"]), 9)
        shared.fill(1)
        answer = session.quietly(done.end(committed=committed), 4)
        assert answer.error_code == 0, answer
        done.settle()
    begin(still, shared.topic)
    session.quietly(still.produce(shared.topic, 0, [b"open"]), 9)
    shared.fill(2)
    return still


@case()
def share_fetch_read_committed(session: Session) -> None:
    configs: dict[str, Any] = {"share_isolation_level": "read_committed"}
    shared = Shared(session, topic_configs={"segment_ms": str(2**63 - 1)}, **configs)
    still = transact(shared)
    m = shared.member()
    m.fetch({0: []}, epoch=0, max_records=5, label="5")
    m.look(label="all that is stable")
    m.look({0: [(0, 3, [ACCEPT])]}, label="accepts")
    m.look({0: [(4, 4, [GAP])]}, label="gap")
    shared.stored()
    finish = m.start()
    session.quietly(still.end(committed=False), 4)
    finish("after the abort")
    m.look(label="nothing left")
    shared.stored()
    m.leave()
    m.fetch({0: []}, epoch=0, label="anew", max_wait_ms=RELEASED_MS)
    shared.stored()


@case()
def share_fetch_read_uncommitted(session: Session) -> None:
    shared = Shared(session, topic_configs={"segment_ms": str(2**63 - 1)})
    transact(shared)
    m = shared.member()
    m.fetch({0: []}, epoch=0, max_records=5, label="5")
    m.look(label="all")
    m.look({0: [(0, 3, [ACCEPT]), (4, 4, [GAP])]}, label="accepts")
    shared.stored()
    alter_group(session, shared.group, share_isolation_level="read_committed")
    m.ack({0: [(5, 20, [RELEASE])]}, label="releases")
    m.fetch({0: []}, epoch=0, label="reads committed")
    m.look(label="nothing left")
    shared.stored()


@case()
def share_fetch_of_record_gaps(session: Session) -> None:
    """Batches whose last offsets have no records, as compaction leaves them."""
    shared = Shared(session)
    shared.fill(3, 3)
    m = shared.member()
    m.fetch({0: []}, epoch=0)
    m.ack({0: [(0, 5, [ACCEPT, GAP, RELEASE, GAP, GAP, RELEASE])]}, label="some are gaps")
    shared.stored()
    m.look(label="the rest")


# -- quotas ----------------------------------------------------------------------------------------


@case()
def share_fetch_throttled(session: Session) -> None:
    """It brings nothing but what became of acknowledgements. Its records stay acquired."""
    shared = Shared(session, partitions=2)
    shared.warm(0, 1)
    shared.produce(batch([b"v" * 50_000]))
    shared.produce(batch([b"w" * 50]))
    shared.produce(batch([b"x" * 50_000]))
    who = allow(session, consumer_byte_rate=100.0)
    m, n = shared.member("m"), shared.member("n")

    def fetch(wanted: Wanted | None, label: str, **fields: Any) -> None:
        request = m.request(wanted, max_wait_ms=0, **fields)
        session.ask(request, 2, who, label=label, edit=loosely)

    # The session ends with its connection, which is muted while its client has to wait.
    fetch({0: []}, "too much", epoch=0)
    n.look({0: []}, epoch=0, label="not throttled")
    n.look(epoch=FINAL)
    session.drop(who)
    allow(session, consumer_byte_rate=1e9)
    fetch({0: []}, "enough", epoch=0)
    shared.stored()
