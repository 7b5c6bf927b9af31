"""The journal around a finding: the events of its partition, group or producer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mockbroker.pipeline.duck.session import DuckSession
from mockbroker.pipeline.findings import EXPIRATION, Finding
from mockbroker.pipeline.report.model import Case, EvidenceEntry
from mockbroker.pipeline.report.words import offsets, printable, several

# The maximum number of entries around a finding, of each table and in all.
OF_TABLE_MAX = 8
TIMELINE_MAX = 24
TEXT_MAX = 500
# The range before and behind the evidence, in entries.
MARGIN = 200

Row = Mapping[str, Any]


class Source(NamedTuple):
    """A table for timelines.

    `at` is its seq. `mine` is SQL: whether a row `t` concerns the finding `c`; `covers`: whether
    the row includes the finding's offset.
    """

    table: str
    at: str
    mine: str
    covers: str
    text: Callable[[Row], str]


_PLACE = 't.topic_id = c.topic_id AND t."partition" = c."partition"'
_RANGE = 'c."offset" BETWEEN t.{} AND t.{}'


def _batch(row: Row) -> str:
    whose = f"client {_shown(row['client_id'])}"
    if row["producer_id"] is not None:
        whose += (
            f", producer {row['producer_id']} epoch {row['producer_epoch']}"
            f" sequence {row['base_sequence']}"
        )
    span = offsets(row["base_offset"], row["last_offset"])
    if row["append_seq"] is None:
        did = f"refused: {row['error']}" if row["error"] else f"not appended again, {span}"
    else:
        did = f"appended, {span}"
    said = "acknowledged" if row["acknowledged"] else "not acknowledged"
    within = f" in transaction {_shown(row['transaction'])}" if row["transaction"] else ""
    return f"{did} ({whose}){within}, {said}{_rules_of(row)}"


def _fetch(row: Row) -> str:
    who = f"connection {row['connection']}"
    if row["group"] is not None:
        who += f", group {_shown(row['group'])}"
    if row["error"] is not None:
        return f"asked from {row['fetch_offset']}: {row['error']} ({who})"
    committed = ", read_committed" if row["isolation_level"] == 1 else ""
    return (
        f"{several(row['delivered'], 'record')} from {row['fetch_offset']} "
        f"up to {row['next_offset']} "
        f"({who}{committed}; last stable offset {row['last_stable_offset']}, "
        f"high watermark {row['high_watermark']}){_rules_of(row)}"
    )


def _commit(row: Row) -> str:
    who = f"group {_shown(row['group'])}"
    if row["member"] is not None:
        who += f", member {_shown(row['member'])}, generation {row['generation']}"
    what = "removed" if row["offset"] is None else f"offset {row['offset']}"
    how = f"refused: {row['error']}" if row["error"] else ""
    return ", ".join(filter(None, (what, how, "reset" if row["reset"] else ""))) + f" ({who})"


def _removal(row: Row) -> str:
    cause = f", because of {_shown(row['cause'])}" if row["cause"] else ""
    span = offsets(row["first_offset"], row["last_offset"])
    return f"{span} removed: {row['reason']}{cause}"


def _marker(row: Row) -> str:
    what = "commit" if row["committed"] else "abort"
    return f"{what} marker of {_shown(row['transaction'])} at offset {row['offset']}"


def _expiration(row: Row) -> str:
    return f"broker {row['broker']} forgot producer {row['producer_id']} ({EXPIRATION})"


def _watermark(row: Row) -> str:
    names = ("log_start_offset", "last_stable_offset", "high_watermark", "log_end_offset")
    offsets = ", ".join(
        f"{name.replace('_', ' ')} {row[name]}" for name in names if row[name] is not None
    )
    cause = f", because of {_shown(row['cause'])}" if row["cause"] else ""
    return f"broker {row['broker']}, leader epoch {row['leader_epoch']}: {offsets}{cause}"


def _change(row: Row) -> str:
    words = [str(row["change"])]
    if row["broker"] is not None:
        words.append(f"broker {row['broker']}")
    if row["leader"] is not None:
        words.append(f"leader {row['leader']}, epoch {row['leader_epoch']}")
    if row["unclean"]:
        words.append("unclean")
    words += [_shown(row[name]) for name in ("reason", "details") if row[name]]
    return ", ".join(words)


def _fault(row: Row) -> str:
    by = ", ".join(_shown(rule) for rule in row["rules"] or ()) or "by hand"
    words = [f"{row['kind']} {_shown(row['change'])}", by]
    words += [_shown(row[name]) for name in ("api", "client_id", "outcome", "details") if row[name]]
    return ", ".join(words)


def _group(row: Row) -> str:
    why = f": {_shown(row['reason'])}" if row["reason"] else ""
    return (
        f"group {_shown(row['group'])} from {row['former']} to {row['state']}, "
        f"generation {row['generation']}, {several(row['members'], 'member')}{why}"
    )


def _transaction(row: Row) -> str:
    who = f"producer {row['producer_id']} epoch {row['producer_epoch']}"
    name = f"{_shown(row['transactional_id'])}: " if row["transactional_id"] else ""
    which = f" ({_shown(row['transaction'])})" if row["transaction"] else ""
    return f"{name}{row['former'] or 'nothing'} to {row['state']}, {who}{which}"


def _gap(row: Row) -> str:
    return f"entries {row['first_seq']} to {row['last_seq']} are missing: {_shown(row['reason'])}"


def _rules_of(row: Row) -> str:
    """The rules that changed a row's request or answer."""
    return f"; changed by {', '.join(map(_shown, row['rules']))}" if row["rules"] else ""


