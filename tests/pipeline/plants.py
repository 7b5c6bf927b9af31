"""Anomalies planted in a story: what goes wrong, and which findings that has to give.

A plant gets a story that has been played, makes one thing go wrong, and returns the findings that
are due, without their evidence numbers; None when the story has no place for it. What it
cannot help bringing along is in `ALONG`. Plants know what they did, not how the audit looks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tests.pipeline.histories import Log, Row, Story
from tests.pipeline.share_plants import PLANTS as SHARE_PLANTS


class Due(NamedTuple):
    """A finding that has to be there: a `Finding` without run, numbers, rule and details."""

    anomaly: str
    verdict: str
    level: str
    topic_id: str | None
    partition: int | None
    offset: int | None
    subject: str | None


# Of an application's word about topics that were made anew nothing is due: `Story.made_anew`.
Plant = Callable[[Story], list[Due] | None]


def due(
    anomaly: str, verdict: str, level: str, where: Log | Row | None, offset: int | None,
    subject: str | None,
) -> Due:  # fmt: skip
    if where is None:
        return Due(anomaly, verdict, level, None, None, offset, subject)
    place = where.place if isinstance(where, Log) else where
    return Due(anomaly, verdict, level, place["topic_id"], place["partition"], offset, subject)


def answers(story: Story) -> Iterator[tuple[Row, list[Row]]]:
    """The answers that brought something, each with its deliveries in order."""
    for fetch in story.tables["fetches"]:
        brought = [
            d
            for d in story.tables["deliveries"]
            if d["response_seq"] == fetch["response_seq"]
            and (d["topic_id"], d["partition"]) == (fetch["topic_id"], fetch["partition"])
        ]
        if brought:
            yield fetch, brought


def an_answer(story: Story, least: int = 1, **like: object) -> tuple[Row, list[Row]] | None:
    fitting = [
        (fetch, brought)
        for fetch, brought in answers(story)
        if len(brought) >= least and all(fetch[name] == value for name, value in like.items())
    ]
    return story.dice.choice(fitting) if fitting else None


def other_value(story: Story) -> list[Due] | None:
    """A consumer got something else than what was acknowledged."""
    story.send(story.senders[0], story.logs[0], acks=-1)
    reader = story.alone[0]
    story.new_read_span(reader, story.logs[0], story.logs[0].end - 1, "reset")
    fetch = story.fetch(reader, story.logs[0])
    delivery = next(
        d for d in story.tables["deliveries"] if d["response_seq"] == fetch["response_seq"]
    )
    delivery["value_hash"] += 1
    return [due("inconsistent_offset", "bug", "wire", delivery, delivery["offset"], None)]


def same_id(story: Story) -> list[Due] | None:
    """A producer writes a record that it has written before."""
    log = story.dice.choice(story.logs)
    one, other = story.dice.choices(story.senders[:2], k=2)
    story.send(one, log, 1, ids=["twice"])
    log = story.dice.choice([each for each in story.logs if each.topic_id == log.topic_id])
    [second] = story.send(other, log, 1, ids=["twice"])
    known = one is other and one.producer_id is not None
    verdict = "bug" if known else "report"
    return [due("duplicate", verdict, "wire", log, second["offset"], "id:twice")]


def same_value(story: Story) -> list[Due] | None:
    """A producer writes records without an id, and again; who knows what it wanted."""
    log, other = story.dice.choice(story.logs), story.dice.choice(story.logs)
    plain = story.senders[0]
    first = story.send(plain, log, 2, ids=[None, None])
    again = story.send(story.dice.choice(story.senders[:2]), log, 2, ids=[None, None])
    again[0]["value_hash"] = first[0]["value_hash"]
    copies = {log.topic_id: 1}
    if other.topic_id == log.topic_id:
        [elsewhere] = story.send(plain, other, 1, ids=[None])
        elsewhere["value_hash"] = first[0]["value_hash"]
        copies = {log.topic_id: 2}
    return [
        Due("duplicate", "undecided", "wire", topic_id, None, None, f"without-id:{count}")
        for topic_id, count in copies.items()
    ]


def same_sequence(story: Story) -> list[Due] | None:
    """The broker does not notice a retry, and appends the batch again."""
    log, sender = story.dice.choice(story.logs), story.senders[1]
    story.send(sender, log, 2, ids=[None, None], answer="lost")
    sequence = sender.sequences[id(log)] - 2
    first, _ = story.send(sender, log, 2, ids=[None, None], base_sequence=sequence)
    return [due("duplicate", "bug", "wire", log, first["offset"], "producer:1000")]


def forgotten_sequence(story: Story) -> list[Due] | None:
    """A retry comes when the partition has forgotten the producer, or has forgotten another one, or
    another partition has, or forgets it too early or too late to explain the retry.
    """
    log, sender, dice = story.dice.choice(story.logs), story.senders[1], story.dice
    assert sender.producer_id is not None
    names: list[str | None] = ["once", None] if dice.random() < 0.5 else [None, None]
    expired = dice.choice(("between", "between", "before", "behind", "other", "elsewhere", "once"))
    if expired == "before":
        story.forgotten(sender.producer_id, log)
    story.send(sender, log, 2, ids=names, answer="lost")
    sequence = sender.sequences[id(log)] - 2
    if dice.random() < 0.5:
        story.send(sender, log, 1)
    overtaken = sender.sequences[id(log)] - 2 > sequence
    if expired in ("between", "once"):
        story.forgotten(sender.producer_id, log)
    if expired == "other":
        story.forgotten(sender.producer_id + 1, log)
    if expired == "elsewhere":
        for each in story.logs:
            if each is not log:
                story.forgotten(sender.producer_id, each)
    due_: list[Due] = []
    for again in range(1 + (expired == "once")):
        first, _ = story.send(sender, log, 2, ids=names, base_sequence=sequence)
        known = expired in ("between", "once") and not again
        verdict = "report" if known else "bug"
        told = [("duplicate", "producer:1000")]
        if names[0]:
            told.append(("duplicate", "id:once"))
        if overtaken and not again:
            told.append(("non_monotonic_send", "producer:1000"))
        due_ += [due(what, verdict, "wire", log, first["offset"], who) for what, who in told]
    sender.sequences[id(log)] = sequence + 2
    if expired == "behind":
        story.forgotten(sender.producer_id, log)
    return due_


def lost_tail(story: Story) -> list[Due] | None:
    """A follower lacks the end of a log, and leads. A rule may be behind it."""
    log, dice = story.dice.choice(story.logs), story.dice
    story.send(story.senders[0], log, acks=0)
    first = log.end
    kept = story.send(story.senders[0], log, acks=1)
    also = story.send(story.senders[1], log, answer="lost")
    cause = dice.choice((None, "break-it"))
    story.remove(log, first - dice.choice((0, 1)), log.end - 1, "truncation", cause)
    verdict = "bug" if cause is None else "report"
    return [
        *(due("lost_write", "report", "wire", r, r["offset"], "client:plain") for r in kept),
        *(due("lost_write", verdict, "wire", r, r["offset"], "client:steady") for r in also),
    ]


def refilled(story: Story) -> list[Due] | None:
    """Another leader does not have an acknowledged record, and gives its offset to another."""
    log, dice, plain = story.dice.choice(story.logs), story.dice, story.senders[0]
    acks, unclean, first = dice.choice((-1, 1)), dice.random() < 0.5, log.end
    [lost] = story.send(plain, log, 1, acks=acks)
    delivered = dice.random() < 0.5
    if delivered:
        reader = story.alone[0]
        story.new_read_span(reader, log, first, "reset")
        story.fetch(reader, log)
    cause = dice.choice((None, "break-it"))
    removed = dice.random() < 0.5
    if removed:
        story.remove(log, first, first, "truncation", cause)
    log.entries.pop()
    log.epoch += 1
    if unclean:
        story.row(
            "cluster", seq=story.next(), **log.place, change="LeaderChanged", leader=2,
            leader_epoch=log.epoch, unclean=True,
        )  # fmt: skip
    story.send(plain, log, 1)
    excused = unclean or (removed and cause is not None)
    told = []
    if removed:
        verdict = "report" if excused or acks == 1 else "bug"
        told.append(due("lost_write", verdict, "wire", lost, first, "client:plain"))
    verdict = "report" if excused or (acks == 1 and not delivered) else "bug"
    return [*told, due("inconsistent_offset", verdict, "wire", lost, first, None)]


def never_stored(story: Story) -> list[Due] | None:
    """A producer has an acknowledgement for a record that never got into the log."""
    log, sender = story.dice.choice(story.logs), story.senders[0]
    named = story.dice.random() < 0.5
    of_name = [r["offset"] for r in story.tables["records"] if r["topic"] == log.topic]
    at = None if named else max([log.end, *of_name]) + 5
    place = {"topic": log.topic, "partition": None if named else log.partition}
    story.operation(sender, "acked", **place, offset=at, id="never" if named else None)
    if log.topic in story.made_anew():
        return []
    return [Due("lost_write", "bug", "application", None, place["partition"], at, "plain")]


def aborted_delivery(story: Story) -> list[Due] | None:
    """A read_committed consumer is shown what was aborted."""
    sender, log = story.senders[-1], story.logs[-1]
    if sender.transaction is not None:
        story.end(sender, commit=True)
    story.begin(sender)
    [record] = story.send(sender, log, 1, ids=[None])
    story.end(sender, commit=False)
    reader = story.alone[1]
    story.new_read_span(reader, log, record["offset"], "reset")
    fetch = story.fetch(reader, log)
    for d in story.tables["deliveries"]:
        if d["response_seq"] == fetch["response_seq"]:
            d["position"] += 1
    story.row(
        "deliveries", response_seq=fetch["response_seq"], **log.place, position=0,
        offset=record["offset"], value_hash=record["value_hash"],
    )  # fmt: skip
    return [due("aborted_read", "bug", "wire", log, record["offset"], "connection:22")]


def unstable_delivery(story: Story) -> list[Due] | None:
    """A read_committed consumer is shown what nobody has decided on."""
    found = an_answer(story, isolation_level=1)
    if found is None:
        return None
    fetch, brought = found
    lowest = story.dice.choice(brought)["offset"]
    fetch["last_stable_offset"] = lowest
    subject = f"connection:{fetch['connection']}"
    late = [d for d in brought if d["offset"] >= lowest]
    return [due("dirty_read", "bug", "wire", d, d["offset"], subject) for d in late]


def torn(story: Story) -> list[Due] | None:
    """A marker of a committed transaction never reaches one of its partitions."""
    if len(story.logs) < 2:
        return None
    sender = story.senders[-1]
    if sender.transaction is not None:
        story.end(sender, commit=False)
    story.begin(sender)
    transaction = sender.transaction
    for log in story.logs:
        story.send(sender, log, 1)
    story.end(sender, commit=True)
    markers = [m for m in story.tables["markers"] if m["transaction"] == transaction]
    unlucky = story.dice.choice(markers)
    if story.dice.random() < 0.5:
        story.tables["markers"].remove(unlucky)
    else:
        unlucky["committed"] = False
    return [due("torn_transaction", "bug", "wire", None, None, transaction)]


def hidden_record(story: Story) -> list[Due] | None:
    """An answer leaves out a record between two others, or the last one."""
    found = an_answer(story)
    if found is None:
        return None
    fetch, brought = found
    hidden = story.dice.choice(brought)
    story.tables["deliveries"].remove(hidden)
    for d in brought:
        if d["position"] > hidden["position"]:
            d["position"] -= 1
    subject = f"connection:{fetch['connection']}"
    return [due("skip", "bug", "wire", hidden, hidden["offset"], subject)]


def leap(story: Story) -> list[Due] | None:
    """A consumer goes on behind a record that it never got."""
    log, reader = story.dice.choice(story.logs), story.alone[0]
    story.new_read_span(reader, log, log.log_start, "reset")
    story.fetch(reader, log, 1)
    _, *left_out = story.send(story.senders[0], log, 3)
    while reader.positions[id(log)] < left_out[0]["offset"]:
        story.fetch(reader, log, 1)
    if reader.positions[id(log)] > left_out[0]["offset"]:
        return None
    return _ask_elsewhere(story, log, left_out[-1]["offset"] + 1, "skip", left_out[0]["offset"])


def turn_back(story: Story) -> list[Due] | None:
    """A consumer gets once more what it has had."""
    log, reader = story.dice.choice(story.logs), story.alone[0]
    first, *_ = story.send(story.senders[0], log, 2)
    story.new_read_span(reader, log, first["offset"], "reset")
    story.fetch(reader, log)
    back = first["offset"]
    return _ask_elsewhere(story, log, back, "non_monotonic_poll", back)


def _ask_elsewhere(story: Story, log: Log, to: int, anomaly: str, offset: int) -> list[Due]:
    reader, verdict = story.alone[0], "bug"
    if story.dice.random() < 0.5:
        story.new_read_span(reader, log, to, "jump")
        verdict = "report"
    reader.positions[id(log)] = to
    story.fetch(reader, log)
    return [due(anomaly, verdict, "wire", log, offset, "connection:21")]


def shuffled_answer(story: Story) -> list[Due] | None:
    """An answer brings a record twice, or two of them the wrong way round."""
    found = an_answer(story, least=2)
    if found is None:
        return None
    fetch, brought = found
    one, other = brought[-2:]
    subject = f"connection:{fetch['connection']}"
    if story.dice.random() < 0.5:
        one["position"], other["position"] = other["position"], one["position"]
        return [due("non_monotonic_poll", "bug", "wire", one, one["offset"], subject)]
    story.tables["deliveries"].append({**other, "position": other["position"] + 1})
    return [due("non_monotonic_poll", "bug", "wire", other, other["offset"], subject)]


def overtaken_batch(story: Story) -> list[Due] | None:
    """The broker takes a producer's second batch before its first."""
    log, sender = story.dice.choice(story.logs), story.senders[1]
    sequence = sender.sequences.get(id(log), 0)
    story.send(sender, log, 2, ids=[None, None], base_sequence=sequence + 2)
    first, _ = story.send(sender, log, 2, ids=[None, None], base_sequence=sequence)
    sender.sequences[id(log)] = sequence + 4
    return [due("non_monotonic_send", "bug", "wire", log, first["offset"], "producer:1000")]


