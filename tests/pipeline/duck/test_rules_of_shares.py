"""Rules about share groups, on handmade journals."""

from __future__ import annotations

from tests.pipeline.duck.journal import Journal

GROUP = "g"


def share(journal: Journal, seq: int, change: str, state: str, **columns: object) -> None:
    """An event of offset 0 in the first life of a share partition, with two deliveries at most."""
    row = {
        "seq": seq, "group": GROUP, "topic": "t", "topic_id": "id-t", "partition": 0,
        "share_state": 1, "life": 1, "change": change, "state": state, "first_offset": 0,
        "last_offset": 0, "delivery_count": 1, "delivery_limit": 2,
    }  # fmt: skip
    journal.row("share_records", **{**row, **columns})


def start(journal: Journal, seq: int, change: str, offset: int | None, **columns: object) -> None:
    row = {
        "seq": seq, "group": GROUP, "topic": "t", "topic_id": "id-t", "partition": 0,
        "share_state": 1, "life": 1, "change": change, "offset": offset,
    }  # fmt: skip
    journal.row("share_starts", **{**row, **columns})


def test_a_record_is_delivered_above_the_limit() -> None:
    """Also if its count is forgotten, but not if another leader counts anew, and not above a limit
    that the group has lowered.
    """
    journal = Journal()
    journal.batch(10, 0, 1)
    share(journal, 20, "acquired", "Acquired")
    share(journal, 21, "lock_expired", "Available")
    share(journal, 22, "acquired", "Acquired", delivery_count=2, delivery_limit=1)
    share(journal, 23, "lock_expired", "Available", delivery_limit=1, delivery_count=2)
    share(journal, 30, "acquired", "Acquired", life=2)
    share(journal, 31, "lock_expired", "Available", life=2)
    share(journal, 32, "acquired", "Acquired", life=2)
    assert journal.brief("delivered_above_limit") == []
    share(journal, 33, "lock_expired", "Available", life=2)
    share(journal, 34, "acquired", "Acquired", life=2)
    share(journal, 40, "acquired", "Acquired", life=3, delivery_count=3, cause="again")
    assert journal.brief("delivered_above_limit") == [
        ("bug", 0, GROUP, 30, 34),
        ("report", 0, GROUP, 40, 40),
    ]


def test_a_limit_that_was_raised_counts() -> None:
    """From the first event on that has it."""
    journal = Journal()
    share(journal, 20, "released", "Available", first_offset=7, last_offset=7, delivery_limit=5)
    share(journal, 30, "acquired", "Acquired", delivery_count=5)
    assert journal.brief("delivered_above_limit") == []
    share(journal, 40, "acquired", "Acquired", delivery_count=6)
    assert journal.brief("delivered_above_limit") == [("bug", 0, GROUP, 30, 40)]


def test_a_count_that_an_action_set_excuses_a_delivery_above_the_limit() -> None:
    journal = Journal()
    share(journal, 10, "counted", "Acquired", delivery_count=2, cause="count")
    share(journal, 20, "acquired", "Acquired", delivery_count=3)
    assert journal.brief("delivered_above_limit") == [("report", 0, GROUP, 20, 20)]


def test_a_record_is_archived_by_the_lowest_limit_that_its_group_has_had() -> None:
    """It may have been raised since the record was given back."""
    journal = Journal()
    journal.batch(10, 0, 2)
    for seq, offset, limit in ((20, 1, 2), (30, 0, 5)):
        at = {"first_offset": offset, "last_offset": offset, "delivery_limit": limit}
        share(journal, seq, "acquired", "Acquired", delivery_count=2, **at)
        share(
            journal, seq + 1, "released", "Archived", delivery_count=2, reason="delivery_limit",
            **at,
        )  # fmt: skip
    assert journal.brief("archived_unprocessed") == [
        ("report", 0, GROUP, 10, 31),
        ("report", 1, GROUP, 10, 21),
    ]


