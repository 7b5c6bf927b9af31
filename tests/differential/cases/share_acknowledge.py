"""ShareAcknowledge and the acknowledgements of ShareFetch: types, ranges, deliveries, locks."""

from __future__ import annotations

from typing import Any

from tests.differential.cases.consumer_groups import topic_of
from tests.differential.cases.share_fetch import UNKNOWN_ID, names
from tests.differential.registry import case
from tests.differential.session import Session
from tests.differential.sharing import (
    ACCEPT,
    FINAL,
    GAP,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    RELEASED_MS,
    RENEW,
    Acks,
    Member,
    Shared,
    ack_topic,
    alter_group,
    fetch_topic,
)
from tests.support.share_states import ARCHIVED, read_request
from tests.support.waiting import wait_until


@case()
def share_acknowledge_sessions(session: Session) -> None:
    shared = Shared(session)
    shared.fill(4, 4)
    m, n = shared.member("m"), shared.member("n")
    accept = {0: [(0, 0, [ACCEPT])]}
    for version in (1, 2):
        m.ack(accept, epoch=0, version=version, label="epoch 0")
        m.ack(accept, epoch=1, version=version, label="no session")
        m.ack(accept, epoch=FINAL, version=version, label="no session to close")
    m.fetch({0: []}, epoch=0, max_records=4)
    m.ack(accept, epoch=0, label="epoch 0 of a session")
    m.epoch = 1
    m.ack(label="nothing at all")
    m.ack({}, label="no partitions")
    m.ack({0: []}, label="no batches")
    m.ack(accept, epoch=2, label="older epoch")
    m.ack(accept, epoch=9, label="newer epoch")
    m.ack(accept, label="v1", version=1)
    m.ack({0: [(1, 1, [RELEASE])]}, label="v2")
    m.ack({0: [(2, 2, [ACCEPT])]}, epoch=FINAL, label="closes")
    m.ack({0: [(3, 3, [ACCEPT])]}, epoch=FINAL, label="closed")
    rest: dict[str, Any] = {"max_wait_ms": RELEASED_MS, "min_bytes": 1 << 19}
    n.fetch({0: []}, epoch=0, label="takes the rest", **rest)
    shared.stored()


@case()
def share_acknowledge_types(session: Session) -> None:
    """Each type for a whole batch, a part of it, and offset by offset."""
    shared = Shared(session)
    shared.fill(*[6] * 12)
    m = shared.member()
    m.fetch({0: []}, epoch=0, max_records=6, batch_size=6)
    for _ in range(11):
        m.look(max_records=6, batch_size=6)
    for number, acknowledge_type in enumerate((GAP, ACCEPT, RELEASE, REJECT)):
        at = 18 * number
        m.ack({0: [(at, at + 5, [acknowledge_type])]}, label=f"whole {acknowledge_type}")
        m.ack({0: [(at + 7, at + 9, [acknowledge_type])]}, label=f"part {acknowledge_type}")
        several = [acknowledge_type, ACCEPT, REJECT, RELEASE, GAP, acknowledge_type]
        m.ack({0: [(at + 12, at + 17, several)]}, label=f"each {acknowledge_type}")
        shared.stored(written=False)
    shared.stored()
    m.look(label="what was released")
    m.leave()
    n = shared.member("n")
    n.fetch({0: []}, epoch=0, label="what its session had", max_wait_ms=RELEASED_MS)
    shared.stored()


