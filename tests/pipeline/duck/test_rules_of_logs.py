"""Rules about records in the log, on handmade journals."""

from __future__ import annotations

from tests.pipeline.duck.journal import Journal, value


def test_one_offset_with_two_values_is_a_bug() -> None:
    """A delivery told another value than the acknowledged record has."""
    journal = Journal()
    journal.batch(10, 0, 3)
    journal.fetch(20, 0, 3)
    assert journal.brief("inconsistent_offset") == []
    journal.fetch(30, 0, 3, values={1: 5})
    assert journal.brief("inconsistent_offset") == [("bug", 1, None, 10, 30)]


def test_two_values_at_a_high_offset_are_found() -> None:
    """Offsets are looked at in groups: the neighbours of this one, and those of others, do not
    matter.
    """
    journal = Journal()
    journal.batch(10, 6_400, 3)
    assert journal.brief("inconsistent_offset") == []
    journal.batch(20, 6_402, 3, values=[1, 2, 3])
    assert journal.brief("inconsistent_offset") == [("bug", 6_402, None, 10, 20)]


def test_deliveries_of_an_offset_without_a_record_are_held_against_each_other() -> None:
    """The journal need not know the record."""
    journal = Journal()
    journal.fetch(20, 0, 3)
    journal.fetch(30, 0, 3)
    assert journal.brief("inconsistent_offset") == []
    journal.fetch(40, 2, 3, values={2: 5})
    assert journal.brief("inconsistent_offset") == [("bug", 2, None, 20, 40)]


def test_what_was_not_acknowledged_may_be_overwritten() -> None:
    """Two records at an offset are a bug only if both were acknowledged, or one was read."""
    journal = Journal()
    journal.batch(10, 63, 2, acknowledged=False)
    journal.batch(20, 63, 2, values=[1, 2])
    assert journal.brief("inconsistent_offset") == []
    journal.fetch(30, 64, 65)
    assert journal.brief("inconsistent_offset") == [("bug", 64, None, 20, 30)]


def test_an_offset_is_given_away_again_after_a_loss_with_a_cause() -> None:
    """A report that names the cause. A delivery of the lost record was no lie; a third value is."""
    journal = Journal()
    journal.batch(10, 0, 3)
    journal.fetch(20, 0, 3)
    journal.removal(30, 1, 1, "truncation", "stop_broker")
    journal.removal(31, 2, 2, "truncation")
    journal.batch(40, 1, 2, values=[8, 9])
    journal.fetch(50, 1, 3, values={1: 8, 2: 9})
    assert journal.brief("inconsistent_offset") == [
        ("report", 1, None, 10, 50),
        ("bug", 2, None, 10, 50),
    ]
    assert [found.rule for found in journal.findings("inconsistent_offset")] == [
        "stop_broker",
        None,
    ]
    journal.fetch(60, 1, 2, values={1: 7})
    assert journal.brief("inconsistent_offset") == [
        ("bug", 1, None, 10, 60),
        ("bug", 2, None, 10, 50),
    ]


def test_an_unclean_election_excuses_what_the_leaders_before_it_wrote() -> None:
    """Whether the journal has the removal or not: the deposed leader may still be cut off."""
    journal = Journal()
    journal.batch(10, 0, 2, leader_epoch=4)
    journal.fetch(15, 0, 1)
    journal.batch(20, 0, 2, values=[8, 9], leader_epoch=6)
    journal.removal(30, 1, 1, "truncation")
    bugs = [("bug", 0, None, 10, 20), ("bug", 1, None, 10, 20)]
    lost = [("bug", 1, "client:c", 10, 30), ("bug", 1, "client:c", 20, 30)]
    assert journal.brief("inconsistent_offset") == bugs
    assert journal.brief("lost_write") == lost
    journal.unclean_election(5, 4)
    assert journal.brief("inconsistent_offset") == bugs
    assert journal.brief("lost_write") == lost
    journal.unclean_election(17, 5)
    assert journal.brief("inconsistent_offset") == [("report", *each[1:]) for each in bugs]
    assert journal.brief("lost_write") == [("report", *lost[0][1:]), lost[1]]
    journal.removal(40, 0, 0, "truncation", "heal_network")
    assert journal.brief("inconsistent_offset") == [("report", *each[1:]) for each in bugs]
    found = journal.findings("inconsistent_offset")
    assert [each.rule for each in found] == ["heal_network", "unclean_election"]