def overtaken_send(story: Story) -> list[Due] | None:
    """What an application sent first stands behind what it sent then."""
    log, sender = story.dice.choice(story.logs), story.dice.choice(story.senders[:2])
    story.operation(sender, "send", topic=log.topic, partition=log.partition, id="late")
    story.send(sender, log, 1, ids=["early"])
    [late] = story.send(sender, log, 1, ids=["late"])
    if log.topic in story.made_anew():
        return []
    verdict = "report" if sender.producer_id is None else "bug"
    return [due("non_monotonic_send", verdict, "application", log, late["offset"], sender.name)]


def commit_back(story: Story) -> list[Due] | None:
    """A member commits less than was committed."""
    log, group = story.dice.choice(story.logs), story.dice.choice(story.groups)
    story.send(story.senders[0], log)
    story.fetch(group.owners[id(log)], log, 100)
    story.commit(group, log)
    offset = group.committed[id(log)] - 1
    if offset < 0 or group.owners[id(log)].positions[id(log)] == 0:
        return None
    story.commit(group, log, offset)
    return [due("commit_regression", "report", "commits", log, offset, group.name)]


def commit_ahead(story: Story) -> list[Due] | None:
    """A member commits what it was never sent."""
    log, group = story.dice.choice(story.logs), story.groups[1]
    owner = group.owners[id(log)]
    story.fetch(owner, log)
    unread = story.send(story.senders[0], log, 2)
    while owner.positions[id(log)] < min(unread[0]["offset"], log.stable):
        story.fetch(owner, log, 1)
    if owner.positions[id(log)] != unread[0]["offset"]:
        return None
    story.commit(group, log, log.end)
    return [due("committed_not_read", "report", "commits", log, unread[0]["offset"], group.name)]


