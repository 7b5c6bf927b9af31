"""Anomalies and findings of the audit; definitions: docs/explanation/audit.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

BUG, REPORT, UNDECIDED = "bug", "report", "undecided"
WIRE, COMMITS, APPLICATION = "wire", "commits", "application"

# The subject of an undecidable finding: `without-id:<n>` records of a topic have no id, and the key
# and value of another record.
WITHOUT_ID = "without-id:"
# Likewise: `unattributed:<group>` has commits, and several members that may have read the records.
UNATTRIBUTED = "unattributed:"

# The rule of findings that an expiration of their producer explains: the config.
EXPIRATION = "producer.id.expiration.ms"

# Anomaly -> its meaning, in the report.
ANOMALIES: Mapping[str, str] = {
    "inconsistent_offset": "one offset had two different values",
    "duplicate": "one record is in the log twice",
    "lost_write": "a record was acknowledged and is not in the log",
    "aborted_read": "a record of an aborted transaction was delivered under read_committed",
    "dirty_read": "a record at or above the last stable offset was delivered under read_committed",
    "torn_transaction": "some partitions of a transaction were committed, others were not",
    "skip": "a consumer skipped a record without a seek",
    "non_monotonic_poll": "a consumer got a lower offset without a seek",
    "non_monotonic_send": "records are in another order than a producer sent them",
    "commit_regression": "a committed offset decreased without a reset",
    "committed_not_read": "an offset above the member's deliveries was committed",
    "read_again": "records were delivered to a group again",
    "zombie_write": "a fenced producer wrote",
    "zombie_commit": "a member of an old generation committed",
    "delivered_above_limit": "a share group's member got a record more often than the group allows",
    "delivered_again": "a record that was acknowledged was delivered to its share group again",
    "acquired_twice": "a record was acquired while a member had it",
    "archived_unprocessed": "a share group's record was archived and never processed",
    "passed_over": "the start offset of a share partition passed a record that is not final",
    "watermark_order": "log start <= last stable offset <= high watermark <= log end was broken",
    "watermark_back": "the high watermark decreased within a leader epoch",
    "committed_not_processed": "a record below the committed offset was never processed",
    "processed_again": "a record was processed more than once",
}


class Finding(NamedTuple):
    """One case of an anomaly. Engines agree if their findings are equal except for `details`.

    `first_seq` and `last_seq` bound the evidence in the journal; with a gap between them the
    verdict is `undecided`. `subject` is the group, producer id, transaction, `connection:<n>` or
    process. `rule` is the rule or action that caused it, or the config or promise that allows it
    (`producer.id.expiration.ms`, `acks=1`).
    """

    run: str
    anomaly: str
    verdict: str
    level: str
    topic: str | None
    topic_id: str | None
    partition: int | None
    offset: int | None
    subject: str | None
    first_seq: int | None
    last_seq: int | None
    rule: str | None = None
    details: str | None = None


FINDING_COLUMNS = Finding._fields
