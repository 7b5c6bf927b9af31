"""The offsets of logs in answers and events: high watermark, last stable offset, log start and end.

An answer is journalled when it is sent, perhaps after another answer with a higher watermark that
was made later. Such an answer is no evidence of a decrease, so its high watermark and last stable
offset are left out. It is evidence if the higher one was sent before the request arrived.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

from mockbroker.core.events import LogTruncated, TopicsChanged, WatermarkMoved
from mockbroker.core.journal.deliveries import READ_COMMITTED
from mockbroker.core.journal.entries import AppendEntry, EventEntry
from mockbroker.pipeline.convert.cluster_state import ConvertedExchange, Place, RunState, times
from mockbroker.pipeline.convert.rows import Rows

LATEST, EARLIEST = -1, -2

# The reported marks of a log that are kept; the newer half of them is complete.
MARKS_MAX = 256


class _ReportedMarks:
    """The reported high watermarks of one log in one epoch, while they rise.

    The older half is thinned out again and again, so a request that waits for long is compared with
    a mark below that of its time: a decrease may then pass for old news, and never the reverse.
    """

    __slots__ = ("marks", "seqs", "turned_seq")

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.marks: list[int] = []
        self.turned_seq = 0  # the last decrease

    def before(self, seq: int) -> int:
        """The highest mark reported before an entry; -1 without one."""
        at = bisect_right(self.seqs, seq)
        return self.marks[at - 1] if at else -1

    def is_known(self, mark: int, since_seq: int) -> bool:
        """Whether a mark in an answer that a rule changed is evidence: it equals the last mark, or
        is lower than one reported before the request. It is never added.
        """
        return mark < self.before(since_seq) or mark == (self.marks[-1] if self.marks else -1)

    def add(self, seq: int, mark: int, since_seq: int) -> bool:
        """Add a mark that was reported at `seq` and valid at some time since `since_seq`; returns
        whether it is evidence.
        """
        newest = self.marks[-1] if self.marks else -1
        if since_seq < self.turned_seq and mark != newest:
            return False
        if mark > newest:
            self.seqs.append(seq)
            self.marks.append(mark)
            if len(self.marks) > MARKS_MAX:
                del self.seqs[1 : MARKS_MAX // 2 : 2]
                del self.marks[1 : MARKS_MAX // 2 : 2]
            return True
        if mark == newest:
            return True
        if mark >= self.before(since_seq):
            return False
        self.turned_seq = seq
        self.seqs, self.marks = [seq], [mark]
        return True


class _InEpoch(NamedTuple):
    """The reported marks of a partition in its present leader epoch, by broker."""

    epoch: int
    by_broker: dict[int, _ReportedMarks]


class Watermarks:
    """Makes `watermarks`."""

    def __init__(self, rows: Rows, cluster: RunState) -> None:
        self._rows = rows
        self._cluster = cluster
        self._reported: dict[Place, _InEpoch] = {}
        # Brokers without a report of a partition's high watermark since it was lowered there, by a
        # truncation or an action: the value is the cause.
        self._lowered: dict[Place, dict[int, str]] = {}

    def _marks(self, place: Place, broker: int, epoch: int) -> _ReportedMarks:
        """The marks that a broker has reported in the present epoch."""
        reported = self._reported.get(place)
        if reported is None or reported.epoch != epoch:
            reported = self._reported[place] = _InEpoch(epoch, {})
        marks = reported.by_broker.get(broker)
        if marks is None:
            marks = reported.by_broker[broker] = _ReportedMarks()
        return marks

    def answer(self, exchange: ConvertedExchange, place: Place, source: str, **known: int) -> None:
        """Add the offsets of a log in an answer; -1 stands for absent ones."""
        answer = exchange.answer
        assert answer is not None
        known = {name: value for name, value in known.items() if value >= 0}
        epoch = self._cluster.leader_epoch(place, answer.node_id, exchange.request.seq)
        mark = known.get("high_watermark")
        if mark is not None and epoch is not None:
            reported = self._marks(place, answer.node_id, epoch)
            since_seq = exchange.request.seq
            if answer.rules:
                is_evidence = reported.is_known(mark, since_seq)
            else:
                is_evidence = reported.add(answer.seq, mark, since_seq)
            if (
                not is_evidence
            ):  # the last stable offset of the same moment is then no evidence either
                del known["high_watermark"]
                known.pop("last_stable_offset", None)
        if not known:
            return
        self._rows.add(
            "watermarks",
            {
                **times(answer),
                "broker": answer.node_id,
                **place.columns(),
                "leader_epoch": epoch,
                **known,
                "source": source,
                "cause": answer.rules[0] if answer.rules else None,
            },
        )

    def appended(self, entry: AppendEntry, place: Place) -> None:
        """Add the log end behind an appended batch."""
        self._rows.add(
            "watermarks",
            {
                **times(entry),
                "broker": entry.node_id,
                **place.columns(),
                "leader_epoch": self._cluster.leader_epoch(place, entry.node_id, entry.seq),
                "log_end_offset": entry.last_offset + 1,
                "source": "produce",
            },
        )

    def truncated(self, entry: EventEntry, event: LogTruncated) -> None:  # noqa: ARG002
        """Add a truncation of a replica's log and high watermark."""
        place = self._cluster.named(event.topic, event.partition)
        self._lowered.setdefault(place, {})[event.node_id] = event.cause or "truncation"

    def moved(self, entry: EventEntry, event: WatermarkMoved) -> None:
        """Add a move of a high watermark. The first one after a truncation may be lower than
        before, as may a follower's after an action set the leader's.
        """
        place = self._cluster.named(event.topic, event.partition)
        lowered_by = self._lowered.get(place, {}).pop(event.node_id, None)
        if event.cause and event.high_watermark < event.former:
            reported = self._reported.get(place)
            others = reported.by_broker.keys() - {event.node_id} if reported is not None else ()
            self._lowered.setdefault(place, {}).update(dict.fromkeys(others, event.cause))
        epoch = self._cluster.leader_epoch(place, event.node_id, entry.seq)
        if epoch is not None:
            self._marks(place, event.node_id, epoch).add(entry.seq, event.high_watermark, entry.seq)
        self._rows.add(
            "watermarks",
            {
                **times(entry),
                "broker": event.node_id,
                **place.columns(),
                "leader_epoch": epoch,
                "high_watermark": event.high_watermark,
                "log_end_offset": event.log_end_offset,
                "source": "event",
                "cause": event.cause or lowered_by,
            },
        )

    def topics_changed(self, entry: EventEntry, event: TopicsChanged) -> None:  # noqa: ARG002
        """Forget deleted topics."""
        for topic in event.deleted:
            for partition in range(len(topic.assignment)):
                place = Place(topic.topic, topic.topic_id, partition)
                self._reported.pop(place, None)
                self._lowered.pop(place, None)

    def listed(self, exchange: ConvertedExchange) -> None:
        """ListOffsets was answered."""
        message, response = exchange.message, exchange.response
        if message is None or response is None or exchange.response_seq is None:
            return
        asked = {
            (topic.name, each.partition_index): each.timestamp
            for topic in message.topics
            for each in topic.partitions
        }
        limit = _limit(message)
        for topic in response.topics:
            for each in topic.partitions:
                wanted = asked.get((topic.name, each.partition_index))
                if each.error_code or each.offset < 0:
                    continue
                place = self._cluster.named(topic.name, each.partition_index)
                if wanted == LATEST:
                    self.answer(exchange, place, "list_offsets", **{limit: each.offset})
                elif wanted == EARLIEST:
                    self.answer(exchange, place, "list_offsets", log_start_offset=each.offset)


def _limit(message: Any) -> str:
    """The meaning of the latest offset for the sender: followers get the log end."""
    if message.replica_id >= 0:
        return "log_end_offset"
    committed = message.isolation_level == READ_COMMITTED
    return "last_stable_offset" if committed else "high_watermark"