def commit_unattributed(story: Story) -> list[Due] | None:
    """A member commits what it was sent, or another with its client id."""
    log, group = story.dice.choice(story.logs), story.groups[1]
    owner = group.owners[id(log)]
    story.send(story.senders[0], log, 2)
    former = owner.positions[id(log)]
    sent = story.fetch(owner, log, 100)
    if not sent["delivered"] or former < max(group.committed.get(id(log), 0), log.log_start):
        return None
    sent |= {"group": None, "member": None, "candidates": [owner.name, "other"]}
    story.commit(group, log)
    if story.dice.random() < 0.5:
        story.fetch(owner, log, 100)
    name = f"unattributed:{group.name}"
    return [Due("committed_not_read", "undecided", "commits", log.topic_id, None, None, name)]


def no_commit(story: Story) -> list[Due] | None:
    """A group loses a member before it has committed."""
    log, group = story.dice.choice(story.logs), story.groups[1]
    story.rebalance(group)
    start = group.committed.get(id(log), 0)
    story.send(story.senders[0], log)
    brought = story.fetch(group.owners[id(log)], log, 100)
    if not brought["delivered"]:
        return None
    story.rebalance(group, commit_first=False)
    again = story.fetch(group.owners[id(log)], log, 100)
    if not again["delivered"]:
        return None
    first = next(
        d["offset"]
        for d in story.tables["deliveries"]
        if d["response_seq"] == again["response_seq"]
    )
    assert first >= start
    return [due("read_again", "report", "wire", log, first, group.name)]