def test_acks_1_promises_only_what_the_leader_has() -> None:
    """The next leader may lack such a record, unless a consumer has read it."""
    journal = Journal()
    journal.batch(10, 0, 3, acks=1, leader_epoch=0)
    journal.fetch(20, 0, 1)
    journal.removal(30, 2, 2, "truncation")
    journal.batch(40, 0, 2, values=[8, 9], leader_epoch=1)
    assert journal.brief("inconsistent_offset") == [
        ("bug", 0, None, 10, 40),
        ("report", 1, None, 10, 40),
    ]
    assert [found.rule for found in journal.findings("inconsistent_offset")] == [None, "acks=1"]
    assert journal.brief("lost_write") == [("report", 2, "client:c", 10, 30)]
    assert [found.rule for found in journal.findings("lost_write")] == ["acks=1"]
    journal.batch(50, 3, 1, acks=1, leader_epoch=1)
    journal.batch(60, 3, 1, values=[8], leader_epoch=1)  # the leader that has it gives it away
    assert journal.brief("inconsistent_offset") == [
        ("bug", 0, None, 10, 40),
        ("report", 1, None, 10, 40),
        ("bug", 3, None, 50, 60),
    ]


def test_a_retry_acknowledges_what_the_leader_has_now() -> None:
    """The last batch with that sequence; a removal before the retry was none of its record."""
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    journal = Journal()
    journal.batch(10, 0, 1, acknowledged=False, **producer)
    journal.removal(20, 0, 0, "truncation")
    journal.batch(30, 0, 1, acknowledged=False, **producer)
    journal.retry(40, 0, 1, **producer)
    assert journal.brief("lost_write") == []
    journal.batch(50, 1, 1, acknowledged=False, **{**producer, "base_sequence": 1})
    journal.removal(60, 1, 1, "truncation")
    journal.retry(70, 1, 1, **{**producer, "base_sequence": 1})
    assert journal.brief("lost_write") == []
    journal.removal(80, 0, 0, "truncation")
    assert journal.brief("lost_write") == [("bug", 0, "client:c", 30, 80)]


def test_a_retry_with_all_acks_promises_the_batch() -> None:
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    journal = Journal()
    journal.batch(10, 0, 1, acks=1, **producer)
    journal.removal(40, 0, 0, "truncation")
    assert journal.brief("lost_write") == [("report", 0, "client:c", 10, 40)]
    journal.retry(20, 0, 1, acks=-1, **producer)
    assert journal.brief("lost_write") == [("bug", 0, "client:c", 10, 40)]


def test_an_acknowledged_retry_acknowledges_the_batch() -> None:
    """The first answer was lost; the retry's counts, if it is the same batch."""
    producer = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    journal = Journal()
    journal.batch(10, 0, 2, acknowledged=False, **producer)
    journal.batch(20, 0, 2, values=[1, value(1)])
    assert journal.brief("inconsistent_offset") == []
    journal.retry(30, 0, 2, **{**producer, "base_sequence": 2})
    assert journal.brief("inconsistent_offset") == []
    journal.retry(40, 0, 2, **producer)
    assert journal.brief("inconsistent_offset") == [("bug", 0, None, 10, 20)]


def test_one_id_of_one_producer_is_a_bug_unless_it_took_another_epoch() -> None:
    """A producer that takes another epoch may send again what it has no answer to."""
    journal = Journal()
    journal.batch(10, 5, 1, ids=["a"], producer_id=7, producer_epoch=0, base_sequence=0)
    journal.batch(20, 6, 1, ids=["a"], producer_id=7, producer_epoch=0, base_sequence=1)
    assert journal.brief("duplicate") == [("bug", 6, "id:a", 10, 20)]
    journal.tables["batches"][1]["producer_epoch"] = 1
    assert journal.brief("duplicate") == [("report", 6, "id:a", 10, 20)]


def test_one_id_in_two_partitions_of_a_topic() -> None:
    """The record that was appended later is the duplicate; another topic has ids of its own."""
    journal = Journal()
    journal.batch(10, 5, 1, ids=["a"])
    journal.batch(20, 0, 1, ids=["a"])
    journal.tables["records"][1]["partition"] = journal.tables["batches"][1]["partition"] = 1
    assert journal.brief("duplicate") == [("report", 0, "id:a", 10, 20)]
    elsewhere = {"topic": "u", "topic_id": "id-u"}
    for table in ("records", "batches"):
        journal.tables[table][1].update(elsewhere)
    assert journal.brief("duplicate") == []


