"""The journal's deliveries to consumers by answers to Fetches."""

from __future__ import annotations

from mockbroker.core.journal.deliveries import SESSIONS_MAX, VisibleBatches
from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.reader import JournalReader
from mockbroker.handlers.base import ConnectionInfo
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.headers import RequestHeader, encode_request_header
from mockbroker_protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from mockbroker_protocol.records import ControlType, Record, build_batch
from tests.client.test_visible import data_batch, marker

VERSION = 12
SESSION = 77
TEN = b"".join([build_batch([Record(timestamp=1, value=b"x") for _ in range(10)])])


class Fetching:
    """A journal of Fetches that one consumer sends."""

    def __init__(self) -> None:
        self.journal = Journal(lambda: 1)
        self.reader = JournalReader(self.journal, lambda _: None)

    def fetch(
        self,
        epoch: int,
        offsets: dict[str, int],
        brought: dict[str, bytes],
        *,
        forgotten: str = "",
        replica_id: int = -1,
        session_id: int = SESSION,
        outcome: str = "",
    ) -> None:
        """A Fetch from the offsets of topics, and its answer with records of some."""
        request = FetchRequest(
            replica_id=replica_id,
            session_id=session_id if epoch > 0 else 0,
            session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic=name, partitions=[FetchPartition(partition=0, fetch_offset=offset)]
                )
                for name, offset in offsets.items()
            ],
            forgotten_topics_data=[ForgottenTopic(topic=forgotten, partitions=[0])]
            if forgotten
            else [],
        )
        response = FetchResponse(
            session_id=session_id,
            responses=[
                FetchableTopicResponse(
                    topic=name, partitions=[PartitionData(partition_index=0, records=records)]
                )
                for name, records in brought.items()
            ],
        )
        header = encode_request_header(RequestHeader(ApiKey.FETCH, VERSION, 1, "c"))
        body = b"".join(request_codec(ApiKey.FETCH, VERSION).encode(request))
        seq = self.journal.request(5, 1, 7, header + body)
        pieces = response_codec(ApiKey.FETCH, VERSION).encode(response)
        self.journal.response(6, 1, 7, seq, ApiKey.FETCH, VERSION, 1, pieces, outcome)

    def delivered(self, after: int = 0) -> list[tuple[str | None, int | None, int | None]]:
        """Topic, first offset and number of records of each delivery."""
        found = [event for event in self.reader.events(after) if event.kind == "deliver"]
        return [(event.topic, event.first_offset, event.records) for event in found]


def test_a_delivery_begins_at_the_fetch_offset_of_the_request():
    fetching = Fetching()
    fetching.fetch(-1, {"a": 4, "b": 0}, {"a": TEN, "b": TEN, "c": b""})
    assert fetching.delivered() == [("a", 4, 6), ("b", 0, 10)]


def test_a_session_has_the_offsets_of_partitions_that_a_request_does_not_name():
    fetching = Fetching()
    fetching.fetch(0, {"a": 4, "b": 7}, {})
    fetching.fetch(1, {"a": 5}, {})
    fetching.fetch(2, {}, {"a": TEN, "b": TEN})
    assert fetching.delivered() == [("a", 5, 5), ("b", 7, 3)]
    assert fetching.delivered() == [("a", 5, 5), ("b", 7, 3)]


def test_a_partition_that_left_its_session_has_no_offset_there():
    fetching = Fetching()
    fetching.fetch(0, {"a": 4, "b": 7}, {})
    fetching.fetch(1, {}, {"a": TEN}, forgotten="b")
    fetching.fetch(2, {"b": 2}, {"b": TEN})
    assert fetching.delivered() == [("a", 4, 6), ("b", 2, 8)]


def test_another_session_has_offsets_of_its_own():
    fetching = Fetching()
    fetching.fetch(0, {"a": 4}, {})
    fetching.fetch(0, {"a": 9}, {}, session_id=78)
    fetching.fetch(1, {}, {"a": TEN})
    assert fetching.delivered() == [("a", 4, 6)]


def test_a_reader_forgets_sessions_with_their_connection():
    """Each client opens one: a reader that follows the journal for days would keep them all."""
    fetching = Fetching()
    fetching.fetch(0, {"a": 4}, {})
    fetching.delivered()
    assert len(fetching.reader._fetches) == 1
    fetching.journal.closed(7, 1, ConnectionInfo(7, "127.0.0.1", 50_000), "over")
    fetching.delivered(2)
    assert len(fetching.reader._fetches) == 0


def test_a_reader_keeps_a_bounded_number_of_sessions_of_one_connection():
    fetching = Fetching()
    for number in range(SESSIONS_MAX + 5):
        fetching.fetch(0, {"a": number}, {}, session_id=100 + number)
    newest = SESSIONS_MAX + 104
    fetching.fetch(1, {}, {"a": TEN}, session_id=newest)
    fetching.delivered()
    assert len(fetching.reader._fetches) == SESSIONS_MAX