def zombie(story: Story) -> list[Due] | None:
    """A producer writes that another has fenced; the broker minds, or not."""
    log, sender = story.dice.choice(story.logs), story.senders[-1]
    if sender.transaction is not None:
        story.end(sender, commit=False)
    sender.epoch += 1
    story.transaction_row(sender, "CompleteAbort", "InitProducerId")
    sender.epoch -= 1
    offset: int | None = None
    if story.dice.random() < 0.5:
        row = story.refused(sender, log, "INVALID_PRODUCER_EPOCH")
        verdict = "report"
    else:
        row = story.send(sender, log, 1, ids=[None])[0]
        offset, verdict = row["offset"], "bug"
    sender.epoch += 1
    return [due("zombie_write", verdict, "wire", log, offset, "producer:2000")]


def late_commit(story: Story) -> list[Due] | None:
    """A member commits that was not in the last rebalance; the coordinator minds, or not."""
    log, group = story.dice.choice(story.logs), story.dice.choice(story.groups)
    story.rebalance(group)
    minded = story.dice.random() < 0.5
    error = story.dice.choice(("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID")) if minded else None
    offset = group.committed.get(id(log), 0)
    story.commit(group, log, offset, generation=group.generation - 1, error=error)
    verdict = "report" if minded else "bug"
    return [due("zombie_commit", verdict, "commits", log, offset, group.name)]


