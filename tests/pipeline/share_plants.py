"""Anomalies of share groups planted in a story; see tests/pipeline/plants.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.pipeline.share_histories import GROUP, LIMIT, ShareGroup, SharePart

if TYPE_CHECKING:
    from tests.pipeline.histories import Story
    from tests.pipeline.plants import Due


def _due(anomaly: str, part: SharePart, offset: int, *, cause: object = None) -> list[Due]:
    from tests.pipeline.plants import due

    verdict = "report" if cause else "bug"
    return [due(anomaly, verdict, "wire", part.log, offset, GROUP)]


def _fresh(story: Story) -> tuple[ShareGroup, SharePart, int]:
    """A record that the group has not had yet."""
    log = story.dice.choice(story.logs)
    part = story.shares.part(log)
    [record] = story.send(story.senders[0], log, 1)
    return story.shares, part, record["offset"]


def delivered_too_often(story: Story) -> list[Due]:
    """A record comes once more after its last delivery; the broker may have forgotten to count."""
    shares, part, offset = _fresh(story)
    counts = story.dice.random() < 0.5
    cause = story.dice.choice((None, "once-more"))
    for delivery in range(1, LIMIT + 1):
        deliveries = delivery if counts else 1
        shares.event(part, "acquired", [offset], "Acquired", "s1", deliveries)
        shares.event(part, "lock_expired", [offset], "Available", "s1", deliveries)
    last = LIMIT + 1 if counts else 1
    shares.event(part, "acquired", [offset], "Acquired", "s2", last, cause=cause)
    return _due("delivered_above_limit", part, offset, cause=cause)


def acknowledged_and_delivered(story: Story) -> list[Due]:
    """A record comes again although the group is done with it; the log of the share coordinator
    may have lost that, or an action may be behind it.
    """
    shares, part, offset = _fresh(story)
    shares.event(part, "acquired", [offset], "Acquired", "s1")
    change, state = story.dice.choice(
        (("accepted", "Acknowledged"), ("rejected", "Archived"), ("gap", "Archived"))
    )
    # The record is there, so that a gap is a finding of its own: only rejected has no other.
    change, state = ("accepted", "Acknowledged") if change == "gap" else (change, state)
    reason = "rejected" if change == "rejected" else None
    shares.event(part, change, [offset], state, "s1", reason=reason)
    excuse: str | None = None
    throw = story.dice.random()
    if throw < 0.3:
        excuse = "hand-out"
        shares.event(part, "lock_expired", [offset], "Available", None, cause=excuse)
    elif throw < 0.5:
        excuse = "truncation"
        story.row(
            "removals", seq=story.next(), topic="__share_group_state", topic_id="id-s",
            partition=0, first_offset=3, last_offset=5, reason="truncation",
        )  # fmt: skip
    if story.dice.random() < 0.5:
        shares.load(part)
    shares.event(part, "acquired", [offset], "Acquired", "s2", 2)
    return _due("delivered_again", part, offset, cause=excuse)


def two_members_at_once(story: Story) -> list[Due]:
    """A record is in two hands; an action may be behind it."""
    shares, part, offset = _fresh(story)
    cause = story.dice.choice((None, "hand-out"))
    shares.event(part, "acquired", [offset], "Acquired", "s1")
    if story.dice.random() < 0.3:
        shares.event(part, "renewed", [offset], "Acquired", "s1")
    own = None
    if cause and story.dice.random() < 0.5:
        shares.event(part, "lock_expired", [offset], "Available", "s1", cause=cause)
    else:
        own = cause
    shares.event(part, "acquired", [offset], "Acquired", "s2", 2, cause=own)
    return _due("acquired_twice", part, offset, cause=cause)


def archived_too_soon(story: Story) -> list[Due]:
    """A record is archived, with a reason that holds, one that does not, or by an action."""
    shares, part, offset = _fresh(story)
    reason, deliveries, state, cause = story.dice.choice(
        (
            ("delivery_limit", LIMIT, "report", None),
            ("delivery_limit", LIMIT - 1, "bug", None),
            ("gap", 1, "report", None),
            ("log_start", 0, "bug", None),
            ("transaction_aborted", 1, "bug", None),
            (None, 0, "bug", None),
            (None, 0, "report", "archive-it"),
        )
    )
    for delivery in range(1, deliveries + 1):
        shares.event(part, "acquired", [offset], "Acquired", "s1", delivery)
        if delivery < deliveries:
            shares.event(part, "released", [offset], "Available", "s1", delivery)
    change = {"delivery_limit": "released", "gap": "gap"}.get(reason or "", "removed")
    shares.event(part, change, [offset], "Archived", None, deliveries, reason=reason, cause=cause)
    return _due("archived_unprocessed", part, offset, cause=state == "report")


def start_runs_ahead(story: Story) -> list[Due]:
    """The start offset passes a record that the group is not done with, at a leader or between
    two of them.
    """
    shares, part, offset = _fresh(story)
    cause = story.dice.choice((None, "skip-it"))
    if story.dice.random() < 0.5:
        shares.event(part, "acquired", [offset], "Acquired", "s1")
    if story.dice.random() < 0.5:
        shares.start_row(part, "moved", offset + 1, offset, reason="final", cause=cause)
        return _due("passed_over", part, offset, cause=cause)
    shares.reset(part, offset)
    part.start = offset + 1
    shares.start_row(part, "loaded", offset + 1, cause=cause)
    return _due("passed_over", part, offset, cause=cause)


PLANTS = (
    delivered_too_often,
    acknowledged_and_delivered,
    two_members_at_once,
    archived_too_soon,
    start_runs_ahead,
)