def test_in_a_session_with_an_unknown_beginning_deliveries_count_from_the_first_batch():
    fetching = Fetching()
    fetching.fetch(0, {"a": 4}, {})
    assert fetching.delivered() == []
    fetching.fetch(1, {}, {"a": TEN})
    assert fetching.delivered(2) == [("a", 4, 6)]
    assert fetching.delivered(2) == [("a", 0, 10)]


def test_a_truncated_answer_delivers_nothing_and_yet_begins_its_session():
    fetching = Fetching()
    fetching.fetch(0, {"a": 4}, {"a": TEN}, outcome="truncated")
    fetching.fetch(1, {}, {"a": TEN})
    assert fetching.delivered() == [("a", 4, 6)]


def test_a_followers_fetch_is_no_delivery():
    fetching = Fetching()
    fetching.fetch(-1, {"a": 0}, {"a": TEN}, replica_id=2)
    assert fetching.delivered() == []


# -- the batches that a consumer gets

UNCOMMITTED, COMMITTED = 0, 1

# Producer 1 aborts 0-1 and commits 5, producer 2 commits 3, 7-8 are of no transaction.
LOG = b"".join(
    [
        data_batch(0, 2, 1),
        marker(2, 1, ControlType.ABORT),
        data_batch(3, 1, 2),
        marker(4, 2, ControlType.COMMIT),
        data_batch(5, 1, 1),
        marker(6, 1, ControlType.COMMIT),
        data_batch(7, 2),
    ]
)
ABORTED = [AbortedTransaction(producer_id=1, first_offset=0)]


def seen(
    records: bytes | None,
    isolation_level: int = COMMITTED,
    fetch_offset: int = 0,
    aborted: list[AbortedTransaction] | None = None,
) -> tuple[list[int], int]:
    """The base offsets of the visible batches, and the next offset."""
    data = PartitionData(records=records, aborted_transactions=aborted)
    batches = VisibleBatches(data, fetch_offset, isolation_level)
    return [header.base_offset for header, _ in batches], batches.next_offset


def test_an_aborted_transaction_hides_its_batches_up_to_its_marker() -> None:
    assert seen(LOG, aborted=ABORTED) == ([3, 5, 7], 9)


def test_a_reader_of_uncommitted_records_gets_all_but_the_markers() -> None:
    assert seen(LOG, UNCOMMITTED, aborted=ABORTED) == ([0, 3, 5, 7], 9)


def test_an_aborted_transaction_hides_nothing_before_its_first_offset() -> None:
    later = [AbortedTransaction(producer_id=1, first_offset=5)]
    assert seen(LOG, aborted=later) == ([0, 3, 7], 9)


def test_an_aborted_transaction_hides_no_batch_outside_of_transactions() -> None:
    identity = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    idempotent = bytes(build_batch([Record(value=b"v")], **identity))
    assert seen(idempotent, aborted=ABORTED) == ([0], 1)
    assert seen(bytes(data_batch(0, 1, 1)), aborted=ABORTED) == ([], 1)


def test_a_batch_that_ends_before_the_fetch_offset_is_skipped() -> None:
    assert seen(LOG, UNCOMMITTED, 2) == ([3, 5, 7], 9)


def test_a_batch_with_the_fetch_offset_inside_is_returned_as_a_whole() -> None:
    assert seen(LOG, UNCOMMITTED, 8) == ([7], 9)


def test_the_next_offset_is_behind_hidden_batches() -> None:
    aborted_only = LOG[: len(data_batch(0, 2, 1)) + len(marker(2, 1, ControlType.ABORT))]
    assert seen(aborted_only, aborted=ABORTED) == ([], 3)


def test_the_next_offset_stays_without_a_batch() -> None:
    for nothing in (None, b""):
        assert seen(nothing, fetch_offset=4) == ([], 4)


def test_a_batch_that_is_cut_off_waits_for_the_next_answer() -> None:
    assert seen(LOG[:-1], UNCOMMITTED) == ([0, 3, 5], 7)


def test_a_damaged_marker_ends_no_transaction() -> None:
    """Its producer's batches stay hidden: nothing says that the abort is over."""
    whole = marker(2, 1, ControlType.ABORT)
    damaged = bytearray(whole)
    damaged[-8:] = b"\xff" * 8
    log = b"".join([data_batch(0, 2, 1), damaged, data_batch(3, 1, 1)])
    repaired = b"".join([data_batch(0, 2, 1), whole, data_batch(3, 1, 1)])
    assert seen(log, aborted=ABORTED)[0] == []
    assert seen(repaired, aborted=ABORTED)[0] == [3]