def wrong_order(story: Story) -> list[Due] | None:
    """A broker tells a last stable offset beyond its high watermark, or the like."""
    log = story.dice.choice(story.logs)
    cause = story.dice.choice((None, "lie"))
    field = story.dice.choice(("last_stable_offset", "log_start_offset"))
    after = {"last_stable_offset": log.end, "log_start_offset": log.stable}[field]
    story.stands(log, "event", cause=cause, **{field: after + 3})
    verdict = "bug" if cause is None else "report"
    return [due("watermark_order", verdict, "wire", log, after, "broker:1")]


def back(story: Story) -> list[Due] | None:
    """A high watermark goes back within a leader epoch."""
    log = story.dice.choice(story.logs)
    story.stands(log, "event")
    cause = story.dice.choice((None, "set_high_watermark"))
    if log.stable <= log.log_start:
        return None
    told = {"last_stable_offset": log.log_start, "high_watermark": log.end - 1}
    story.stands(log, "event", cause=cause, **told)
    verdict = "bug" if cause is None else "report"
    return [due("watermark_back", verdict, "wire", log, log.end - 1, "broker:1")]


def unprocessed(story: Story) -> list[Due] | None:
    """An application loses what it was given, and commits all the same."""
    log, group = story.dice.choice(story.logs), story.groups[0]
    records = story.send(story.senders[0], log, 3)
    owner = group.owners[id(log)]
    while owner.positions[id(log)] <= records[-1]["offset"]:
        before = owner.positions[id(log)]
        story.fetch(owner, log)
        if owner.positions[id(log)] == before:
            return None
    story.commit(group, log)
    lost = records[1]["offset"]
    processed = [
        op
        for op in story.tables["operations"]
        if (op["op"], op["group"], op["topic"], op["partition"], op["offset"])
        == ("processed", group.name, log.topic, log.partition, lost)
    ]
    for op in processed:
        story.tables["operations"].remove(op)
    if log.topic in story.made_anew():
        return []
    return [due("committed_not_processed", "report", "application", log, lost, group.name)]