def test_equal_records_without_an_id_decide_nothing() -> None:
    """Nobody knows whether they are one record that was sent twice; another topic has its own."""
    journal = Journal()
    journal.batch(10, 0, 3, values=[1, 2, 3])
    journal.batch(20, 3, 2, values=[1, 4])
    journal.batch(30, 5, 1, values=[2], ids=["a"])
    assert journal.brief("duplicate") == [("undecided", None, "without-id:1", 10, 20)]
    journal.batch(40, 6, 2, values=[1, 2])
    assert journal.brief("duplicate") == [("undecided", None, "without-id:3", 10, 40)]


def test_equal_records_at_one_offset_are_one() -> None:
    """The second append took the place of the first."""
    journal = Journal()
    journal.batch(10, 0, 1, values=[1])
    journal.batch(20, 0, 1, values=[1])
    assert journal.brief("duplicate") == []
    journal.batch(30, 1, 1, values=[1])
    assert journal.brief("duplicate") == [("undecided", None, "without-id:1", 10, 30)]


def test_all_values_that_are_there_twice_are_one_question_of_their_topic() -> None:
    """From the first to the last of their appends."""
    journal = Journal()
    for offset, (append_seq, told) in enumerate(((10, 1), (20, 2), (30, 2), (40, 3), (50, 3))):
        journal.batch(append_seq, offset, 1, values=[told])
    assert journal.brief("duplicate") == [("undecided", None, "without-id:2", 20, 50)]


def test_equal_records_of_which_one_is_gone_are_no_question() -> None:
    """It was sent again because it had been aborted or thrown out."""
    journal = Journal()
    journal.batch(10, 0, 1, values=[1], transaction="1/1")
    journal.marker(15, 1, "1/1", committed=False)
    journal.batch(20, 2, 1, values=[2])
    journal.removal(25, 2, 2, "truncation")
    journal.batch(30, 2, 2, values=[1, 2])
    assert journal.brief("duplicate") == []


def test_one_id_at_two_offsets() -> None:
    """A bug of one idempotent producer, a report otherwise; other ids make equal values others."""
    journal = Journal()
    journal.batch(10, 0, 1, ids=["a"], values=[1], producer_id=4)
    journal.batch(20, 1, 1, ids=["b"], values=[1], producer_id=4)
    assert journal.brief("duplicate") == []
    journal.batch(30, 2, 1, ids=["a"], producer_id=4)
    journal.batch(40, 3, 1, ids=["b"])
    assert journal.brief("duplicate") == [
        ("bug", 2, "id:a", 10, 30),
        ("report", 3, "id:b", 20, 40),
    ]


def test_records_whose_batches_are_unknown_are_told_apart_by_their_ids() -> None:
    """Nobody knows who sent them, so that it may be no bug."""
    journal = Journal()
    for append_seq, offset in ((10, 0), (20, 1)):
        journal.batch(append_seq, offset, 1, ids=["a"])
    journal.tables["batches"].clear()
    assert journal.brief("duplicate") == [("report", 1, "id:a", 10, 20)]
    journal.batch(30, 2, 1, ids=["b"])
    for seq, id_ in ((1, "b"), (2, "a")):
        journal.operation(seq, "send", id=id_)
    journal.tables["records"].pop(1)
    assert journal.brief("non_monotonic_send") == [("report", 2, "app", 10, 30)]


def test_of_one_id_that_was_appended_twice_at_one_offset_the_first_append_counts() -> None:
    journal = Journal()
    journal.batch(10, 0, 1, ids=["a"], producer_id=4)
    journal.batch(20, 0, 1, ids=["a"], producer_id=4)
    journal.batch(30, 1, 1, ids=["a"], producer_id=4)
    assert journal.brief("duplicate") == [("bug", 1, "id:a", 10, 30)]