def test_only_what_was_done_to_that_record_before_excuses_a_delivery_above_the_limit() -> None:
    """Not what was done to another record, for another group, or in another state."""
    journal = Journal()
    other = {"cause": "expire", "delivery_count": 0}
    share(journal, 10, "lock_expired", "Available", first_offset=1, last_offset=1, **other)
    share(journal, 11, "lock_expired", "Available", group="h", **other)
    share(journal, 12, "lock_expired", "Available", share_state=7, life=7, **other)
    share(journal, 13, "lock_expired", "Available", partition=1, **other)
    share(journal, 14, "renewed", "Acquired", **other)
    share(journal, 15, "released", "Available", **other)
    share(journal, 20, "acquired", "Acquired", delivery_count=3)
    share(journal, 30, "lock_expired", "Available", **other)
    assert journal.brief("delivered_above_limit") == [("bug", 0, GROUP, 20, 20)]
    share(journal, 16, "lock_expired", "Available", **other)
    assert journal.brief("delivered_above_limit") == [("report", 0, GROUP, 20, 20)]
    [found] = journal.findings("delivered_above_limit")
    assert found.rule == "expire"


def test_an_acknowledged_record_is_delivered_again() -> None:
    """Not one whose acknowledgement was not written, and not after the state has begun anew."""
    journal = Journal()
    share(journal, 20, "acquired", "Acquired")
    share(journal, 21, "writing", "Acknowledged")
    share(journal, 22, "rolled_back", "Available")
    share(journal, 23, "acquired", "Acquired", delivery_count=2)
    share(journal, 24, "accepted", "Acknowledged", delivery_count=2)
    share(journal, 30, "acquired", "Acquired", share_state=2, life=2)
    assert journal.brief("delivered_again") == []
    share(journal, 40, "acquired", "Acquired", life=3)
    share(journal, 41, "rejected", "Archived", life=3, reason="rejected")
    share(journal, 42, "acquired", "Acquired", life=4)
    assert journal.brief("delivered_again") == [
        ("bug", 0, GROUP, 24, 40),
        ("bug", 0, GROUP, 41, 42),
    ]


def test_only_what_was_done_to_that_record_since_excuses_a_second_delivery() -> None:
    """Not what was done to another record, for another group, in another state, or earlier; the
    delivery may be an action's own.
    """
    journal = Journal()
    share(journal, 10, "lock_expired", "Available", cause="expire")
    share(journal, 20, "acquired", "Acquired")
    share(journal, 21, "accepted", "Acknowledged")
    share(journal, 25, "lock_expired", "Available", first_offset=1, last_offset=1, cause="expire")
    share(journal, 26, "lock_expired", "Available", group="h", cause="expire")
    share(journal, 27, "lock_expired", "Available", share_state=7, life=7, cause="expire")
    share(journal, 28, "lock_expired", "Available", partition=1, cause="expire")
    share(journal, 30, "acquired", "Acquired")
    share(journal, 31, "accepted", "Acknowledged")
    share(journal, 32, "lock_expired", "Available", cause="expire")
    assert journal.brief("delivered_again") == [("bug", 0, GROUP, 21, 30)]
    share(journal, 41, "accepted", "Acknowledged")
    share(journal, 50, "acquired", "Acquired", cause="hand-out")
    assert journal.brief("delivered_again")[1:] == [("report", 0, GROUP, 41, 50)]
    assert [found.rule for found in journal.findings("delivered_again")] == [None, "hand-out"]


def test_a_lost_state_excuses_a_second_delivery() -> None:
    """The log of the share coordinator, that is, and not another one."""
    journal = Journal()
    share(journal, 20, "acquired", "Acquired")
    share(journal, 21, "accepted", "Acknowledged")
    journal.removal(22, 5, 9, "unclean_election")
    share(journal, 30, "acquired", "Acquired", life=2)
    assert [found.rule for found in journal.findings("delivered_again")] == [None]
    journal.row(
        "removals", seq=23, topic="__share_group_state", topic_id="id-s", partition=3,
        first_offset=7, last_offset=7, reason="unclean_election",
    )  # fmt: skip
    assert [found.rule for found in journal.findings("delivered_again")] == ["unclean_election"]
    assert journal.brief("delivered_again") == [("report", 0, GROUP, 21, 30)]
    share(journal, 24, "lock_expired", "Available", cause="hand-out")
    assert [found.rule for found in journal.findings("delivered_again")] == ["hand-out"]