def _shown(value: object) -> str:
    return printable(value, 120)


_SAME_PARTITION = 'coalesce(t."partition" = c."partition", TRUE)'
_SAME_TOPIC = "t.change = 'TopicsChanged' AND t.topic_id = c.topic_id"
# Requests that a rule changed: those of the evidence, and all of the causing rule.
_HIT_OF_IT = (
    "(t.kind <> 'fault' OR coalesce(list_contains(t.rules, c.rule), FALSE)"
    " OR t.seq BETWEEN c.first_seq - 5 AND c.last_seq + 1)"
)
_BY_OFFSET = f"{_PLACE} AND coalesce({_RANGE.format('base_offset', 'last_offset')}, FALSE)"
SOURCES: tuple[Source, ...] = (
    Source(
        "batches", "coalesce(t.append_seq, t.seq)",
        f"({_PLACE}) OR 'producer:' || t.producer_id = c.subject OR t.transaction = c.subject",
        _BY_OFFSET, _batch,
    ),
    Source(
        "fetches", "t.response_seq", _PLACE,
        f'{_PLACE} AND c."offset" >= t.fetch_offset AND c."offset" < t.next_offset', _fetch,
    ),
    Source("commits", "t.seq", _PLACE, 't."group" = c.subject', _commit),
    Source("removals", "t.seq", _PLACE, _RANGE.format("first_offset", "last_offset"), _removal),
    Source(
        "markers", "t.seq", f"({_PLACE}) OR t.transaction = c.subject", "FALSE", _marker,
    ),
    Source(
        "expirations", "t.seq", f"({_PLACE}) AND c.anomaly IN ('duplicate', 'non_monotonic_send')",
        f"c.rule = '{EXPIRATION}'", _expiration,
    ),
    Source("watermarks", "t.seq", f"{_PLACE} AND c.anomaly LIKE 'watermark%'", "FALSE", _watermark),
    Source(
        "cluster", "t.seq",
        f"({_PLACE}) OR ({_SAME_TOPIC}) OR t.topic_id IS NULL", "t.topic_id IS NOT NULL",
        _change,
    ),
    Source(
        "faults", "t.seq",
        f"coalesce(t.topic = c.topic, TRUE) AND {_SAME_PARTITION} AND {_HIT_OF_IT}",
        "list_contains(t.rules, c.rule)", _fault,
    ),
    Source("groups", "t.seq", 't."group" = c.subject', "FALSE", _group),
    Source(
        "transactions", "t.seq",
        "'producer:' || t.producer_id = c.subject OR t.transaction = c.subject", "FALSE",
        _transaction,
    ),
    Source("gaps", "t.first_seq", "TRUE", "TRUE", _gap),
)  # fmt: skip