def test_an_aborted_or_discarded_record_is_no_duplicate() -> None:
    """It was sent again because it had gone."""
    journal = Journal()
    journal.batch(10, 0, 1, ids=["a"], transaction="1/1")
    journal.marker(15, 1, "1/1", committed=False)
    journal.batch(20, 2, 1, ids=["b"])
    journal.removal(25, 2, 2, "truncation")
    journal.batch(30, 2, 2, ids=["a", "b"])
    assert journal.brief("duplicate") == []


def test_what_a_deposed_leader_wrote_is_no_duplicate() -> None:
    """The producer sends it again to the next leader, which had something else there, or nothing;
    the deposed one may write later than the next.
    """
    journal = Journal()
    producer = {"producer_id": 4, "producer_epoch": 0}
    journal.batch(10, 0, 2, **producer, base_sequence=0, leader_epoch=0)
    journal.batch(20, 2, 1, ids=["a"], **producer, base_sequence=2, leader_epoch=0)
    journal.batch(30, 2, 1, ids=["a"], **producer, base_sequence=2, leader_epoch=1)
    journal.batch(40, 3, 1, ids=["other"], leader_epoch=2)
    journal.batch(50, 3, 1, ids=["b"], **producer, base_sequence=3, leader_epoch=1)
    journal.batch(60, 4, 1, ids=["b"], **producer, base_sequence=3, leader_epoch=2)
    journal.batch(70, 5, 1, ids=["c"], **producer, base_sequence=4, leader_epoch=2)
    journal.marker(80, 5, "9/1", committed=True, leader_epoch=3)
    journal.batch(90, 6, 1, ids=["c"], **producer, base_sequence=4, leader_epoch=3)
    assert journal.brief("duplicate") == []
    assert journal.brief("non_monotonic_send") == []
    journal.batch(100, 7, 1, ids=["c"], **producer, base_sequence=4, leader_epoch=4)
    assert journal.brief("duplicate") == [
        ("bug", 7, "id:c", 90, 100),
        ("bug", 7, "producer:4", 90, 100),
    ]


def test_one_sequence_number_twice_is_a_bug() -> None:
    """Of one producer id and epoch; another epoch begins anew, what was truncated is sent again."""
    journal = Journal()
    producer = {"producer_id": 4, "producer_epoch": 0, "base_sequence": 0}
    journal.batch(10, 0, 2, **producer)
    journal.batch(20, 2, 2, **{**producer, "producer_epoch": 1})
    journal.batch(30, 4, 2, **{**producer, "base_sequence": 2})
    journal.removal(35, 4, 5, "unclean_election")
    journal.batch(40, 4, 2, **{**producer, "base_sequence": 2})
    assert journal.brief("duplicate") == []
    journal.batch(50, 6, 2, **producer)
    assert journal.brief("duplicate") == [("bug", 6, "producer:4", 10, 50)]
    journal.batch(60, 8, 2, **{**producer, "base_sequence": 2})
    assert journal.brief("duplicate")[1:] == [("bug", 8, "producer:4", 40, 60)]


def test_a_batch_counts_as_long_as_its_first_record_is_there() -> None:
    journal = Journal()
    producer = {"producer_id": 4, "producer_epoch": 0, "base_sequence": 0}
    journal.batch(10, 0, 2, **producer)
    journal.removal(15, 1, 1, "truncation")
    journal.batch(20, 1, 2, **producer)
    assert journal.brief("duplicate") == [("bug", 1, "producer:4", 10, 20)]


def test_a_duplicate_is_explained_if_its_producer_was_forgotten_since_the_append_before() -> None:
    """That producer, at that partition, and between the two appends. A retry that comes again must
    find the second one.
    """
    journal = Journal()
    producer = {"producer_id": 4, "producer_epoch": 0, "base_sequence": 0}
    journal.expiration(5, 4)
    journal.batch(10, 0, 1, ids=["a"], **producer)
    journal.expiration(14, 9)
    journal.expiration(15, 4, partition=1)
    journal.batch(20, 1, 1, ids=["a"], **producer)
    journal.expiration(25, 4)
    bugs = [("bug", 1, "id:a", 10, 20), ("bug", 1, "producer:4", 10, 20)]
    assert journal.brief("duplicate") == bugs
    journal.batch(30, 2, 1, ids=["a"], **producer)
    journal.batch(40, 3, 1, ids=["a"], **producer)
    assert journal.brief("duplicate") == [
        *bugs,
        ("report", 2, "id:a", 10, 30),
        ("report", 2, "producer:4", 10, 30),
        ("bug", 3, "id:a", 10, 40),
        ("bug", 3, "producer:4", 10, 40),
    ]
    explained = [found.offset for found in journal.findings("duplicate") if found.rule is not None]
    assert explained == [2, 2]