def processed_twice(story: Story) -> list[Due] | None:
    """An application does something twice."""
    done = [op for op in story.tables["operations"] if op["op"] == "processed"]
    if not done:
        return None
    op = story.dice.choice(done)
    story.tables["operations"].append({**op, "seq": op["seq"] + 10_000})
    if op["topic"] in story.made_anew():
        return []
    told = Due(
        "processed_again", "report", "application", None, op["partition"], op["offset"],
        op["group"],
    )  # fmt: skip
    return [told]


PLANTS: Mapping[str, Plant] = {
    plant.__name__: plant
    for plant in (
        other_value,
        same_id,
        same_value,
        same_sequence,
        forgotten_sequence,
        lost_tail,
        refilled,
        never_stored,
        aborted_delivery,
        unstable_delivery,
        torn,
        hidden_record,
        leap,
        turn_back,
        shuffled_answer,
        overtaken_batch,
        overtaken_send,
        commit_back,
        commit_ahead,
        commit_unattributed,
        no_commit,
        zombie,
        late_commit,
        wrong_order,
        back,
        unprocessed,
        processed_twice,
        *SHARE_PLANTS,
    )
}

# What else a plant gives, and has to.
ALONG: Mapping[str, set[str]] = {
    # The lowest record that is left may be later than what was delivered before.
    "hidden_record": {"committed_not_processed"},
    "torn": {"aborted_read"},
    "late_commit": {"commit_regression"},
}


def gap_over(story: Story, first: int, last: int) -> None:
    """The journal forgets what lies between."""
    story.row("gaps", first_seq=first, last_seq=last, reason="a test")


# Every so many histories nothing is planted, so many have a gap, and so many a topic made anew.
# None has a divisor in common with the number of plants.
CLEAN, GAPS, ANEW = 9, 7, 5


class Made(NamedTuple):
    """A history: what was played and planted, and what is due. `gap` bounds what is forgotten."""

    run: str
    story: Story
    plant: str | None
    due: frozenset[Due]
    gap: tuple[int, int] | None


def made(number: int) -> Made:
    """History `number`, always the same."""
    run = f"run-{number:04}"
    story = Story(run, number)
    story.play(story.dice.randint(5, 30))
    if number % ANEW == 0:
        story.make_anew(story.dice.choice(story.logs))
        story.play(story.dice.randint(0, 15))
    if story.dice.random() < 0.5:
        story.settle()
    planted: str | None = None
    told: list[Due] = []
    if number % CLEAN:
        names = list(PLANTS)
        planted = names[number % len(names)]
        told = PLANTS[planted](story) or []
        if story.dice.random() < 0.3:
            story.settle()
    gap = None
    if number % GAPS == 0:
        first = story.dice.randint(1, story.seq)
        gap = (first, first + story.dice.randint(0, story.seq // 3))
        gap_over(story, *gap)
    return Made(run, story, planted, frozenset(told), gap)
