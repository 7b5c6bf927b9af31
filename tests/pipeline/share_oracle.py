"""The rules of share groups by brute force, after docs/explanation/audit.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mockbroker.pipeline.findings import Finding

if TYPE_CHECKING:
    from tests.pipeline.oracle import Judge, Place

Row = Mapping[str, Any]
# The events of one offset for one group, in order.
Lines = dict[tuple["Place", str, int], list[Row]]

WRITTEN = ("accepted", "rejected", "gap")
FINAL = ("Acknowledged", "Archived")


def share_findings(judge: Judge) -> Iterator[Finding]:
    lines = lines_of(judge)
    for (where, group, offset), line in lines.items():
        yield from above_limit(judge, where, group, offset, line)
        yield from again(judge, where, group, offset, line)
        yield from twice(judge, where, group, offset, line)
        yield from unprocessed(judge, where, group, offset, line)
    yield from passed_over(judge, lines)


def lines_of(judge: Judge) -> Lines:
    lines: Lines = defaultdict(list)
    for row in sorted(judge.t["share_records"], key=lambda row: row["seq"]):
        where = row["topic_id"], row["partition"]
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            lines[where, row["group"], offset].append(row)
    return lines


def limits(judge: Judge, where: Place, group: str, until: Row) -> list[int]:
    return [
        row["delivery_limit"]
        for row in judge.t["share_records"]
        if (row["topic_id"], row["partition"]) == where
        and row["group"] == group
        and row["seq"] <= until["seq"]
    ]


def above_limit(
    judge: Judge, where: Place, group: str, offset: int, line: list[Row]
) -> Iterator[Finding]:
    for row in line:
        if row["change"] != "acquired":
            continue
        own = [
            each["seq"]
            for each in line
            if each["change"] == "acquired"
            and each["life"] == row["life"]
            and each["seq"] <= row["seq"]
        ]
        if max(row["delivery_count"], len(own)) > max(limits(judge, where, group, row)):
            causes = [
                each["cause"]
                for each in line
                if is_forced(each)
                and each["share_state"] == row["share_state"]
                and each["seq"] < row["seq"]
            ] + [row["cause"]]
            yield judge.found(
                "delivered_above_limit", "report" if causes[0] else "bug", "wire", where,
                offset, group, own, rule=causes[0],
            )  # fmt: skip


def again(
    judge: Judge, where: Place, group: str, offset: int, line: list[Row]
) -> Iterator[Finding]:
    for number, row in enumerate(line):
        if row["change"] != "acquired":
            continue
        before = [each for each in line[:number] if each["share_state"] == row["share_state"]]
        final = [e for e in before if e["change"] in WRITTEN]
        if not final:
            continue
        last = final[-1]["seq"]
        causes = [e["cause"] for e in [*before, row] if e["seq"] > last and e["cause"]]
        lost = [
            removal
            for removal in judge.t["removals"]
            if removal["topic"] == "__share_group_state"
            and last < removal["seq"] < row["seq"]
            and removal["reason"] not in
            ("retention", "compaction", "delete_records", "topic_deleted")
        ]  # fmt: skip
        if not causes and lost:
            first = min(lost, key=lambda removal: removal["seq"])
            causes = [first["cause"] or first["reason"]]
        yield judge.found(
            "delivered_again", "report" if causes else "bug", "wire", where, offset, group,
            (last, row["seq"]), rule=causes[0] if causes else None,
        )  # fmt: skip


def is_forced(row: Row) -> bool:
    if row["cause"] is None:
        return False
    taken = row["state"] == "Available" and row["change"] not in ("released", "session_ended")
    return taken or row["change"] == "counted"


def twice(
    judge: Judge, where: Place, group: str, offset: int, line: list[Row]
) -> Iterator[Finding]:
    for number, row in enumerate(line):
        if row["change"] != "acquired" or row["life"] is None:
            continue
        before = [each for each in line[:number] if each["life"] == row["life"]]
        causes: list[str | None] = [row["cause"]]
        while before and is_forced(before[-1]):
            causes.insert(0, before.pop()["cause"])
        if before and before[-1]["state"] == "Acquired":
            verdict = "bug" if causes[0] is None else "report"
            yield judge.found(
                "acquired_twice", verdict, "wire", where, offset, group,
                (before[-1]["seq"], row["seq"]), rule=causes[0],
            )  # fmt: skip


def standing(judge: Judge, where: Place, offset: int, seq: int) -> list[Row]:
    """The records at an offset that are not aborted, and in the log when `seq` happened."""
    return [
        r
        for r in judge.t["records"]
        if (r["topic_id"], r["partition"]) == where
        and r["offset"] == offset
        and r["append_seq"] < seq
        and not judge.removed_before(r, seq)
        and not judge.diverges(r)
        and not judge.aborted(r)
    ]


def unprocessed(
    judge: Judge, where: Place, group: str, offset: int, line: list[Row]
) -> Iterator[Finding]:
    if any(row["state"] == "Acknowledged" or row["reason"] == "rejected" for row in line):
        return
    archived = [r for r in line if r["state"] == "Archived" and r["change"] != "writing"]
    for row in archived[:1]:
        promised = row["reason"] == "gap" or (
            row["reason"] == "delivery_limit"
            and row["delivery_count"] >= min(limits(judge, where, group, row))
        )
        verdict = "report" if promised or row["cause"] else "bug"
        for record in standing(judge, where, offset, row["seq"]):
            yield judge.found(
                "archived_unprocessed", verdict, "wire", where, offset, group,
                (record["append_seq"], row["seq"]), rule=row["cause"],
            )  # fmt: skip


def passed_over(judge: Judge, lines: Lines) -> Iterator[Finding]:
    starts = sorted(judge.t["share_starts"], key=lambda row: row["seq"])
    for number, row in enumerate(starts):
        where = row["topic_id"], row["partition"]
        line = ("topic_id", "partition", "group", "share_state")
        known = [
            each["offset"]
            for each in starts[:number]
            if all(each[name] == row[name] for name in line) and each["offset"] is not None
        ]
        if row["change"] == "moved":
            first = row["former_offset"]
        elif row["change"] == "loaded" and known:
            first = max(known)
        else:
            continue
        offsets = {
            r["offset"] for r in judge.t["records"] if (r["topic_id"], r["partition"]) == where
        }
        for offset in sorted(each for each in offsets if first <= each < row["offset"]):
            is_final = any(
                each["state"] in FINAL
                and each["share_state"] == row["share_state"]
                and each["seq"] < row["seq"]
                for each in lines.get((where, row["group"], offset), ())
            )
            for record in () if is_final else standing(judge, where, offset, row["seq"]):
                yield judge.found(
                    "passed_over", "report" if row["cause"] else "bug", "wire", where, offset,
                    row["group"], (record["append_seq"], row["seq"]), rule=row["cause"],
                )  # fmt: skip