def test_a_forgotten_producer_sends_an_older_batch_behind_a_newer_one() -> None:
    """The partition does not know the order any more: a report."""
    journal = Journal()
    producer = {"producer_id": 4, "producer_epoch": 0}
    journal.batch(10, 0, 1, **producer, base_sequence=0)
    journal.batch(20, 1, 1, **producer, base_sequence=1)
    journal.expiration(25, 4)
    journal.batch(30, 2, 1, **producer, base_sequence=0)
    assert journal.brief("non_monotonic_send") == [("report", 2, "producer:4", 20, 30)]
    [found] = journal.findings("non_monotonic_send")
    assert found.rule == "producer.id.expiration.ms"
    journal.batch(40, 3, 1, **producer, base_sequence=1)
    journal.batch(50, 4, 1, **producer, base_sequence=0)
    assert journal.brief("non_monotonic_send")[1:] == [("bug", 4, "producer:4", 40, 50)]


def test_an_acknowledged_record_that_was_thrown_out_is_lost() -> None:
    """A bug; where a rule did it, a report that names the rule. Retention may take what it will."""
    journal = Journal()
    journal.batch(10, 0, 4)
    journal.batch(20, 4, 1, acknowledged=False)
    journal.removal(30, 0, 0, "retention")
    journal.removal(40, 0, 1, "truncation")
    journal.removal(50, 3, 4, "unclean_election", "the-rule")
    assert journal.brief("lost_write") == [
        ("bug", 1, "client:c", 10, 40),
        ("report", 3, "client:c", 10, 50),
    ]
    assert [found.rule for found in journal.findings("lost_write")] == [None, "the-rule"]


def test_retention_comes_first_also_at_a_high_offset() -> None:
    """Removals are found by the thousand offsets in which they lie."""
    journal = Journal()
    journal.batch(10, 5_120, 2)
    journal.removal(30, 5_120, 5_120, "retention")
    journal.removal(40, 5_120, 5_121, "truncation")
    assert journal.brief("lost_write") == [("bug", 5_121, "client:c", 10, 40)]


def test_a_record_that_was_removed_twice_was_lost_the_first_time() -> None:
    """With the cause of that one."""
    journal = Journal()
    journal.batch(10, 0, 1)
    journal.removal(20, 0, 0, "truncation", "stop_broker")
    journal.removal(30, 0, 0, "truncation", "heal_network")
    [found] = journal.findings("lost_write")
    assert (found.first_seq, found.last_seq, found.rule) == (10, 20, "stop_broker")


def test_the_client_of_a_lost_record_may_have_no_id() -> None:
    journal = Journal()
    journal.batch(10, 0, 1, client_id=None)
    journal.removal(20, 0, 0, "truncation")
    assert journal.brief("lost_write") == [("bug", 0, "client:", 10, 20)]


def test_a_removal_concerns_only_what_was_there() -> None:
    """What is appended later at the same offset is another record."""
    journal = Journal()
    journal.batch(10, 0, 1, acknowledged=False)
    journal.removal(20, 0, 1 << 62, "truncation")
    journal.batch(30, 0, 2)
    assert journal.brief("lost_write") == []


def test_what_the_application_had_acknowledged_must_have_been_there() -> None:
    """By offset, or by id where it knows no offset; over a gap there is no verdict."""
    journal = Journal()
    journal.batch(10, 0, 1, ids=["a"])
    journal.operation(1, "acked", offset=0, id="a")
    journal.operation(2, "acked", id="a")
    journal.operation(3, "failed", offset=9)
    assert journal.brief("lost_write") == []
    journal.operation(4, "acked", offset=1)
    journal.operation(5, "acked", id="b", partition=None)
    lost = [("bug", None, "app", None, None), ("bug", 1, "app", None, None)]
    assert journal.brief("lost_write") == lost
    journal.gap(3, 4)
    assert {found[0] for found in journal.brief("lost_write")} == {"undecided"}


