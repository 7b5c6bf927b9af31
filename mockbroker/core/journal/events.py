"""Events: one flat struct for readers of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias, get_type_hints

import msgspec

from mockbroker.core import events as cluster_events

# One value, or several that a request names.
Texts: TypeAlias = str | tuple[str, ...] | None
Numbers: TypeAlias = int | tuple[int, ...] | None

KINDS: Mapping[str, str] = {
    "connection": "a client connected or disconnected",
    "request": "a client sent a request",
    "response": "a request was answered; `outcome` says why an answer was not sent whole",
    "hop": "a broker sent a request to another broker (written while hops are journalled)",
    "hop_answer": "such a request was answered; `outcome` as for a response",
    "append": "a client's batch was appended to the leader's log; a duplicate is not",
    "deliver": "an answer brought records to a consumer",
    **cluster_events.KINDS,
    "fault": "a rule fired",
    "action": "an action was carried out",
    "clock": "the cluster's clock was frozen, moved or given another rate",
    "gap": "entries from `first_seq` to `last_seq` left the journal before they were read",
}


def _is(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class JournalEvent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One event.

    Fields that do not apply hold None or are empty, and are left out of JSON. The events of one
    answer share its `seq` and differ in `part`.
    """

    seq: Annotated[int, _is("number of the journal's entry, from 1")]
    part: Annotated[
        int, _is("number of the event among those of one answer; 0 for the answer itself")
    ] = 0
    kind: Annotated[str, _is("one of the kinds above")]
    virtual_ms: Annotated[int, _is("the cluster's clock, ms since the epoch")]
    real_ns: Annotated[int, _is("real time, ns since the epoch")]
    broker: Annotated[int | None, _is("node id")] = None
    from_broker: Annotated[int | None, _is("node id of the sender of a hop")] = None
    to_broker: Annotated[int | None, _is("node id of the receiver of a hop")] = None
    listener: Annotated[str | None, _is("name of the listener")] = None
    connection: Annotated[int | None, _is("number of the connection")] = None
    source: Annotated[str | None, _is("`host:port` of the client")] = None
    client_id: Annotated[str | None, _is("`client.id`")] = None
    client_software: Annotated[str | None, _is("name and version from ApiVersions (KIP-511)")] = (
        None
    )
    principal: Annotated[str | None, _is("the authenticated principal")] = None
    api: Annotated[str | None, _is("name of the API")] = None
    api_version: Annotated[int | None, _is("version of the request")] = None
    correlation_id: Annotated[int | None, _is("correlation id of the request")] = None
    request_seq: Annotated[
        int | None,
        _is("`seq` of the request that an answer, append, delivery or commit belongs to"),
    ] = None
    elapsed_ns: Annotated[int | None, _is("real time between request and answer, ns")] = None
    topic: Annotated[str | None, _is("topic")] = None
    partition: Annotated[int | None, _is("partition")] = None
    targets: Annotated[
        tuple[tuple[str, int], ...],
        _is("pairs of topic and partition that the message or fact is about"),
    ] = ()
    first_offset: Annotated[int | None, _is("first offset of the records")] = None
    last_offset: Annotated[int | None, _is("last offset of the records")] = None
    offset: Annotated[
        int | None, _is("the committed offset, the high watermark, or the offset of a marker")
    ] = None
    records: Annotated[int | None, _is("number of records")] = None
    bytes: Annotated[int | None, _is("size of the frame or batch")] = None
    group: Annotated[Texts, _is("group id")] = None
    member: Annotated[Texts, _is("member id")] = None
    instance_id: Annotated[Texts, _is("`group.instance.id`")] = None
    generation: Annotated[
        Numbers, _is("generation, or the group epoch of a consumer group (KIP-848)")
    ] = None
    transactional_id: Annotated[Texts, _is("`transactional.id`")] = None
    producer_id: Annotated[Numbers, _is("producer id")] = None
    producer_epoch: Annotated[Numbers, _is("producer epoch")] = None
    base_sequence: Annotated[int | None, _is("sequence number of a batch's first record")] = None
    acks: Annotated[int | None, _is("`acks` of a Produce: 0, 1 or -1")] = None
    isolation_level: Annotated[int | None, _is("0 for read_uncommitted, 1 for read_committed")] = (
        None
    )
    transactional: Annotated[bool | None, _is("whether the batch belongs to a transaction")] = None
    state: Annotated[str | None, _is("the new state")] = None
    former: Annotated[str | None, _is("the state before")] = None
    change: Annotated[str | None, _is("what changed, where a kind has several changes")] = None
    reason: Annotated[str | None, _is("why it happened")] = None
    errors: Annotated[tuple[str, ...], _is("names of all error codes in an answer")] = ()
    outcome: Annotated[str | None, _is("why an answer was not sent whole; empty when it was")] = (
        None
    )
    rules: Annotated[tuple[str, ...], _is("names of the fault rules that touched it")] = ()
    first_seq: Annotated[int | None, _is("first lost entry of a gap")] = None
    last_seq: Annotated[int | None, _is("last lost entry of a gap")] = None
    message: Annotated[
        Mapping[str, object], _is("the decoded message, or further fields of a fact")
    ] = {}

    def __repr__(self) -> str:
        return f"<{one_line(self)}>"


# The fields of an event that its line shows by name.
_NAMED = (
    "api",
    "from_broker",
    "to_broker",
    "client_id",
    "topic",
    "partition",
    "group",
    "transactional_id",
    "state",
)


def one_line(event: JournalEvent) -> str:
    """An event in one line: its number, its kind and its main fields."""
    words = [f"#{event.seq}", event.kind]
    for name in _NAMED:
        value = getattr(event, name)
        if value is not None:
            shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
            words.append(str(shown) if name == "api" else f"{name}={shown}")
    if event.topic is None and event.targets:
        words.append(",".join(f"{topic}-{partition}" for topic, partition in event.targets[:3]))
    if event.first_offset is not None:
        words.append(f"offsets={event.first_offset}-{event.last_offset}")
    elif event.offset is not None:
        words.append(f"offset={event.offset}")
    words.extend(f"{n}={','.join(v)}" for n in ("errors", "rules") if (v := getattr(event, n)))
    words.extend(f"{n}={v}" for n in ("change", "outcome") if (v := getattr(event, n)))
    return " ".join(words)


def field_meanings() -> dict[str, str]:
    """The fields of an event and their meanings."""
    kinds = get_type_hints(JournalEvent, include_extras=True)
    return {name: kind.__metadata__[0].description for name, kind in kinds.items()}
