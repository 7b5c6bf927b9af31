"""Records in a log before an advance of its time are older by it; later ones are not."""

from __future__ import annotations

from mockbroker.core.log.added_age import AddedAge, RetentionDomain
from mockbroker.core.log.retention import enforce, next_expiry_ms
from tests.support.kept_log import NOW_MS, KeptLog
from tests.support.requests import Node, batch_of

HOUR_MS = 3_600_000


def kept_log() -> KeptLog:
    return KeptLog(cleanup_policy="delete", retention_ms=HOUR_MS)


def apply(kept: KeptLog, added: AddedAge) -> int:
    """How many segments retention drops now."""
    done = enforce(kept.log, kept.configs, kept.log.end_offset, kept.now_ms, added)
    return 0 if done is None else done.segments_removed


def test_a_segment_ages_by_all_that_passed_since_it_was_whole() -> None:
    kept, added = kept_log(), AddedAge()
    kept.write((b"k", b"v", NOW_MS))
    added.age(kept.log, HOUR_MS - 1)
    assert apply(kept, added) == 0
    added.age(kept.log, 2)
    assert apply(kept, added) == 1
    assert kept.log.start_offset == kept.log.end_offset == 1


def test_what_is_appended_later_is_as_old_as_its_timestamp_says() -> None:
    kept, added = kept_log(), AddedAge()
    kept.write((b"k", b"old", NOW_MS))
    kept.log.roll()
    added.age(kept.log, 10 * HOUR_MS)
    kept.write((b"k", b"new", NOW_MS))
    assert apply(kept, added) == 1
    assert (kept.log.start_offset, kept.log.end_offset) == (1, 2)


def test_a_segment_that_grew_meanwhile_is_as_young_as_its_newest_record() -> None:
    kept, added = kept_log(), AddedAge()
    kept.write((b"k", b"old", NOW_MS))
    added.age(kept.log, 10 * HOUR_MS)
    kept.write((b"k", b"new", NOW_MS))
    assert apply(kept, added) == 0
    assert next_expiry_ms(kept.log, kept.configs, added) == NOW_MS + HOUR_MS + 1


def test_the_next_expiry_comes_earlier_by_what_has_passed() -> None:
    kept, added = kept_log(), AddedAge()
    kept.write((b"k", b"v", NOW_MS))
    added.age(kept.log, HOUR_MS // 2)
    assert next_expiry_ms(kept.log, kept.configs, added) == NOW_MS + HOUR_MS // 2 + 1


def test_each_segment_is_older_by_what_was_added_since_it_was_whole() -> None:
    kept, added = kept_log(), AddedAge()
    for by_ms in (1, 20, 300):
        kept.write((b"k", b"v", NOW_MS))
        kept.log.roll()
        added.age(kept.log, by_ms)
        added.age(kept.log, by_ms)
    kept.write((b"k", b"v", NOW_MS))
    assert [added.added_ms(kept.log, index) for index in range(4)] == [642, 640, 600, 0]
    kept.log.move_start(2)
    added.age(kept.log, 4000)
    assert [added.added_ms(kept.log, index) for index in (2, 3)] == [4600, 4000]
    assert len(added._added_ages) == 2  # nothing is left of what was below the log start


def test_a_jump_of_retentions_clock_ages_what_is_there_and_deletes_what_is_too_old_then() -> None:
    node = Node()
    partition = node.topic(retention_ms="1000")
    domain = RetentionDomain(node.cluster.log_manager, node.cluster.runtime)
    assert domain.now_ms() == node.now_ms
    node.produced(batch_of(b"v", timestamp=node.now_ms))
    domain.jump_to(node.now_ms + 1000)
    assert partition.log_start_offset == 0
    domain.jump_to(node.now_ms + 1001)
    assert partition.log_start_offset == 1
    assert domain.now_ms() == node.now_ms + 1001


def test_a_jump_of_retentions_clock_to_where_it_is_deletes_nothing() -> None:
    """What is too old by the cluster's clock goes at the next check."""
    node = Node()
    partition = node.topic(retention_ms="1000")
    domain = RetentionDomain(node.cluster.log_manager, node.cluster.runtime)
    node.produced(batch_of(b"v", timestamp=node.now_ms))
    node.now_ms += 2000
    for at_ms in (node.now_ms, node.now_ms - 500):
        domain.jump_to(at_ms)
        assert (partition.log_start_offset, domain.now_ms()) == (0, node.now_ms)
