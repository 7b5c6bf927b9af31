"""Findings as sentences, and names of clients made safe to print."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

from mockbroker.pipeline.findings import ANOMALIES, UNATTRIBUTED, WITHOUT_ID, Finding

_SHOWN_MAX = 200


def printable(value: object, most: int = _SHOWN_MAX) -> str:
    """A text without characters that move cursors, change the writing direction or end an XML
    document. These are shown by their code. A text longer than `most` is cut.
    """
    text = "".join(char if _is_printable(char) else f"\\u{ord(char):04x}" for char in str(value))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _is_printable(char: str) -> bool:
    # Cc control, Cf format (among them bidirectional overrides), Cs surrogates, Co private, Cn none
    return unicodedata.category(char)[0] != "C" and char not in "\u2028\u2029"


def place(finding: Finding) -> str:
    """`topic-partition @offset`, without the parts that the finding lacks."""
    words = []
    if finding.topic is not None:
        number = "" if finding.partition is None else f"-{finding.partition}"
        words.append(f"{printable(finding.topic)}{number}")
    if finding.offset is not None:
        words.append(f"offset {finding.offset}")
    return " ".join(words)


def evidence(finding: Finding) -> str:
    """The place of the proof in the journal."""
    if finding.first_seq is None or finding.last_seq is None:
        return "the application's own record"
    if finding.first_seq == finding.last_seq:
        return f"entry {finding.first_seq}"
    return f"entries {finding.first_seq} to {finding.last_seq}"


def sentence(finding: Finding) -> str:
    """A finding in one line."""
    where = place(finding)
    if (finding.subject or "").startswith(WITHOUT_ID):
        return f"{where}: {records_without_id(finding)}; {evidence(finding)}"
    if (finding.subject or "").startswith(UNATTRIBUTED):
        return f"{where}: {commits_unattributed(finding)}; {evidence(finding)}"
    parts = [ANOMALIES.get(finding.anomaly, finding.anomaly)]
    if finding.subject is not None:
        parts.append(printable(finding.subject))
    parts.append(evidence(finding))
    if finding.rule is not None:
        parts.append(f"because of {printable(finding.rule)}")
    return f"{where}: {'; '.join(parts)}" if where else "; ".join(parts)


def records_without_id(finding: Finding) -> str:
    """`500 records without an id have the key and value of another`."""
    count = int((finding.subject or "").removeprefix(WITHOUT_ID))
    have = "has" if count == 1 else "have"
    return f"{several(count, 'record')} without an id {have} the key and value of another"


def commits_unattributed(finding: Finding) -> str:
    """`consumers with the client id of group g may have read what it committed`."""
    group = printable((finding.subject or "").removeprefix(UNATTRIBUTED))
    return f"consumers that share a client id may have read what group {group} committed"


def at(virtual_ms: int | None) -> str:
    """A time of the cluster's clock, as hours to milliseconds."""
    if virtual_ms is None or virtual_ms < 0:
        return ""
    try:
        return datetime.fromtimestamp(virtual_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):
        return str(virtual_ms)


def day(virtual_ms: int) -> str:
    """A time of the cluster's clock, to the second."""
    if virtual_ms < 0:
        return "unknown"
    try:
        return datetime.fromtimestamp(virtual_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(virtual_ms)


def offsets(first: int, last: int) -> str:
    """`offset 5`, `offsets 5 to 7`."""
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


def several(count: int, one: str, more: str | None = None) -> str:
    """`1 bug`, `2 bugs`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
