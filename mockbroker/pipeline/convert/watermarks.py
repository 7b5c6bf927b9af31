"""Where logs stood: high watermarks, stable offsets, log starts and ends, as they were told.

An answer is written down when it leaves, and may have been made up before: meanwhile others may
have been told of a higher watermark. Such an answer is no evidence that the watermark went back, so
its high watermark is left out. It did go back where an answer tells less than was told before it
was even asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.world import Exchange, Place, World
from mockbroker.pipeline.spool.notes import Appended, Fact

LATEST, EARLIEST = -1, -2
READ_COMMITTED = 1


class _Told:
    """The high watermarks that were told of one log under one epoch, as far as they rose."""

    __slots__ = ("marks", "seqs", "turned_seq")

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.marks: list[int] = []
        self.turned_seq = 0  # when it last went back

    def before(self, seq: int) -> int:
        """The highest that was told before an entry; -1 for none."""
        at = bisect_right(self.seqs, seq)
        return self.marks[at - 1] if at else -1

    def is_known(self, mark: int, since_seq: int) -> bool:
        """Whether a mark in an answer that a rule had a hand in says anything: it is where all
        others are, or it went back for all who asked. It is never taken for the truth.
        """
        return mark < self.before(since_seq) or mark == (self.marks[-1] if self.marks else -1)

    def add(self, seq: int, mark: int, since_seq: int) -> bool:
        """Take in a mark told at `seq` of what was at some time since `since_seq`; whether it is
        evidence.
        """
        newest = self.marks[-1] if self.marks else -1
        if since_seq < self.turned_seq and mark != newest:
            return False
        if mark > newest:
            self.seqs.append(seq)
            self.marks.append(mark)
            return True
        if mark == newest:
            return True
        if mark >= self.before(since_seq):
            return False
        self.turned_seq = seq
        self.seqs, self.marks = [seq], [mark]
        return True


class Watermarks:
    """Makes `watermarks`."""

    def __init__(self, rows: Rows, world: World) -> None:
        self._rows = rows
        self._world = world
        self._told: dict[tuple[Place, int, int], _Told] = {}

    def answer(self, exchange: Exchange, place: Place, source: str, **known: int) -> None:
        """An answer told something of a log; what is -1 was not told."""
        answer = exchange.answer
        assert answer is not None
        known = {name: value for name, value in known.items() if value >= 0}
        epoch = self._world.leader_epoch(place, answer.node_id, exchange.asked.seq)
        mark = known.get("high_watermark")
        if mark is not None and epoch is not None:
            told = self._told.setdefault((place, answer.node_id, epoch), _Told())
            since_seq = exchange.asked.seq
            if answer.rules:
                is_evidence = told.is_known(mark, since_seq)
            else:
                is_evidence = told.add(answer.seq, mark, since_seq)
            if not is_evidence:
                del known["high_watermark"]
        if not known:
            return
        self._rows.add(
            "watermarks",
            {
                "seq": answer.seq,
                "virtual_ms": answer.virtual_ms,
                "real_ns": answer.real_ns,
                "broker": answer.node_id,
                **place.columns(),
                "leader_epoch": epoch,
                **known,
                "source": source,
                "cause": answer.rules[0] if answer.rules else None,
            },
        )

    def appended(self, note: Appended, place: Place) -> None:
        """A batch was appended, which tells the log's end."""
        self._rows.add(
            "watermarks",
            {
                "seq": note.seq,
                "virtual_ms": note.virtual_ms,
                "real_ns": note.real_ns,
                "broker": note.node_id,
                **place.columns(),
                "leader_epoch": self._world.leader_epoch(place, note.node_id, note.seq),
                "log_end_offset": note.first_offset + note.last_offset_delta + 1,
                "source": "produce",
            },
        )

    def moved(self, note: Fact) -> None:
        """A high watermark moved (WatermarkMoved)."""
        told = note.fact
        place = self._world.named(told["topic"], told["partition"])
        broker, mark = told["node_id"], told["high_watermark"]
        epoch = self._world.leader_epoch(place, broker, note.seq)
        if epoch is not None:
            known = self._told.setdefault((place, broker, epoch), _Told())
            known.add(note.seq, mark, note.seq)
        self._rows.add(
            "watermarks",
            {
                "seq": note.seq,
                "virtual_ms": note.virtual_ms,
                "real_ns": note.real_ns,
                "broker": broker,
                **place.columns(),
                "leader_epoch": epoch,
                "high_watermark": mark,
                "log_end_offset": told["log_end_offset"],
                "source": "event",
                "cause": told["cause"] or None,
            },
        )

    def listed(self, exchange: Exchange) -> None:
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
                place = self._world.named(topic.name, each.partition_index)
                if wanted == LATEST:
                    self.answer(exchange, place, "list_offsets", **{limit: each.offset})
                elif wanted == EARLIEST:
                    self.answer(exchange, place, "list_offsets", log_start_offset=each.offset)


def _limit(message: Any) -> str:
    """What the latest offset is to whom asks: followers see the end, consumers less."""
    if message.replica_id >= 0:
        return "log_end_offset"
    committed = message.isolation_level == READ_COMMITTED
    return "last_stable_offset" if committed else "high_watermark"
