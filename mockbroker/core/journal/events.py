"""What a reader of the journal gets: one flat struct for everything that can happen."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

KINDS: Mapping[str, str] = {
    "connection": "a client connected, or its connection ended",
    "request": "a client's request, as it came",
    "response": "the answer to a request, or what there was instead",
    "append": "a client's batch was appended to the log of its leader; retries are not, again",
    "deliver": "records that an answer brought to a consumer",
    "commit": "an offset that a group committed",
    "follower": "a follower asked its leader for records (only where followers lag)",
    "watermark": "a high watermark moved, or a log was cut",
    "remove": "records left the log of a partition",
    "marker": "a marker that ends a transaction was written into a partition",
    "topic": "a topic was created or deleted",
    "group": "a group went from one state to another",
    "transaction": "a transactional id went from one state to another",
    "election": "a leader, an ISR, the replicas or the controller changed",
    "topics": "topics were created or deleted",
    "partition": "partitions of a topic went from one state to another",
    "replica": "replicas that a broker has of a topic went from one state to another",
    "broker": "a step in a broker's life, its disks or its network",
    "fault": "a rule did something",
    "action": "somebody did something to the cluster",
    "clock": "the cluster's clock was steered",
    "gap": "entries from `first_seq` to `last_seq` were forgotten before they were read",
}


class JournalEvent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One event. Fields that do not apply hold None or nothing, and are left out of JSON.

    `seq` counts entries from 1; the events that one answer holds share its number and are told
    apart by `part`. `virtual_ms` is the cluster's clock (ms since the epoch), `real_ns` real time
    (ns since the epoch). `request_seq` leads from an answer and its events to the request, and
    `elapsed_ns` is the real time between them. `first_offset` and `last_offset` bound the records
    of an `append` or `deliver`; `offset` is what was committed, or where a watermark stands.
    `errors` holds the names of all error codes in an answer. `rules` are the fault rules that
    touched it.
    """

    seq: int
    part: int = 0
    kind: str
    virtual_ms: int
    real_ns: int
    broker: int | None = None
    listener: str | None = None
    connection: int | None = None
    source: str | None = None
    client_id: str | None = None
    client_software: str | None = None
    principal: str | None = None
    api: str | None = None
    api_version: int | None = None
    correlation_id: int | None = None
    request_seq: int | None = None
    elapsed_ns: int | None = None
    topic: str | None = None
    partition: int | None = None
    targets: tuple[tuple[str, int], ...] = ()
    first_offset: int | None = None
    last_offset: int | None = None
    offset: int | None = None
    records: int | None = None
    bytes: int | None = None
    group: str | None = None
    member: str | None = None
    instance_id: str | None = None
    generation: int | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    acks: int | None = None
    isolation_level: int | None = None
    transactional: bool | None = None
    state: str | None = None
    former: str | None = None
    change: str | None = None
    reason: str | None = None
    errors: tuple[str, ...] = ()
    outcome: str | None = None
    rules: tuple[str, ...] = ()
    first_seq: int | None = None
    last_seq: int | None = None
    message: Mapping[str, object] = {}
