"""The audit by brute force, after docs/explanation/audit.md, for small histories.

Shares nothing with the engines but the shape of a finding. Quadratic wherever that is plainest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from mockbroker.pipeline.findings import Finding
from tests.pipeline.share_oracle import share_findings

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
Place = tuple[str, int]

WANTED = {"retention", "compaction", "delete_records", "topic_deleted"}
REFUSED_ZOMBIES = {
    "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID",
    "FENCED_INSTANCE_ID",
    "FENCED_MEMBER_EPOCH",
    "STALE_MEMBER_EPOCH",
}


def audit_by_force(run: str, tables: Tables) -> set[Finding]:
    """All findings of one run, without details."""
    return set(Judge(run, tables).findings())


def k_of(row: Row) -> Place:
    return row["topic_id"], row["partition"]


class Judge:
    """One run under the rules."""

    def __init__(self, run: str, tables: Tables) -> None:
        self.run = run
        self.t: dict[str, Sequence[Row]] = defaultdict(list, tables)
        self.batch = {b["append_seq"]: b for b in self.t["batches"] if b["append_seq"] is not None}
        self.diverging = {
            seq for seq, b in self.batch.items() if self._a_later_leader_wrote_there(b)
        }
        self.names: dict[Place, str] = {}
        for table in ("records", "batches", "fetches", "commits", "watermarks", "share_records"):
            for row in self.t[table]:
                self.names[k_of(row)] = row["topic"]
        ids: dict[str, set[str]] = defaultdict(set)
        for record in self.t["records"]:
            ids[record["topic"]].add(record["topic_id"])
        self.made_anew = {name for name, known in ids.items() if len(known) > 1}

    def findings(self) -> Iterator[Finding]:
        for rule in (
            self.inconsistent_offset,
            self.duplicate_by_id,
            self.duplicate_without_id,
            self.duplicate_by_sequence,
            self.lost_write,
            self.lost_for_application,
            self.aborted_and_dirty_reads,
            self.torn_transaction,
            self.within_answers,
            self.between_answers,
            self.non_monotonic_send,
            self.application_sends,
            self.commits,
            self.read_again,
            self.zombie_write,
            self.zombie_commit,
            self.watermarks,
            self.processing,
        ):
            yield from rule()
        yield from share_findings(self)

    # -- words -------------------------------------------------------------------------------------

    def found(
        self,
        anomaly: str,
        verdict: str,
        level: str,
        where: Place | None,
        offset: int | None,
        subject: str | None,
        seqs: Iterable[int] = (),
        *,
        rule: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> Finding:
        bounds = list(seqs)
        first, last = (min(bounds), max(bounds)) if bounds else (None, None)
        for gap in self.t["gaps"]:
            if first is None or last is None:
                if anomaly == "lost_write":
                    verdict = "undecided"
            elif gap["first_seq"] <= last and gap["last_seq"] >= first:
                verdict = "undecided"
        topic_id = None
        if where is not None:
            topic_id, partition = where
            topic = self.names[where]
        return Finding(
            self.run, anomaly, verdict, level, topic, topic_id, partition, offset, subject,
            first, last, rule,
        )  # fmt: skip

    def removals(self, record: Row) -> list[Row]:
        return [
            r
            for r in self.t["removals"]
            if k_of(r) == k_of(record)
            and r["first_offset"] <= record["offset"] <= r["last_offset"]
            and record["append_seq"] < r["seq"]
        ]

    def removed_before(self, record: Row, seq: int) -> bool:
        return any(r["seq"] < seq for r in self.removals(record))

    def thrown_out(self, record: Row) -> bool:
        return any(r["reason"] not in WANTED for r in self.removals(record))

    def diverges(self, record: Row) -> bool:
        return record["append_seq"] in self.diverging

    def _a_later_leader_wrote_there(self, batch: Row) -> bool:
        if batch["leader_epoch"] is None:
            return False
        written = [(b, b["base_offset"]) for b in self.batch.values()]
        written += [(m, m["offset"]) for m in self.t["markers"]]
        return any(
            k_of(row) == k_of(batch)
            and row["leader_epoch"] is not None
            and row["leader_epoch"] > batch["leader_epoch"]
            and offset <= batch["base_offset"]
            for row, offset in written
        )

    def aborted(self, record: Row) -> bool:
        transaction = self.batch[record["append_seq"]]["transaction"]
        return transaction is not None and any(
            m["transaction"] == transaction and k_of(m) == k_of(record) and not m["committed"]
            for m in self.t["markers"]
        )

    def reopened(self, record: Row, seq: int) -> bool:
        """Whether all markers of its transaction were thrown out before `seq`."""
        transaction = self.batch[record["append_seq"]]["transaction"]
        if transaction is None:
            return False
        thrown = [
            min(
                (
                    r["seq"]
                    for r in self.t["removals"]
                    if k_of(r) == k_of(m)
                    and r["first_offset"] <= m["offset"] <= r["last_offset"]
                    and r["seq"] > m["seq"]
                    and r["reason"] not in WANTED
                ),
                default=seq,
            )
            for m in self.t["markers"]
            if m["transaction"] == transaction and k_of(m) == k_of(record)
        ]
        return bool(thrown) and max(thrown) < seq

    def excuse(self, record: Row) -> str | None:
        """Why a record that is thrown out or diverges may be lost."""
        unwanted = [m for m in self.removals(record) if m["reason"] not in WANTED]
        if not unwanted and not self.diverges(record):
            return None
        if unwanted:
            cause: str | None = min(unwanted, key=lambda m: m["seq"])["cause"]
            if cause is not None:
                return cause
        epoch = self.batch[record["append_seq"]]["leader_epoch"]
        for change in self.t["cluster"]:
            if (
                change["unclean"]
                and k_of(change) == k_of(record)
                and epoch is not None
                and change["leader_epoch"] > epoch
            ):
                return "unclean_election"
        if self.acknowledged(record) and not self.acknowledged(record, promised=True):
            return "acks=1"
        return None

    def acknowledged(
        self, record: Row, *, promised: bool = False, before: int | None = None
    ) -> bool:
        own = self.batch[record["append_seq"]]
        for b in self.t["batches"]:
            if promised and b["acks"] != -1:
                continue
            if before is not None and b["append_seq"] is None and b["seq"] >= before:
                continue
            if not b["acknowledged"] or k_of(b) != k_of(record) or b["base_offset"] is None:
                continue
            if not b["base_offset"] <= record["offset"] <= b["last_offset"]:
                continue
            if b["append_seq"] == record["append_seq"]:
                return True
            identity = ("producer_id", "producer_epoch", "base_sequence")
            if (
                b["append_seq"] is None
                and b["producer_id"] is not None
                and all(b[name] == own[name] for name in identity)
            ):
                appends = [
                    a["append_seq"]
                    for a in self.batch.values()
                    if k_of(a) == k_of(b)
                    and all(a[name] == b[name] for name in identity)
                    and a["append_seq"] < b["seq"]
                ]
                if appends and max(appends) == own["append_seq"]:
                    return True
        return False

    def missing(self, where: Place, start: int, end: int, answer: Row) -> list[int]:
        return sorted(
            r["offset"]
            for r in self.t["records"]
            if k_of(r) == where
            and start <= r["offset"] < end
            and r["append_seq"] < answer["response_seq"]
            and not self.removed_before(r, answer["response_seq"])
            and not self.diverges(r)
            and not (
                answer["isolation_level"] == 1
                and (self.aborted(r) or self.reopened(r, answer["response_seq"]))
            )
        )

    def deliveries(self, answer: Row) -> list[Row]:
        mine = [
            d
            for d in self.t["deliveries"]
            if d["response_seq"] == answer["response_seq"] and k_of(d) == k_of(answer)
        ]
        return sorted(mine, key=lambda d: d["position"])

    def appended(self) -> list[Row]:
        """Batches that `duplicate` and `non_monotonic_send` look at."""
        return [
            b
            for b in self.batch.values()
            if b["producer_id"] is not None
            and b["base_sequence"] is not None
            and b["base_sequence"] >= 0
            and not self.diverges(b)
            and not self.thrown_out({**b, "offset": b["base_offset"]})
        ]

    def unless_expired(self, batch: Row, others: Iterable[int]) -> tuple[str, str | None]:
        """Verdict and rule of a batch, by the last of these appends of its producer before it."""
        before = [seq for seq in others if seq < batch["append_seq"]]
        for e in self.t["expirations"]:
            if (
                before
                and e["producer_id"] == batch["producer_id"]
                and k_of(e) == k_of(batch)
                and max(before) < e["seq"] < batch["append_seq"]
            ):
                return "report", "producer.id.expiration.ms"
        return "bug", None

    # -- the log -----------------------------------------------------------------------------------

    def inconsistent_offset(self) -> Iterator[Finding]:
        seen: dict[tuple[Place, int], list[tuple[int, int]]] = defaultdict(list)
        for r in self.t["records"]:
            if self.acknowledged(r):
                seen[k_of(r), r["offset"]].append((r["value_hash"], r["append_seq"]))
        for d in self.t["deliveries"]:
            seen[k_of(d), d["offset"]].append((d["value_hash"], d["response_seq"]))
        for (where, offset), values in seen.items():
            if len({value for value, _ in values}) > 1:
                seqs = [seq for _, seq in values]
                verdict, rule = self._without_excused(where, offset)
                yield self.found(
                    "inconsistent_offset", verdict, "wire", where, offset, None, seqs, rule=rule
                )

    def _without_excused(self, where: Place, offset: int) -> tuple[str, str | None]:
        """What is left of several values without those that may have been lost."""
        records = [r for r in self.t["records"] if k_of(r) == where and r["offset"] == offset]
        excuses = {r["append_seq"]: self.excuse(r) for r in records}
        may_be_lost = {
            r["value_hash"] for r in records if excuses[r["append_seq"]] not in (None, "acks=1")
        }
        left = {
            r["value_hash"]
            for r in records
            if excuses[r["append_seq"]] is None and self.acknowledged(r)
        } | {
            d["value_hash"]
            for d in self.t["deliveries"]
            if k_of(d) == where and d["offset"] == offset and d["value_hash"] not in may_be_lost
        }
        if len(left) > 1:
            return "bug", None
        return "report", excuses[min(seq for seq, excuse in excuses.items() if excuse)]

    def standing(self) -> list[Row]:
        """Records that are neither aborted nor thrown out nor diverging, as they were appended."""
        records = [
            r
            for r in self.t["records"]
            if not (self.diverges(r) or self.aborted(r) or self.thrown_out(r))
        ]
        return sorted(records, key=lambda r: (r["append_seq"], r["partition"], r["offset"]))

    def duplicate_by_id(self) -> Iterator[Finding]:
        same: dict[tuple[str, str], dict[tuple[Place, int], Row]] = defaultdict(dict)
        for r in self.standing():
            if r["id"] is not None:
                same[r["topic_id"], r["id"]].setdefault((k_of(r), r["offset"]), r)
        for (_, known), places in same.items():
            first, *others = places.values()
            for r in others:
                seqs = (first["append_seq"], r["append_seq"])
                batches = (self.batch[seq] for seq in seqs)
                one, other = ((b["producer_id"], b.get("producer_epoch")) for b in batches)
                verdict, rule = "report", None
                if one[0] is not None and one == other:
                    own = [
                        each["append_seq"]
                        for each in places.values()
                        if k_of(each) == k_of(r)
                        and self.batch[each["append_seq"]]["producer_id"] == other[0]
                        and self.batch[each["append_seq"]].get("producer_epoch") == other[1]
                    ]
                    verdict, rule = self.unless_expired(self.batch[r["append_seq"]], own)
                yield self.found(
                    "duplicate", verdict, "wire", k_of(r), r["offset"], f"id:{known}", seqs,
                    rule=rule,
                )  # fmt: skip

    def duplicate_without_id(self) -> Iterator[Finding]:
        topics: dict[str, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for r in self.standing():
            if r["id"] is None:
                topics[r["topic_id"]][r["value_hash"]].append(r)
        for topic_id, values in topics.items():
            count, seqs, topic = 0, [], None
            for records in values.values():
                places = {(k_of(r), r["offset"]) for r in records}
                if len(places) > 1:
                    count += len(places) - 1
                    seqs += [r["append_seq"] for r in records]
                    topic = records[0]["topic"]
            if count:
                yield self.found(
                    "duplicate", "undecided", "wire", None, None, f"without-id:{count}", seqs,
                    topic=topic,
                )._replace(topic_id=topic_id)  # fmt: skip

    def duplicate_by_sequence(self) -> Iterator[Finding]:
        same: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for b in self.appended():
            key = (k_of(b), b["producer_id"], b["producer_epoch"], b["base_sequence"])
            same[key].append(b)
        for key, batches in same.items():
            lowest, *others = sorted(batches, key=lambda b: b["base_offset"])
            for b in others:
                verdict, rule = self.unless_expired(b, [each["append_seq"] for each in batches])
                yield self.found(
                    "duplicate", verdict, "wire", key[0], b["base_offset"],
                    f"producer:{key[1]}", (lowest["append_seq"], b["append_seq"]), rule=rule,
                )  # fmt: skip

    def lost_write(self) -> Iterator[Finding]:
        for r in self.t["records"]:
            removals = sorted(self.removals(r), key=lambda m: m["seq"])
            if not removals or removals[0]["reason"] in WANTED:
                continue
            if not self.acknowledged(r, before=removals[0]["seq"]):
                continue
            rule = self.excuse(r)
            client = self.batch[r["append_seq"]]["client_id"]
            yield self.found(
                "lost_write", "bug" if rule is None else "report", "wire", k_of(r), r["offset"],
                f"client:{client}", (r["append_seq"], removals[0]["seq"]), rule=rule,
            )  # fmt: skip

    def lost_for_application(self) -> Iterator[Finding]:
        for op in self.t["operations"]:
            if op["op"] != "acked" or op["topic"] in self.made_anew:
                continue
            records = [r for r in self.t["records"] if r["topic"] == op["topic"]]
            if op["offset"] is not None:
                there = any(
                    (r["partition"], r["offset"]) == (op["partition"], op["offset"])
                    for r in records
                )
            elif op["id"] is not None:
                there = any(r["id"] == op["id"] for r in records)
            else:
                continue
            if not there:
                yield self.found(
                    "lost_write", "bug", "application", None, op["offset"], op["process"],
                    topic=op["topic"], partition=op["partition"],
                )  # fmt: skip

    def torn_transaction(self) -> Iterator[Finding]:
        rows: dict[str, list[Row]] = defaultdict(list)
        for row in sorted(self.t["transactions"], key=lambda row: row["seq"]):
            if row["transaction"] is not None:
                rows[row["transaction"]].append(row)
        deleted = {k_of(r) for r in self.t["removals"] if r["reason"] == "topic_deleted"}
        for transaction, told in rows.items():
            if told[-1]["state"] not in ("CompleteCommit", "CompleteAbort"):
                continue
            batches = [
                b
                for b in self.batch.values()
                if b["transaction"] == transaction and k_of(b) not in deleted
            ]
            markers = [m for m in self.t["markers"] if m["transaction"] == transaction]
            committed = {k_of(m) for m in markers if m["committed"]}
            parts = {k_of(b) for b in batches}
            if parts & committed and parts - committed:
                end = max([told[-1]["seq"], *(m["seq"] for m in markers)])
                start = min(b["append_seq"] for b in batches)
                yield self.found(
                    "torn_transaction", "bug", "wire", None, None, transaction, (start, end)
                )

    # -- reading -----------------------------------------------------------------------------------

    def aborted_and_dirty_reads(self) -> Iterator[Finding]:
        for answer in self.t["fetches"]:
            if answer["isolation_level"] != 1:
                continue
            subject, seq = f"connection:{answer['connection']}", answer["response_seq"]
            where, stable = k_of(answer), answer["last_stable_offset"]
            for d in self.deliveries(answer):
                if stable is not None and d["offset"] >= stable:
                    yield self.found(
                        "dirty_read", "bug", "wire", where, d["offset"], subject, [seq]
                    )
                there = [
                    r
                    for r in self.t["records"]
                    if k_of(r) == where
                    and r["offset"] == d["offset"]
                    and r["append_seq"] < seq
                    and not self.removed_before(r, seq)
                    and not self.diverges(r)
                ]
                if there:
                    r = max(there, key=lambda r: r["append_seq"])
                    if self.aborted(r):
                        yield self.found(
                            "aborted_read", "bug", "wire", where, d["offset"], subject,
                            (r["append_seq"], seq),
                        )  # fmt: skip

    def within_answers(self) -> Iterator[Finding]:
        for answer in self.t["fetches"]:
            subject, seq = f"connection:{answer['connection']}", answer["response_seq"]
            where = k_of(answer)
            offsets = [d["offset"] for d in self.deliveries(answer)]
            for one, other in pairwise(offsets):
                if other <= one:
                    yield self.found(
                        "non_monotonic_poll", "bug", "wire", where, other, subject, [seq]
                    )
            if answer["error"] is None:
                missing = self.missing(where, answer["fetch_offset"], answer["next_offset"], answer)
                left_out = [offset for offset in missing if offset not in offsets]
                if left_out:
                    yield self.found("skip", "bug", "wire", where, left_out[0], subject, [seq])

    def between_answers(self) -> Iterator[Finding]:
        good = [f for f in self.t["fetches"] if f["error"] is None]
        for now in good:
            jumped = now["start"] == "jump"
            same = "connection" if jumped else "read_span"
            before = [
                f
                for f in good
                if k_of(f) == k_of(now)
                and f[same] == now[same]
                and f["response_seq"] < now["response_seq"]
            ]
            if not before:
                continue
            last = max(before, key=lambda f: f["response_seq"])
            where = k_of(now)
            verdict = "report" if jumped else "bug"
            subject = f"connection:{now['connection']}"
            seqs = (last["response_seq"], now["response_seq"])
            missing = self.missing(where, last["next_offset"], now["fetch_offset"], now)
            if missing:
                yield self.found("skip", verdict, "wire", where, missing[0], subject, seqs)
            offsets = [d["offset"] for d in self.deliveries(now)]
            if offsets and min(offsets) < last["next_offset"]:
                yield self.found(
                    "non_monotonic_poll", verdict, "wire", where, min(offsets), subject, seqs
                )

    def read_again(self) -> Iterator[Finding]:
        read_spans: dict[tuple[str, Place], dict[int, list[tuple[int, int]]]] = {}
        for answer in self.t["fetches"]:
            if answer["group"] is not None:
                of_group = read_spans.setdefault((answer["group"], k_of(answer)), {})
                brought = [(answer["response_seq"], d["offset"]) for d in self.deliveries(answer)]
                of_group.setdefault(answer["read_span"], []).extend(brought)
        for (group, where), of_group in read_spans.items():
            read = sorted((brought for brought in of_group.values() if brought), key=min)
            for number, brought in enumerate(read[1:], 1):
                before = [offset for former in read[:number] for _, offset in former]
                lowest = min(offset for _, offset in brought)
                if lowest <= max(before):
                    seqs = (min(read[0])[0], min(brought)[0])
                    yield self.found("read_again", "report", "wire", where, lowest, group, seqs)

    # -- producers ---------------------------------------------------------------------------------

    def non_monotonic_send(self) -> Iterator[Finding]:
        sent: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for b in self.appended():
            sent[k_of(b), b["producer_id"], b["producer_epoch"]].append(b)
        for (where, producer, _), batches in sent.items():
            for one, other in pairwise(sorted(batches, key=lambda b: b["base_offset"])):
                turned = one["base_sequence"] + one["records"] >= 2**31
                if other["base_sequence"] < one["base_sequence"] and not turned:
                    verdict, rule = self.unless_expired(other, [one["append_seq"]])
                    yield self.found(
                        "non_monotonic_send", verdict, "wire", where, other["base_offset"],
                        f"producer:{producer}", (one["append_seq"], other["append_seq"]), rule=rule,
                    )  # fmt: skip

    def application_sends(self) -> Iterator[Finding]:
        first_sent: dict[tuple[str, str, str], int] = {}
        for op in self.t["operations"]:
            if op["op"] == "send" and op["id"] is not None:
                key = (op["process"], op["topic"], op["id"])
                first_sent[key] = min(first_sent.get(key, op["seq"]), op["seq"])
        standing: dict[tuple[Place, str], Row] = {}
        for r in sorted(self.t["records"], key=lambda r: (r["offset"], r["append_seq"])):
            if r["id"] is None or r["topic"] in self.made_anew or self.diverges(r):
                continue
            if not self.aborted(r) and not self.thrown_out(r):
                standing.setdefault((k_of(r), r["id"]), r)
        lines: dict[tuple[str, Place], list[tuple[int, int, Row]]] = defaultdict(list)
        for (process, topic, known), seq in first_sent.items():
            for (where, its_id), r in standing.items():
                if its_id == known and r["topic"] == topic:
                    lines[process, where].append((r["offset"], seq, r))
        for (process, where), line in lines.items():
            ordered = sorted(line, key=lambda item: item[0])
            for (_, earlier, one), (offset, later, other) in pairwise(ordered):
                if later < earlier:
                    seqs = (one["append_seq"], other["append_seq"])
                    known = all(self.batch[seq]["producer_id"] is not None for seq in seqs)
                    yield self.found(
                        "non_monotonic_send", "bug" if known else "report", "application",
                        where, offset, process, seqs,
                    )  # fmt: skip

    def zombie_write(self) -> Iterator[Finding]:
        for b in self.t["batches"]:
            if b["producer_id"] is None:
                continue
            appended = b["append_seq"] is not None
            decided = b["append_seq"] if appended else b["seq"]
            higher = [
                row["seq"]
                for row in self.t["transactions"]
                if row["producer_id"] == b["producer_id"]
                and row["producer_epoch"] > b["producer_epoch"]
                and row["seq"] < decided
            ]
            if higher and (appended or b["error"] is not None):
                counts = appended and not self.diverges(b) and not self.aborted(b)
                verdict = "bug" if counts else "report"
                yield self.found(
                    "zombie_write", verdict, "wire", k_of(b),
                    b["base_offset"], f"producer:{b['producer_id']}", (min(higher), decided),
                )  # fmt: skip

    # -- commits -----------------------------------------------------------------------------------

    def commits(self) -> Iterator[Finding]:
        applied = sorted((c for c in self.t["commits"] if c["applied"]), key=lambda c: c["seq"])
        unattributed: dict[tuple[str, str], list[int]] = defaultdict(list)
        topics: dict[str, str] = {}
        for number, c in enumerate(applied):
            where = k_of(c)
            former = [o for o in applied[:number] if o["group"] == c["group"] and k_of(o) == where]
            if c["offset"] is None or c["reset"]:
                continue
            last = former[-1]["offset"] if former else None
            if last is not None and c["offset"] < last:
                seqs = (former[-1]["seq"], c["seq"])
                yield self.found(
                    "commit_regression", "report", "commits", where, c["offset"], c["group"], seqs
                )
            yield from self._unread(c, where, last, unattributed[where[0], c["group"]])
            topics[where[0]] = c["topic"]
        for (topic_id, group), seqs in unattributed.items():
            if seqs:
                yield self.found(
                    "committed_not_read", "undecided", "commits", None, None,
                    f"unattributed:{group}", seqs, topic=topics[topic_id],
                )._replace(topic_id=topic_id)  # fmt: skip

    def _unread(
        self, c: Row, where: Place, last: int | None, unattributed: list[int]
    ) -> Iterator[Finding]:
        """The finding of a commit; `unattributed` takes the evidence of an undecided one."""
        answers = [
            f
            for f in self.t["fetches"]
            if f["error"] is None and k_of(f) == where and f["response_seq"] < c["seq"]
        ]
        own = [f for f in answers if f["group"] == c["group"] and f["member"] == c["member"]]
        possible = [
            f
            for f in answers
            if c["member"] in (f["candidates"] or ()) and f["group"] in (None, c["group"])
        ]
        if c["member"] is None or not (own or possible):
            return
        reach = max(f["next_offset"] for f in own) if own else min(
            f["fetch_offset"] for f in possible
        )  # fmt: skip
        reach = max(reach, last or 0)
        unread = [
            r["offset"]
            for r in self.t["records"]
            if k_of(r) == where
            and reach <= r["offset"] < c["offset"]
            and r["append_seq"] < c["seq"]
            and not self.removed_before(r, c["seq"])
            and not self.diverges(r)
            and not self.aborted(r)
            and not self.reopened(r, c["seq"])
        ]
        at_most = max((f["next_offset"] for f in possible), default=0)
        for_certain = [offset for offset in unread if own and offset >= at_most]
        if for_certain:
            seqs = (min(f["response_seq"] for f in own), c["seq"])
            yield self.found(
                "committed_not_read", "report", "commits", where, min(for_certain), c["group"], seqs
            )
        if len(for_certain) < len(unread):
            unattributed += [min(f["response_seq"] for f in own + possible), c["seq"]]

    def zombie_commit(self) -> Iterator[Finding]:
        for c in self.t["commits"]:
            where = k_of(c)
            if c["error"] in REFUSED_ZOMBIES:
                yield self.found(
                    "zombie_commit", "report", "commits", where, c["offset"], c["group"],
                    [c["seq"]],
                )  # fmt: skip
            if not c["applied"] or c["generation"] is None:
                continue
            rows = [
                g
                for g in self.t["groups"]
                if g["group"] == c["group"] and g["broker"] == c["broker"] and g["seq"] < c["seq"]
            ]
            if not rows:
                continue
            last = max(rows, key=lambda g: g["seq"])
            if last["state"] == "Dead":
                continue
            if last["protocol"] == "classic" and last["generation"] > c["generation"]:
                first = min(g["seq"] for g in rows if g["generation"] > c["generation"])
                yield self.found(
                    "zombie_commit", "bug", "commits", where, c["offset"], c["group"],
                    (first, c["seq"]),
                )  # fmt: skip

    # -- watermarks --------------------------------------------------------------------------------

    def watermarks(self) -> Iterator[Finding]:
        names = ("log_start_offset", "last_stable_offset", "high_watermark", "log_end_offset")
        lines: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for w in sorted(self.t["watermarks"], key=lambda w: w["seq"]):
            where, broker = k_of(w), f"broker:{w['broker']}"
            verdict = "bug" if w["cause"] is None else "report"
            known = [w[name] for name in names if w[name] is not None]
            for one, other in pairwise(known):
                if other < one:
                    yield self.found(
                        "watermark_order", verdict, "wire", where, other, broker, [w["seq"]],
                        rule=w["cause"],
                    )  # fmt: skip
                    break
            if w["high_watermark"] is not None and w["leader_epoch"] is not None:
                lines[where, broker, w["leader_epoch"]].append(w)
        for (where, broker, _), line in lines.items():
            for one, other in pairwise(line):
                if other["high_watermark"] < one["high_watermark"]:
                    yield self.found(
                        "watermark_back", "bug" if other["cause"] is None else "report", "wire",
                        where, other["high_watermark"], broker, (one["seq"], other["seq"]),
                        rule=other["cause"],
                    )  # fmt: skip

    # -- processing --------------------------------------------------------------------------------

    def processing(self) -> Iterator[Finding]:
        times: dict[tuple[str, str, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for op in self.t["operations"]:
            if op["op"] != "processed" or op["topic"] in self.made_anew:
                continue
            if op["group"] is not None and op["offset"] is not None:
                times[op["group"], op["topic"], op["partition"]][op["offset"]] += 1
        for (group, topic, partition), processed in times.items():
            for offset, count in processed.items():
                if count > 1:
                    yield self.found(
                        "processed_again", "report", "application", None, offset, group,
                        topic=topic, partition=partition,
                    )  # fmt: skip
            wheres = [w for w, name in self.names.items() if (name, w[1]) == (topic, partition)]
            for where in wheres:
                yield from self._unprocessed(group, where, processed)

    def _unprocessed(
        self, group: str, where: Place, processed: Mapping[int, int]
    ) -> Iterator[Finding]:
        commits = [
            c
            for c in self.t["commits"]
            if c["applied"] and c["group"] == group and k_of(c) == where and c["offset"] is not None
        ]
        if not commits:
            return
        last = max(commits, key=lambda c: c["seq"])
        asked = [
            f["fetch_offset"] for f in self.t["fetches"] if f["group"] == group and k_of(f) == where
        ]
        start = min(asked) if asked else min(processed)
        for r in self.t["records"]:
            if (
                k_of(r) == where
                and start <= r["offset"] < last["offset"]
                and r["offset"] not in processed
                and not self.aborted(r)
                and not self.diverges(r)
                and not self.removed_before(r, last["seq"])
            ):
                yield self.found(
                    "committed_not_processed", "report", "application", where, r["offset"],
                    group, (r["append_seq"], last["seq"]),
                )  # fmt: skip