def test_where_a_topic_was_made_anew_an_applications_word_proves_nothing() -> None:
    """It names topics, not ids."""
    journal = Journal()
    journal.batch(10, 0, 1)
    journal.operation(1, "acked", offset=5)
    assert len(journal.brief("lost_write")) == 1
    journal.row("records", topic="t", topic_id="id-2", partition=0, append_seq=50, offset=0)
    assert journal.brief("lost_write") == []


def test_a_transaction_that_is_committed_in_part_is_torn() -> None:
    """Complete, with a commit marker in one partition and none in the other."""
    journal = Journal()
    journal.batch(10, 0, 1, transaction="1/1")
    other = {"topic": "t", "topic_id": "id-t", "partition": 1}
    journal.row(
        "batches", **other, seq=11, append_seq=12, base_offset=0, last_offset=0, transaction="1/1"
    )
    journal.marker(20, 1, "1/1", committed=True)
    assert journal.brief("torn_transaction") == []
    for seq, state in ((15, "PrepareCommit"), (25, "CompleteCommit")):
        journal.row("transactions", seq=seq, transaction="1/1", state=state)
    assert journal.brief("torn_transaction") == [("bug", None, "1/1", 10, 25)]
    journal.row("removals", **other, seq=30, first_offset=0, last_offset=9, reason="topic_deleted")
    assert journal.brief("torn_transaction") == []


def test_the_evidence_of_a_torn_transaction_is_from_its_first_batch_to_its_last_marker() -> None:
    """A marker may be written behind the coordinator's last word."""
    journal = Journal()
    journal.batch(10, 0, 1, transaction="1/1")
    journal.batch(12, 1, 1, transaction="1/1")
    journal.batch(14, 0, 1, transaction="1/1")
    journal.tables["batches"][-1]["partition"] = 1
    journal.row("transactions", seq=25, transaction="1/1", state="CompleteCommit")
    journal.marker(20, 2, "1/1", committed=True)
    journal.marker(30, 3, "1/1", committed=True)
    journal.marker(40, 4, "1/2", committed=True)
    assert journal.brief("torn_transaction") == [("bug", None, "1/1", 10, 30)]


def test_a_partition_of_which_only_a_retry_is_known_does_not_tear_a_transaction() -> None:
    """Its batch was appended before the journal began, and perhaps its marker written."""
    journal = Journal()
    journal.batch(10, 0, 1, transaction="1/1")
    journal.marker(20, 1, "1/1", committed=True)
    journal.retry(12, 0, 1, transaction="1/1")
    journal.tables["batches"][-1]["partition"] = 1
    journal.row("transactions", seq=25, transaction="1/1", state="CompleteCommit")
    assert journal.brief("torn_transaction") == []


def test_a_transaction_whose_markers_agree_is_whole() -> None:
    """All aborted, or all committed."""
    for committed in (True, False):
        journal = Journal()
        journal.batch(10, 0, 1, transaction="1/1")
        journal.batch(12, 1, 1, transaction="1/1")
        journal.marker(20, 2, "1/1", committed=committed)
        journal.row("transactions", seq=25, transaction="1/1", state="CompleteCommit")
        assert journal.brief("torn_transaction") == []


def test_what_was_sent_later_stands_earlier() -> None:
    """Sequence numbers go up with offsets, unless they turn over."""
    journal = Journal()
    producer = {"producer_id": 4, "producer_epoch": 0}
    journal.batch(10, 0, 2, **producer, base_sequence=(1 << 31) - 2)
    journal.batch(20, 2, 2, **producer, base_sequence=0)
    journal.batch(30, 4, 2, **producer, base_sequence=4)
    assert journal.brief("non_monotonic_send") == []
    journal.batch(40, 6, 2, **producer, base_sequence=2)
    assert journal.brief("non_monotonic_send") == [("bug", 6, "producer:4", 30, 40)]


def test_a_process_says_in_which_order_it_sent() -> None:
    """Without idempotence that is a report."""
    journal = Journal()
    journal.batch(10, 0, 1, ids=["b"], producer_id=4)
    journal.batch(20, 1, 1, ids=["a"], producer_id=4)
    journal.batch(30, 2, 1, ids=["c"])
    for seq, id_ in ((1, "c"), (2, "a"), (3, "b"), (4, "c")):
        journal.operation(seq, "send", id=id_)
    assert journal.brief("non_monotonic_send") == [
        ("bug", 1, "app", 10, 20),
        ("report", 2, "app", 20, 30),
    ]