_NEAR = """
SELECT * EXCLUDE (place_in_line) FROM (
    SELECT t.*, c.n, {at} AS at_seq, coalesce({covers}, FALSE) AS covers,
           {at} IN (c.first_seq, c.last_seq) AS proof,
           count(*) OVER (PARTITION BY c.n) AS of_all,
           row_number() OVER (
             PARTITION BY c.n
             ORDER BY {at} IN (c.first_seq, c.last_seq) DESC, coalesce({covers}, FALSE) DESC,
                      least(abs({at} - c.first_seq), abs({at} - c.last_seq)), {at}
           ) AS place_in_line
    FROM {table} AS t JOIN cases AS c
      ON t.run = c.run AND {at} BETWEEN c.first_seq - {margin} AND c.last_seq + {margin}
     AND ({mine})
)
WHERE place_in_line <= {most}
"""


def cases(session: DuckSession, findings: Sequence[Finding]) -> list[Case]:
    """A case for each of these findings, with its facts from the session's tables."""
    if not findings:
        return []
    _load_findings(session, findings)
    near: list[list[tuple[int, int, EvidenceEntry]]] = [[] for _ in findings]
    there_are: Counter[int] = Counter()
    for source in SOURCES:
        of_source: dict[int, int] = {}
        query = _NEAR.format(**source._asdict(), margin=MARGIN, most=OF_TABLE_MAX)
        for row in session.rows(query):
            entry = EvidenceEntry(
                row["at_seq"],
                row.get("virtual_ms"),
                source.table,
                printable(source.text(row), TEXT_MAX),
                row["proof"],
            )
            rank = 0 if row["proof"] else 1 if row["covers"] else 2
            near[row["n"]].append((rank, _distance(findings[row["n"]], entry.seq), entry))
            of_source[row["n"]] = row["of_all"]
        there_are.update(of_source)
    facts = _facts(session)
    session.connection.execute("DROP TABLE cases")
    return [
        _case(finding, near[n], there_are[n], facts.get(n, []))
        for n, finding in enumerate(findings)
    ]


def _case(
    finding: Finding,
    near: list[tuple[int, int, EvidenceEntry]],
    there_are: int,
    facts: list[tuple[str, str]],
) -> Case:
    nearest = sorted(near, key=lambda entry: (entry[0], entry[1], entry[2].seq))[:TIMELINE_MAX]
    timeline = sorted((entry for _, _, entry in nearest), key=lambda entry: entry.seq)
    return Case(finding, facts, timeline, there_are - len(timeline))


def _record(row: Row) -> str:
    name = f"id {_shown(row['id'])}, " if row["id"] is not None else ""
    return f"{name}appended by entry {row['append_seq']}, value hash {row['value_hash']}"


def _distance(finding: Finding, seq: int) -> int:
    ends = (finding.first_seq or 0, finding.last_seq or 0)
    return min(abs(seq - end) for end in ends)


def _facts(session: DuckSession) -> dict[int, list[tuple[str, str]]]:
    """The records at the offsets of the findings, and the applications' operations on them."""
    found: dict[int, list[tuple[str, str]]] = {}
    for row in session.rows(
        "SELECT DISTINCT c.n, r.id, r.append_seq, r.value_hash FROM records AS r JOIN cases AS c "
        'USING (run, topic_id, "partition", "offset") ORDER BY c.n, r.append_seq'
    ):
        found.setdefault(row["n"], []).append(("record", _record(row)))
    for row in session.rows(
        "SELECT c.n, o.process, o.op, o.seq, o.id FROM operations AS o JOIN cases AS c "
        'USING (run, topic, "partition", "offset") ORDER BY c.n, o.process, o.seq LIMIT 1000'
    ):
        named = f", id {_shown(row['id'])}" if row["id"] is not None else ""
        said = f"{_shown(row['process'])}: {row['op']}, its operation {row['seq']}{named}"
        found.setdefault(row["n"], []).append(("application", printable(said)))
    return found


def _load_findings(session: DuckSession, findings: Sequence[Finding]) -> None:
    session.connection.execute(
        "CREATE OR REPLACE TEMP TABLE cases (n INTEGER, run VARCHAR, anomaly VARCHAR, "
        'topic VARCHAR, topic_id VARCHAR, "partition" INTEGER, "offset" BIGINT, subject VARCHAR, '
        "first_seq BIGINT, last_seq BIGINT, rule VARCHAR)"
    )
    session.connection.executemany(
        "INSERT INTO cases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                n, f.run, f.anomaly, f.topic, f.topic_id, f.partition, f.offset, f.subject,
                f.first_seq, f.last_seq, f.rule,
            )
            for n, f in enumerate(findings)
        ],
    )  # fmt: skip