def test_a_record_is_in_two_hands() -> None:
    """In one life of a share partition: another leader does not know the locks of the former."""
    journal = Journal()
    share(journal, 20, "acquired", "Acquired", member="a")
    share(journal, 21, "acquired", "Acquired", member="b", life=2)
    share(journal, 22, "lock_expired", "Available", life=2)
    share(journal, 23, "acquired", "Acquired", member="c", life=2)
    share(journal, 24, "writing", "Acknowledged", life=2)
    share(journal, 25, "rolled_back", "Available", life=2)
    share(journal, 26, "acquired", "Acquired", member="a", life=2)
    assert journal.brief("acquired_twice") == []
    share(journal, 27, "renewed", "Acquired", member="a", life=2)
    share(journal, 28, "acquired", "Acquired", member="b", life=2)
    share(journal, 30, "lock_expired", "Available", life=2, cause="expire")
    share(journal, 31, "acquired", "Acquired", member="a", life=2)
    assert journal.brief("acquired_twice") == [
        ("bug", 0, GROUP, 27, 28),
        ("report", 0, GROUP, 28, 31),
    ]


def test_a_session_that_an_action_ends_gives_its_records_back() -> None:
    journal = Journal()
    share(journal, 20, "acquired", "Acquired", member="a")
    share(journal, 21, "session_ended", "Available", member="a", cause="drop_connections")
    share(journal, 22, "acquired", "Acquired", member="b", delivery_count=2)
    assert journal.brief("acquired_twice") == []


def test_a_record_is_archived_and_was_never_processed() -> None:
    """What a member rejected or accepted, what the log has lost, and what was aborted, may be."""
    journal = Journal()
    journal.batch(10, 0, 1)
    journal.batch(11, 1, 1)
    journal.removal(12, 1, 1, "delete_records")
    journal.batch(13, 2, 1, transaction="1/1")
    journal.marker(14, 3, "1/1", committed=False)
    share(journal, 20, "acquired", "Acquired")
    share(journal, 21, "rejected", "Archived", reason="rejected")
    share(journal, 22, "removed", "Archived", reason="log_start", first_offset=1, last_offset=1)
    share(journal, 23, "aborted", "Archived", reason="transaction_aborted", first_offset=2,
          last_offset=2)  # fmt: skip
    assert journal.brief("archived_unprocessed") == []
    journal.batch(30, 4, 5)
    for offset, reason, count in (
        (4, "delivery_limit", 2), (5, "delivery_limit", 1), (6, "log_start", 1), (7, "gap", 1),
    ):  # fmt: skip
        at = {"first_offset": offset, "last_offset": offset, "delivery_count": count}
        share(journal, 40 + offset, "released", "Archived", reason=reason, **at)
    share(journal, 48, "removed", "Archived", first_offset=8, last_offset=8, cause="archive")
    assert journal.brief("archived_unprocessed") == [
        ("report", 4, GROUP, 30, 44),
        ("bug", 5, GROUP, 30, 45),
        ("bug", 6, GROUP, 30, 46),
        ("report", 7, GROUP, 30, 47),
        ("report", 8, GROUP, 30, 48),
    ]


def test_the_start_offset_passes_a_record_at_a_high_offset() -> None:
    """Records are looked up by the few hundred offsets in which they lie."""
    journal = Journal()
    journal.batch(10, 5_119, 3)
    start(journal, 20, "moved", 5_121, former_offset=5_120)
    assert journal.brief("passed_over") == [("bug", 5_120, GROUP, 10, 20)]


def test_the_start_offset_passes_a_record() -> None:
    """What is being written may be final for the next leader."""
    journal = Journal()
    journal.batch(10, 0, 4)
    start(journal, 12, "initialized", None)
    start(journal, 13, "reset", 0)
    share(journal, 20, "acquired", "Acquired", last_offset=3)
    share(journal, 21, "accepted", "Acknowledged")
    start(journal, 22, "moved", 1, former_offset=0)
    share(journal, 23, "writing", "Acknowledged", first_offset=1, last_offset=1)
    start(journal, 24, "loaded", 2)
    start(journal, 25, "reset", 4, share_state=2)
    assert journal.brief("passed_over") == []
    start(journal, 30, "moved", 3, former_offset=2)
    start(journal, 31, "loaded", 4, cause="skip")
    assert journal.brief("passed_over") == [
        ("bug", 2, GROUP, 10, 30),
        ("report", 3, GROUP, 10, 31),
    ]