def test_a_fenced_producer_that_writes_is_a_zombie() -> None:
    """Appended: a bug; refused: a report; before the new epoch, or with it: nothing."""
    journal = Journal()
    old, new = {"producer_id": 4, "producer_epoch": 0}, {"producer_id": 4, "producer_epoch": 2}
    for seq, epoch in ((5, 0), (20, 1), (22, 2), (24, 1)):
        journal.row("transactions", seq=seq, producer_id=4, producer_epoch=epoch)
    journal.batch(10, 0, 1, **old)
    journal.batch(30, 1, 1, **new)
    journal.retry(32, 0, 1, **old)
    assert journal.brief("zombie_write") == []
    journal.batch(40, 2, 1, **old)
    journal.refused(50, "INVALID_PRODUCER_EPOCH", **old)
    journal.refused(60, "INVALID_PRODUCER_EPOCH", producer_id=4, producer_epoch=1)
    assert sorted(journal.brief("zombie_write"), key=str) == [
        ("bug", 2, "producer:4", 20, 40),
        ("report", None, "producer:4", 20, 50),
        ("report", None, "producer:4", 22, 60),
    ]


def test_a_zombie_at_a_deposed_leader_is_reported() -> None:
    """What it wrote there is not in the log."""
    journal = Journal()
    row = {"producer_id": 4, "state": "InitProducerId"}
    journal.row("transactions", seq=20, producer_epoch=1, **row)
    journal.batch(40, 2, 1, producer_id=4, producer_epoch=0, base_sequence=0, leader_epoch=0)
    assert journal.brief("zombie_write") == [("bug", 2, "producer:4", 20, 40)]
    journal.batch(50, 2, 1, leader_epoch=1)
    assert journal.brief("zombie_write") == [("report", 2, "producer:4", 20, 40)]


def test_a_zombie_in_a_transaction_that_is_being_aborted_is_reported() -> None:
    """The coordinator has raised the epoch; the leader learns of it with the marker."""
    journal = Journal()
    row = {"producer_id": 4, "transaction": "4/1"}
    journal.row("transactions", seq=20, producer_epoch=1, state="PrepareAbort", **row)
    journal.batch(40, 2, 1, producer_epoch=0, base_sequence=0, **row)
    assert journal.brief("zombie_write") == [("bug", 2, "producer:4", 20, 40)]
    journal.marker(50, 3, "4/1", committed=False)
    assert journal.brief("zombie_write") == [("report", 2, "producer:4", 20, 40)]


def test_watermarks_stand_in_order() -> None:
    """Those that are known; a cause makes it a report."""
    journal = Journal()
    place = {"topic": "t", "topic_id": "id-t", "partition": 0, "broker": 1}
    marks = {"log_start_offset": 0, "last_stable_offset": 4, "high_watermark": 5}
    journal.row("watermarks", **place, seq=1, **marks, log_end_offset=6)
    journal.row("watermarks", **place, seq=2, high_watermark=9)
    assert journal.brief("watermark_order") == []
    journal.row("watermarks", **place, seq=3, **{**marks, "high_watermark": None}, log_end_offset=3)
    journal.row("watermarks", **place, seq=4, **{**marks, "high_watermark": 3}, cause="a-rule")
    assert journal.brief("watermark_order") == [
        ("bug", 3, "broker:1", 3, 3),
        ("report", 3, "broker:1", 4, 4),
    ]


def test_a_high_watermark_goes_back_within_its_leader_epoch() -> None:
    """On one broker; in another epoch it may."""
    journal = Journal()
    place = {"topic": "t", "topic_id": "id-t", "partition": 0}
    for seq, broker, epoch, high in (
        (1, 1, 0, 5), (2, 2, 0, 3), (3, 1, 1, 4), (4, 1, None, 2), (5, 1, None, 1), (6, 1, 1, None),
    ):  # fmt: skip
        journal.row(
            "watermarks", **place, seq=seq, broker=broker, leader_epoch=epoch, high_watermark=high
        )
    assert journal.brief("watermark_back") == []
    journal.row("watermarks", **place, seq=9, broker=1, leader_epoch=1, high_watermark=3, cause="x")
    assert journal.brief("watermark_back") == [("report", 3, "broker:1", 3, 9)]
