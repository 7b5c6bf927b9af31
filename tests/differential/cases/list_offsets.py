"""ListOffsets: special values, look-ups by time, and what is refused."""

from __future__ import annotations

from mockbroker_protocol.records import Record, build_batch
from tests.differential.dialogue import TIMESTAMP_MS, list_offsets, make_topic, produce_request
from tests.differential.registry import case
from tests.differential.session import Session


def fill(session: Session, topic: str) -> None:
    """Two batches whose timestamps do not rise with their offsets."""
    for times in ([0, 50, 20], [40, 10]):
        records = [Record(0, TIMESTAMP_MS + at, b"k", b"v", ()) for at in times]
        session.ask(produce_request(topic, build_batch(records)), 9)


@case()
def list_offsets_special_values(session: Session) -> None:
    topic = make_topic(session)
    for version in range(1, 12):
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0):
            session.ask(list_offsets(topic, timestamp), version, label=f"empty {timestamp}")
    fill(session, topic)
    for version in range(1, 12):
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0):
            session.ask(list_offsets(topic, timestamp), version, label=f"filled {timestamp}")


@case()
def list_offsets_by_time(session: Session) -> None:
    topic = make_topic(session)
    fill(session, topic)
    for isolation in (0, 1):
        for at in (0, 1, 20, 21, 40, 45, 50, 51):
            request = list_offsets(topic, TIMESTAMP_MS + at, isolation=isolation)
            session.ask(request, 7, label=f"+{at}")


@case()
def list_offsets_refusals(session: Session) -> None:
    topic = make_topic(session)
    session.ask(list_offsets(topic, -1, -2), 7, label="same partition twice")
    session.ask(list_offsets("no-such-topic", -1), 7)
    session.ask(list_offsets(topic, -1, partition=5), 7)
    for epoch in (0, 1, 7):
        session.ask(list_offsets(topic, -1, epoch=epoch), 7, label=f"epoch {epoch}")
