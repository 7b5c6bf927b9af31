"""Histories made up for the audit: a small cluster played with dice, and anomalies planted in it.

A `Story` plays a cluster that does everything right, and writes the tables that its journal would
give. A *plant* (tests/pipeline/plants.py) then makes one thing go wrong, and says which findings
that has to give: the truth that the audit is held against. Nothing here knows the audit's rules.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from mockbroker.pipeline.tables import TABLES
from tests.pipeline.share_histories import ShareGroup

Row = dict[str, Any]
START_MS = 1_700_000_000_000


@dataclass
class Stored:
    """What stands at one offset: a record, or a marker (`record` is None)."""

    offset: int
    record: Row | None
    transaction: str | None
    gone: bool = False


@dataclass
class Log:
    """One partition."""

    topic: str
    topic_id: str
    partition: int
    entries: list[Stored] = field(default_factory=list)
    log_start: int = 0
    epoch: int = 0
    deleted: bool = False
    outcomes: dict[str, bool] = field(default_factory=dict)  # transaction -> committed
    open: dict[str, int] = field(default_factory=dict)  # transaction -> first offset

    @property
    def end(self) -> int:
        return self.entries[-1].offset + 1 if self.entries else 0

    @property
    def stable(self) -> int:
        return min([self.end, *self.open.values()])

    @property
    def place(self) -> Row:
        return {"topic": self.topic, "topic_id": self.topic_id, "partition": self.partition}


@dataclass
class Sender:
    """A producer: plain (no id), idempotent, or transactional (`transactional_id`)."""

    name: str
    producer_id: int | None = None
    epoch: int = 0
    transactional_id: str | None = None
    sequences: dict[int, int] = field(default_factory=dict)  # id(log) -> next sequence
    transactions: int = 0
    transaction: str | None = None
    parts: list[Log] = field(default_factory=list)
    sent: int = 0
    operations: int = 0


@dataclass
class Reader:
    """A consumer: alone, or a member of a group."""

    name: str
    connection: int
    isolation: int
    group: str | None = None
    positions: dict[int, int] = field(default_factory=dict)  # id(log) -> position
    read_span: dict[int, int] = field(default_factory=dict)  # id(log) -> its number
    start: dict[int, str | None] = field(default_factory=dict)


@dataclass
class Group:
    name: str
    members: list[Reader]
    processes: bool
    generation: int = 0
    owners: dict[int, Reader] = field(default_factory=dict)  # id(log) -> member
    committed: dict[int, int] = field(default_factory=dict)
    operations: int = 0


class Story:
    """One run, from its dice. `play` lets it go on; `tables` is what was written down."""

    def __init__(self, run: str, seed: int) -> None:
        self.run = run
        self.dice = random.Random(seed)
        self.tables: dict[str, list[Row]] = {name: [] for name in TABLES}
        self.seq = 0
        self.read_spans = 0
        self.deleted: list[Log] = []
        topics = self.dice.choice((1, 1, 2))
        self.logs = [
            Log(f"t{t}", f"id-{run}-{t}", p)
            for t in range(topics)
            for p in range(self.dice.choice((1, 2)))
        ]
        self.senders = [Sender("plain"), Sender("steady", 1000)]
        self.senders.append(Sender("txn", 2000, 0, "tx-a"))
        self.groups = [
            Group("g-work", [self._member("m1", 11), self._member("m2", 12)], True),
            Group("g-copy", [self._member("c1", 13, 1)], False),
        ]
        self.alone = [Reader("solo", 21, 0), Reader("strict", 22, 1)]
        self.shares = ShareGroup(self)
        self._begin()

    def _member(self, name: str, connection: int, isolation: int | None = None) -> Reader:
        chosen = self.dice.choice((0, 1)) if isolation is None else isolation
        return Reader(name, connection, chosen)

    def _begin(self) -> None:
        for sender in self.senders:
            if sender.producer_id is not None:
                self.transaction_row(sender, None, "InitProducerId")
        for group in self.groups:
            for member in group.members:
                member.group = group.name
            self.rebalance(group)
        for reader in self.alone:
            for log in self.logs:
                self.new_read_span(reader, log, 0, "connection")

    # -- writing down ------------------------------------------------------------------------------

    def next(self) -> int:
        self.seq += self.dice.choice((1, 1, 1, 2))
        return self.seq

    def row(self, table: str, **values: Any) -> Row:
        known = {column.name: None for column in TABLES[table]}
        at = values.get("response_seq") or values.get("seq") or self.seq
        if "virtual_ms" in known:
            known |= {"virtual_ms": START_MS + at, "real_ns": (START_MS + at) * 1_000_000}
        elif "real_ns" in known:
            known["real_ns"] = (START_MS + self.seq) * 1_000_000
        unknown = values.keys() - known.keys()
        assert not unknown, unknown
        row = known | values
        self.tables[table].append(row)
        return row

    def operation(self, who: Sender | Group, op: str, **values: Any) -> Row:
        who.operations += 1
        return self.row("operations", seq=who.operations, process=who.name, op=op, **values)

    # -- producing ---------------------------------------------------------------------------------

    def send(
        self,
        sender: Sender,
        log: Log,
        count: int | None = None,
        *,
        ids: list[str | None] | None = None,
        answer: str = "ok",
        base_sequence: int | None = None,
        acks: int = -1,
    ) -> list[Row]:
        """A batch is sent and appended; `answer` is ok, lost or none (acks=0). The records."""
        count = count or self.dice.randint(1, 4)
        request = self.next()
        appended = self.next()
        base = log.end
        if ids is None:
            ids = []
            for _ in range(count):
                sender.sent += 1
                ids.append(f"{sender.name}-{sender.sent}")
        for known in ids:
            if known is not None:
                self.operation(sender, "send", topic=log.topic, partition=log.partition, id=known)
        sequence = sender.sequences.get(id(log), 0)
        if base_sequence is None:
            base_sequence = sequence
            sender.sequences[id(log)] = sequence + count
        records = []
        for index, known in enumerate(ids):
            record = self.row(
                "records", append_seq=appended, **log.place, offset=base + index,
                timestamp=START_MS + appended, id=known, value_hash=self.dice.getrandbits(62),
                key_hash=self.dice.choice((None, 1, 2, 3)),
            )  # fmt: skip
            records.append(record)
            log.entries.append(Stored(base + index, record, sender.transaction))
        if sender.transaction is not None:
            log.open.setdefault(sender.transaction, base)
            if log not in sender.parts:
                sender.parts.append(log)
        ok = answer == "ok" and acks != 0
        batch = dict(
            client_id=sender.name, broker=1, connection=1, **log.place, base_offset=base,
            last_offset=base + count - 1, records=count, bytes=70 * count,
            producer_id=sender.producer_id, transactional_id=sender.transactional_id,
            producer_epoch=None if sender.producer_id is None else sender.epoch,
            base_sequence=None if sender.producer_id is None else base_sequence,
            transaction=sender.transaction, acks=acks, rules=[],
        )  # fmt: skip
        self.row(
            "batches", seq=request, append_seq=appended, leader_epoch=log.epoch, acknowledged=ok,
            response_seq=self.next() if ok else None, **batch,
        )  # fmt: skip
        if answer == "lost" and sender.producer_id is not None:
            again = self.next()
            self.row(
                "batches", seq=again, append_seq=None, acknowledged=True,
                response_seq=self.next(), **batch,
            )  # fmt: skip
            ok = True
        if ok:
            for record in records:
                if record["id"] is not None:
                    self.operation(
                        sender, "acked", topic=log.topic, partition=log.partition,
                        offset=record["offset"], id=record["id"],
                    )  # fmt: skip
        self.stands(log, "produce")
        return records

    def deposed(self, sender: Sender, log: Log) -> None:
        """A leader that was deposed writes a batch that the next one never has; the producer sends
        it again, and somebody else may have written there before.
        """
        count = self.dice.randint(1, 4)
        base, sequence = log.end, sender.sequences.get(id(log), 0)
        ids: list[str | None] = [f"{sender.name}-{sender.sent + n}" for n in range(1, count + 1)]
        sender.sent += count
        log.epoch += 1
        other = self.senders[0 if sender.producer_id is not None else 1]
        first = self.dice.random() < 0.3
        if first:
            self.send(other, log)
        request, appended = self.next(), self.next()
        self.row(
            "batches", seq=request, append_seq=appended, leader_epoch=log.epoch - 1,
            acknowledged=False, client_id=sender.name, broker=2, connection=2, **log.place,
            base_offset=base, last_offset=base + count - 1, records=count, bytes=70 * count,
            producer_id=sender.producer_id,
            producer_epoch=None if sender.producer_id is None else sender.epoch,
            base_sequence=None if sender.producer_id is None else sequence, acks=-1, rules=[],
        )  # fmt: skip
        for index, known in enumerate(ids):
            self.operation(sender, "send", topic=log.topic, partition=log.partition, id=known)
            self.row(
                "records", append_seq=appended, **log.place, offset=base + index,
                timestamp=START_MS + appended, id=known, value_hash=self.dice.getrandbits(62),
            )  # fmt: skip
        if not first and self.dice.random() < 0.5:
            self.send(other, log)
        if log.end < base + count and log.end > base and self.dice.random() < 0.5:
            self.row(
                "removals", seq=self.next(), **log.place, first_offset=log.end,
                last_offset=base + count - 1, reason="truncation",
            )  # fmt: skip
        self.send(sender, log, count, ids=ids)

    def forgotten(self, producer_id: int, log: Log) -> Row:
        """A partition forgets a producer."""
        return self.row(
            "expirations", seq=self.next(), broker=1, **log.place, producer_id=producer_id
        )

    def refused(self, sender: Sender, log: Log, error: str, epoch: int | None = None) -> Row:
        request = self.next()
        return self.row(
            "batches", seq=request, response_seq=self.next(), client_id=sender.name, broker=1,
            connection=1, **log.place, records=1, bytes=70, producer_id=sender.producer_id,
            producer_epoch=sender.epoch if epoch is None else epoch, base_sequence=0,
            transactional_id=sender.transactional_id, acks=-1, acknowledged=False, error=error,
            rules=[],
        )  # fmt: skip

    def transaction_row(self, sender: Sender, former: str | None, state: str) -> Row:
        return self.row(
            "transactions", seq=self.next(), transactional_id=sender.transactional_id,
            producer_id=sender.producer_id, producer_epoch=sender.epoch,
            transaction=sender.transaction, former=former, state=state,
        )  # fmt: skip

    def begin(self, sender: Sender) -> None:
        sender.transactions += 1
        sender.transaction = f"{sender.producer_id}/{sender.transactions}"
        sender.parts = []
        self.transaction_row(sender, "Empty", "Ongoing")

    def end(self, sender: Sender, *, commit: bool) -> None:
        word = "Commit" if commit else "Abort"
        transaction = sender.transaction
        assert transaction is not None
        self.transaction_row(sender, "Ongoing", f"Prepare{word}")
        for log in sender.parts:
            if log.deleted:
                continue
            offset = log.end
            self.row(
                "markers", seq=self.next(), **log.place, leader_epoch=log.epoch, offset=offset,
                committed=commit,
                producer_id=sender.producer_id, producer_epoch=sender.epoch,
                transaction=transaction,
            )  # fmt: skip
            log.entries.append(Stored(offset, None, transaction))
            log.outcomes[transaction] = commit
            log.open.pop(transaction, None)
        self.transaction_row(sender, f"Prepare{word}", f"Complete{word}")
        sender.transaction = None

    # -- the log -----------------------------------------------------------------------------------

    def stands(self, log: Log, source: str, **changed: Any) -> Row:
        """A row of watermarks."""
        known = {
            "leader_epoch": log.epoch,
            "log_start_offset": log.log_start,
            "last_stable_offset": log.stable,
            "high_watermark": log.end,
            "log_end_offset": log.end,
        }
        if source == "fetch":
            known["log_end_offset"] = None
        row = {"seq": self.next(), "broker": 1, "source": source, **log.place, **known}
        return self.row("watermarks", **(row | changed))

    def remove(
        self, log: Log, first: int, last: int, reason: str, cause: str | None = None
    ) -> None:
        self.row(
            "removals", seq=self.next(), **log.place, first_offset=first, last_offset=last,
            reason=reason, cause=cause,
        )  # fmt: skip
        for stored in log.entries:
            if first <= stored.offset <= last:
                stored.gone = True

    def forget(self, log: Log) -> None:
        """Retention or DeleteRecords, up to somewhere below what is stable."""
        if log.stable > log.log_start:
            to = self.dice.randint(log.log_start + 1, log.stable)
            reason = self.dice.choice(("retention", "delete_records"))
            self.remove(log, log.log_start, to - 1, reason)
            log.log_start = to
            self.stands(log, "event")

    def compact(self, log: Log) -> None:
        below = [s for s in log.entries if s.record and not s.gone and s.offset < log.stable]
        if below:
            chosen = self.dice.choice(below)
            self.remove(log, chosen.offset, chosen.offset, "compaction")

    def make_anew(self, log: Log) -> None:
        """The topic of `log` is deleted, and made again with another id."""
        for old in [each for each in self.logs if each.topic == log.topic]:
            if old.end:
                self.remove(old, 0, old.end - 1, "topic_deleted")
            old.deleted = True
            self.deleted.append(old)
            new = Log(old.topic, old.topic_id + "x", old.partition, epoch=old.epoch)
            self.logs[self.logs.index(old)] = new
            for reader in self.alone:
                self.new_read_span(reader, new, 0, "reset")
        for group in self.groups:
            self.rebalance(group)

    def made_anew(self) -> set[str]:
        """Names of topics under which records of several topics stand."""
        known = {(r["topic"], r["topic_id"]) for r in self.tables["records"]}
        names = [name for name, _ in known]
        return {name for name in names if names.count(name) > 1}

    # -- consuming ---------------------------------------------------------------------------------

    def new_read_span(self, reader: Reader, log: Log, position: int, why: str) -> None:
        self.read_spans += 1
        reader.positions[id(log)] = position
        reader.read_span[id(log)] = self.read_spans
        reader.start[id(log)] = why

    def shown(self, log: Log, stored: Stored, isolation: int) -> bool:
        """Whether a consumer that passes it gets it."""
        if stored.record is None or stored.gone:
            return False
        return isolation == 0 or log.outcomes.get(stored.transaction or "", True)

    def fetch(self, reader: Reader, log: Log, limit: int | None = None) -> Row:
        """One answer from where the reader stands; what it brought is processed at once."""
        position = reader.positions[id(log)]
        if position < log.log_start:
            self.new_read_span(reader, log, log.log_start, "reset")
            position = log.log_start
        bound = log.stable if reader.isolation else log.end
        request, response = self.next(), self.next()
        limit = limit or self.dice.randint(1, 6)
        passed = [s for s in log.entries if position <= s.offset < bound][:limit]
        brought = [s for s in passed if self.shown(log, s, reader.isolation)]
        after = passed[-1].offset + 1 if passed else position
        row = self.row(
            "fetches", seq=request, response_seq=response, broker=1, client_id=reader.name,
            connection=reader.connection, group=reader.group,
            member=reader.name if reader.group else None, **log.place,
            read_span=reader.read_span[id(log)], start=reader.start[id(log)],
            isolation_level=reader.isolation, fetch_offset=position, next_offset=after,
            delivered=len(brought), log_start_offset=log.log_start,
            last_stable_offset=log.stable, high_watermark=log.end, rules=[],
        )  # fmt: skip
        reader.start[id(log)] = None
        reader.positions[id(log)] = after
        for index, stored in enumerate(brought):
            assert stored.record is not None
            self.row(
                "deliveries", response_seq=response, **log.place, position=index,
                offset=stored.offset, value_hash=stored.record["value_hash"],
            )  # fmt: skip
        self.stands(log, "fetch")
        for group in self.groups:
            if group.name == reader.group and group.processes:
                for stored in brought:
                    self.processed(group, log, stored.offset)
        return row

    def processed(self, group: Group, log: Log, offset: int) -> Row:
        return self.operation(
            group, "processed", group=group.name, topic=log.topic, partition=log.partition,
            offset=offset,
        )  # fmt: skip

    def commit(
        self,
        group: Group,
        log: Log,
        offset: int | None = None,
        *,
        generation: int | None = None,
        error: str | None = None,
    ) -> Row:
        member = group.owners[id(log)]
        offset = member.positions[id(log)] if offset is None else offset
        if error is None:
            group.committed[id(log)] = offset
        request = self.next()
        return self.row(
            "commits", seq=request, response_seq=self.next(), group=group.name,
            member=member.name, client_id=member.name, connection=member.connection + 100,
            generation=group.generation if generation is None else generation, **log.place,
            offset=offset, applied=error is None, reset=False, error=error,
        )  # fmt: skip

    def reset(self, group: Group, log: Log, offset: int) -> None:
        """An administrator sets the offset of a group, whose members then begin there."""
        request = self.next()
        self.row(
            "commits", seq=request, response_seq=self.next(), group=group.name,
            client_id="admin", connection=99, **log.place, offset=offset, applied=True,
            reset=True,
        )  # fmt: skip
        group.committed[id(log)] = offset

    def rebalance(self, group: Group, *, commit_first: bool = True) -> None:
        for log in self.logs:
            owner = group.owners.get(id(log))
            if commit_first and owner is not None and not log.deleted:
                self.commit(group, log)
        self._group_row(group, "Stable" if group.generation else "Empty", "PreparingRebalance")
        group.generation += 1
        self._group_row(group, "PreparingRebalance", "CompletingRebalance")
        self._group_row(group, "CompletingRebalance", "Stable")
        members = self.dice.sample(group.members, len(group.members))
        for number, log in enumerate(self.logs):
            member = members[number % len(members)]
            group.owners[id(log)] = member
            self.row(
                "assignments", seq=self.next(), group=group.name, generation=group.generation,
                member=member.name, client_id=member.name, **log.place,
            )  # fmt: skip
            self.new_read_span(member, log, group.committed.get(id(log), 0), "rebalance")

    def _group_row(self, group: Group, former: str, state: str) -> None:
        self.row(
            "groups", seq=self.next(), group=group.name, protocol="classic", former=former,
            state=state, generation=group.generation, members=len(group.members),
        )  # fmt: skip

    # -- playing -----------------------------------------------------------------------------------

    def play(self, steps: int) -> None:
        """So many steps of a cluster at work; a transaction may stay open behind them."""
        for _ in range(steps):
            log = self.dice.choice(self.logs)
            throw = self.dice.random()
            if throw < 0.34:
                self._produce(log)
            elif throw < 0.42:
                self._transact()
            elif throw < 0.62:
                group = self.dice.choice(self.groups)
                self.fetch(group.owners[id(log)], log)
            elif throw < 0.76:
                self.fetch(self.dice.choice(self.alone), log)
            elif throw < 0.86:
                self.commit(self.dice.choice(self.groups), log)
            else:
                self._rare(log)
            self.shares.play()

    def _produce(self, log: Log) -> None:
        sender = self.dice.choice(self.senders)
        if sender.transactional_id is not None and sender.transaction is None:
            self.begin(sender)
        answer = self.dice.choice(("ok", "ok", "ok", "lost"))
        acks = self.dice.choice((-1, 1, 0)) if sender.producer_id is None else -1
        self.send(sender, log, answer=answer, acks=acks)

    def _transact(self) -> None:
        sender = self.senders[-1]
        if sender.transaction is None:
            self.begin(sender)
            for log in self.logs:
                self.send(sender, log)
        self.end(sender, commit=self.dice.random() < 0.6)

    def _rare(self, log: Log) -> None:
        throw = self.dice.random()
        reader = self.dice.choice(self.alone)
        if throw < 0.3:
            self.rebalance(self.dice.choice(self.groups))
        elif throw < 0.5:
            self.new_read_span(reader, log, self.dice.randint(log.log_start, log.end), "reset")
        elif throw < 0.65:
            self.forget(log)
        elif throw < 0.8:
            self.compact(log)
        elif throw < 0.9:
            self.refused(self.senders[0], log, "MESSAGE_TOO_LARGE")
        elif throw < 0.95:
            log.epoch += 1
        else:
            self.deposed(self.dice.choice(self.senders[:2]), log)

    def settle(self) -> None:
        """End what is open, and let everybody read and commit all there is."""
        if self.senders[-1].transaction is not None:
            self.end(self.senders[-1], commit=True)
        for log in self.logs:
            for group in self.groups:
                owner = group.owners[id(log)]
                while owner.positions[id(log)] < log.end:
                    self.fetch(owner, log)
                self.commit(group, log)