@case()
def share_acknowledge_invalid_batches(session: Session) -> None:
    shared = Shared(session, partitions=2)
    shared.warm(0, 1)
    other, other_id = topic_of(session, "-other", 1)
    names(session, shared.topic, other)
    shared.fill(5, 5)
    shared.fill(3, partition=1)
    m, n = shared.member("m"), shared.member("n")
    m.look({0: [], 1: []}, epoch=0)
    n.look({0: []}, epoch=0)
    invalid: dict[str, Acks] = {
        "backwards": [(3, 2, [ACCEPT])],
        "wrong order": [(3, 3, [ACCEPT]), (2, 2, [ACCEPT])],
        "overlap": [(1, 3, [ACCEPT]), (2, 4, [ACCEPT])],
        "touch": [(1, 3, [RELEASE]), (3, 4, [ACCEPT])],
        "no types": [(1, 1, [])],
        "too few types": [(1, 3, [ACCEPT, ACCEPT])],
        "too many types": [(1, 3, [ACCEPT] * 4)],
        "type 5": [(1, 1, [5])],
        "type -1": [(1, 1, [-1])],
        "type 4": [(1, 1, [RENEW])],
        "one type is wrong": [(1, 2, [ACCEPT, 9])],
        "second is wrong": [(1, 2, [ACCEPT]), (3, 3, [9])],
        "negative offsets": [(-3, -1, [ACCEPT])],
        "from -1": [(-1, 1, [ACCEPT])],
        "below the start": [(0, 0, [ACCEPT])],
        "from below the start": [(0, 2, [RELEASE])],
        "beyond the end": [(11, 11, [ACCEPT])],
        "across the end": [(9, 12, [ACCEPT])],
        "huge": [(1, 2**62, [ACCEPT])],
    }
    for label, acks in invalid.items():
        m.ack({0: acks}, label=label)
        m.look({0: acks, 1: [(1, 1, [RELEASE])]}, label=f"{label}, by fetch", max_records=0)
        m.look(label="takes what was released")
    m.ack({0: [(1, 1, [RENEW])]}, version=1, label="type 4 in v1")
    n.ack({0: [(1, 2, [ACCEPT])]}, label="those of m")
    n.ack({0: [(1, 1, [ACCEPT])], 1: [(1, 1, [ACCEPT])]}, label="those of m, two partitions")
    m.ack({0: [(1, 1, [ACCEPT])], 7: [(1, 1, [ACCEPT])], 1: []}, label="unknown partition")
    m.ack(
        {0: [(2, 2, [ACCEPT])]},
        topics=[ack_topic(other_id, {0: [(0, 0, [ACCEPT])]})],
        label="no share partition",
    )
    m.ack({0: [(1, 1, [ACCEPT])]}, label="accepted already")
    m.ack({0: [(1, 3, [ACCEPT])]}, label="accepted in part")
    m.ack({0: [(3, 3, [RELEASE])]}, label="releases")
    m.ack({0: [(3, 3, [ACCEPT])]}, label="after the release")
    m.ack(
        {0: [(4, 4, [ACCEPT])]},
        topics=[ack_topic(shared.topic_id, {0: [(5, 5, [ACCEPT])]})],
        label="one partition twice",
    )
    m.look(
        {0: [(6, 6, [ACCEPT])]},
        topics=[fetch_topic(shared.topic_id, {0: [(7, 7, [ACCEPT])]})],
        label="one partition twice, by fetch",
        max_records=0,
    )
    shared.stored(0, 1)


@case()
def share_acknowledge_unknown_topics(session: Session) -> None:
    shared = Shared(session)
    shared.fill(3)
    m = shared.member()
    m.fetch({0: []}, epoch=0)
    accept = {0: [(0, 0, [ACCEPT])]}
    m.ack(topics=[ack_topic(UNKNOWN_ID, accept)], label="unknown")
    m.ack(accept, topics=[ack_topic(UNKNOWN_ID, accept)], label="one of them unknown")
    m.ack({0: []}, topics=[ack_topic(UNKNOWN_ID, accept)], label="an empty one beside")
    m.ack(topics=[ack_topic(bytes(16), accept)], label="zero")
    shared.stored()


@case()
def share_acknowledge_across_batches(session: Session) -> None:
    shared = Shared(session)
    shared.fill(4, 4, 4, 4, 4)
    m, n = shared.member("m"), shared.member("n")
    m.fetch({0: []}, epoch=0, max_records=4, batch_size=4)
    m.look(max_records=4, batch_size=4)
    n.look({0: []}, epoch=0, max_records=4, batch_size=4)
    m.look(max_records=8, batch_size=1)
    m.ack({0: [(2, 5, [ACCEPT])]}, label="two batches")
    m.ack({0: [(6, 9, [ACCEPT])]}, label="a batch of n in it")
    m.ack({0: [(6, 7, [RELEASE]), (8, 8, [ACCEPT])]}, label="one of them of n")
    m.ack({0: [(0, 1, [ACCEPT, GAP]), (6, 7, [RELEASE, REJECT]), (12, 19, [ACCEPT])]}, label="all")
    shared.stored()
    n.ack({0: [(8, 11, [ACCEPT, ACCEPT, RELEASE, RELEASE])]}, label="all of n")
    shared.stored()
    m.look(label="what was released")
    m.look({0: [(6, 6, [ACCEPT])]}, label="the first of it", max_records=0)
    shared.stored()


@case()
def share_acknowledge_and_fetch(session: Session) -> None:
    """Acknowledgements of a fetch are applied, and answered beside what it finds."""
    shared = Shared(session, partitions=2)
    shared.warm(0, 1)
    shared.fill(3, 3)
    m = shared.member()
    m.look({0: [], 1: []}, epoch=0, max_records=3)
    m.look({0: [(1, 2, [ACCEPT])]}, max_records=3)
    m.look({0: [(3, 3, [ACCEPT])], 1: [(1, 1, [ACCEPT])]})
    m.look({1: []}, forgotten=[0])
    m.look({0: [(4, 4, [ACCEPT])]}, forgotten=[0], label="forgotten at the same time")
    m.look({0: [(5, 5, [9])]}, forgotten=[0], label="wrong, and forgotten at the same time")
    m.fetch({0: [(5, 5, [RELEASE])]}, epoch=FINAL, label="closes", max_wait_ms=0)
    n = shared.member("n")
    n.fetch({0: []}, epoch=0, max_wait_ms=RELEASED_MS, min_bytes=1 << 19)
    shared.stored(0)


@case()
def share_acknowledge_renew(session: Session) -> None:
    shared = Shared(session, partitions=2)
    shared.warm(0, 1)
    shared.fill(4, 4)
    shared.fill(3, partition=1)
    m, n = shared.member("m"), shared.member("n")
    m.look({0: []}, epoch=0, max_records=4)
    n.look({0: []}, epoch=0)
    renew = {0: [(1, 4, [RENEW])]}
    m.ack(renew, label="not a renewal")
    m.ack(renew, renew=True, label="whole")
    m.ack({0: [(2, 3, [RENEW])]}, renew=True, label="part")
    m.ack({0: [(1, 4, [RENEW, ACCEPT, RELEASE, RENEW])]}, renew=True, label="mixed")
    m.ack({0: [(5, 5, [RENEW])]}, renew=True, label="of n")
    m.ack({0: [(2, 2, [RENEW])]}, renew=True, label="accepted already")
    m.ack({0: [(1, 1, [ACCEPT])]}, renew=True, label="renews nothing")
    m.renew({0: [(4, 4, [RENEW])], 1: []}, label="by fetch")
    m.renew({0: []}, label="by fetch, nothing")
    m.renew({0: [(4, 4, [ACCEPT])]}, label="by fetch, accepts")
    n.renew({0: [(5, 5, [RENEW])]}, epoch=FINAL, label="closes")
    m.fetch(label="what is left", max_wait_ms=RELEASED_MS, min_bytes=1 << 19)
    shared.stored()
    alter_group(session, shared.group, share_renew_acknowledge_enable="false")
    m.ack({0: [(5, 5, [RENEW])]}, renew=True, label="not allowed")
    m.renew({0: [(5, 5, [RENEW])]}, label="not allowed by fetch")
    shared.stored()


def deliver(m: Member, *, times: int, offset: int = 0, last: int = 0) -> None:
    """Fetch and release that often; recorded."""
    m.fetch({0: []}, epoch=0)
    for _ in range(times):
        m.ack({0: [(offset, last, [RELEASE])]}, label="releases")
        m.look()


@case()
def share_acknowledge_delivery_limit(session: Session) -> None:
    """A record is archived when it was delivered as often as the group allows."""
    for index, limit in enumerate(("2", "3", "5")):
        shared = Shared(session, f"-{index}", share_delivery_count_limit=limit)
        shared.fill(1)
        m = shared.member()
        deliver(m, times=int(limit))
        shared.fill(1)
        m.look(label="the next")
        shared.stored()


@case()
def share_acknowledge_batches_near_the_limit(session: Session) -> None:
    """Fewer and fewer records go together: each member releases all that it gets."""
    for index, (limit, mode) in enumerate((("5", 0), ("5", RECORD_LIMIT), ("3", 0), ("10", 0))):
        shared = Shared(session, f"-{index}", share_delivery_count_limit=limit)
        shared.fill(8, 5)
        m = shared.member()
        answer = m.fetch({0: []}, epoch=0, share_acquire_mode=mode)
        for _ in range(70):
            if not answer.responses or not answer.responses[0].partitions[0].acquired_records:
                break
            rows = answer.responses[0].partitions[0].acquired_records
            m.ack({0: [(row.first_offset, row.last_offset, [RELEASE]) for row in rows]})
            answer = m.look(share_acquire_mode=mode, label=f"limit {limit}, mode {mode}")
        shared.stored(written=False)


@case()
def share_acknowledge_one_bad_record(session: Session) -> None:
    """One record is released again and again, the others are accepted."""
    shared = Shared(session)
    shared.fill(10)
    m = shared.member()
    answer = m.fetch({0: []}, epoch=0)
    while answer.responses and answer.responses[0].partitions[0].acquired_records:
        rows = answer.responses[0].partitions[0].acquired_records
        acks = []
        for row in rows:
            offsets = range(row.first_offset, row.last_offset + 1)
            types = [RELEASE if offset % 4 == 3 else ACCEPT for offset in offsets]
            if row.delivery_count == 1:
                types[0] = RELEASE
            acks.append((row.first_offset, row.last_offset, types))
        m.ack({0: acks})
        answer = m.look()
    shared.stored()


@case(slow=True)
def share_acknowledge_after_the_lock_expired(session: Session) -> None:
    """Locks of a second: what is not acknowledged in time goes to the next that asks."""
    configs: dict[str, Any] = {
        "share_record_lock_duration_ms": "1000",
        "share_delivery_count_limit": "2",
    }
    shared = Shared(session, **configs)
    shared.fill(3)
    m, n = shared.member("m"), shared.member("n")
    m.fetch({0: []}, epoch=0)
    n.fetch({0: []}, epoch=0, label="when the locks have expired")
    m.ack({0: [(0, 0, [ACCEPT])]}, label="too late")
    n.ack({0: [(0, 0, [ACCEPT])]}, label="in time")
    state = read_request(shared.topic_id, group=shared.group, leader_epoch=-1)

    def archived() -> bool:
        row = session.quietly(state, 0).results[0].partitions[0]
        return (2, ARCHIVED) in [(b.last_offset, b.delivery_state) for b in row.state_batches]

    wait_until(archived)
    n.ack({0: [(2, 2, [RELEASE])]}, label="too late")
    shared.fill(1)
    m.fetch(label="the new record")
    m.ack({0: [(3, 3, [ACCEPT])]})
    shared.stored(written=False)  # a real broker writes once for each lock, in any order
