"""Events: one flat struct for readers of the journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias, get_type_hints

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


# Events of entries with bytes of the wire, which have to be decoded; `deliver` is of an answer.
WIRE_KINDS = frozenset({"request", "response", "hop", "hop_answer", "append", "deliver"})


def _means(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class JournalEvent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One event.

    Fields that do not apply hold None or are empty, and are left out of JSON. The events of one
    answer share its `seq` and differ in `part`.
    """

    seq: Annotated[int, _means("number of the journal's entry, from 1")]
    part: Annotated[
        int, _means("number of the event among those of one answer; 0 for the answer itself")
    ] = 0
    kind: Annotated[str, _means("one of the kinds above")]
    virtual_ms: Annotated[int, _means("the cluster's clock, ms since the epoch")]
    real_ns: Annotated[int, _means("real time, ns since the epoch")]
    broker: Annotated[int | None, _means("node id")] = None
    from_broker: Annotated[int | None, _means("node id of the sender of a hop")] = None
    to_broker: Annotated[int | None, _means("node id of the receiver of a hop")] = None
    listener: Annotated[str | None, _means("name of the listener")] = None
    connection: Annotated[int | None, _means("number of the connection")] = None
    source: Annotated[str | None, _means("`host:port` of the client")] = None
    client_id: Annotated[str | None, _means("`client.id`")] = None
    client_software: Annotated[
        str | None, _means("name and version from ApiVersions (KIP-511)")
    ] = None
    principal: Annotated[str | None, _means("the authenticated principal")] = None
    api: Annotated[str | None, _means("name of the API")] = None
    api_version: Annotated[int | None, _means("version of the request")] = None
    correlation_id: Annotated[int | None, _means("correlation id of the request")] = None
    request_seq: Annotated[
        int | None,
        _means("`seq` of the request that an answer, append, delivery or commit belongs to"),
    ] = None
    cause_seq: Annotated[
        int | None,
        _means("`seq` of the request whose handling led to the event, or completed a parked one"),
    ] = None
    elapsed_ns: Annotated[int | None, _means("real time between request and answer, ns")] = None
    topic: Annotated[str | None, _means("topic")] = None
    partition: Annotated[int | None, _means("partition")] = None
    targets: Annotated[
        tuple[tuple[str, int], ...],
        _means("pairs of topic and partition that the message or fact is about"),
    ] = ()
    first_offset: Annotated[int | None, _means("first offset of the records")] = None
    last_offset: Annotated[int | None, _means("last offset of the records")] = None
    offset: Annotated[
        int | None, _means("the committed offset, the high watermark, or the offset of a marker")
    ] = None
    records: Annotated[int | None, _means("number of records")] = None
    bytes: Annotated[int | None, _means("size of the frame or batch")] = None
    group: Annotated[Texts, _means("group id")] = None
    member: Annotated[Texts, _means("member id")] = None
    instance_id: Annotated[Texts, _means("`group.instance.id`")] = None
    generation: Annotated[
        Numbers, _means("generation, or the group epoch of a consumer group (KIP-848)")
    ] = None
    transactional_id: Annotated[Texts, _means("`transactional.id`")] = None
    producer_id: Annotated[Numbers, _means("producer id")] = None
    producer_epoch: Annotated[Numbers, _means("producer epoch")] = None
    base_sequence: Annotated[int | None, _means("sequence number of a batch's first record")] = None
    acks: Annotated[int | None, _means("`acks` of a Produce: 0, 1 or -1")] = None
    isolation_level: Annotated[
        int | None, _means("0 for read_uncommitted, 1 for read_committed")
    ] = None
    transactional: Annotated[bool | None, _means("whether the batch belongs to a transaction")] = (
        None
    )
    state: Annotated[str | None, _means("the new state")] = None
    former: Annotated[str | None, _means("the state before")] = None
    change: Annotated[str | None, _means("what changed, where a kind has several changes")] = None
    reason: Annotated[str | None, _means("why it happened")] = None
    errors: Annotated[tuple[str, ...], _means("names of all error codes in an answer")] = ()
    outcome: Annotated[
        str | None, _means("why an answer was not sent whole; empty when it was")
    ] = None
    rules: Annotated[tuple[str, ...], _means("names of the fault rules that touched it")] = ()
    first_seq: Annotated[int | None, _means("first lost entry of a gap")] = None
    last_seq: Annotated[int | None, _means("last lost entry of a gap")] = None
    message: Annotated[
        Mapping[str, object], _means("the decoded message, or further fields of a fact")
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
    if event.kind == "configs" and event.message:
        words.extend(_changed_configs(event.message))
    words.extend(f"{n}={','.join(v)}" for n in ("errors", "rules") if (v := getattr(event, n)))
    words.extend(f"{n}={v}" for n in ("change", "outcome") if (v := getattr(event, n)))
    return " ".join(words)


def _changed_configs(message: Mapping[str, Any]) -> Iterator[str]:
    """The resource of a `ConfigsChanged`, unless a field has it, and the new values."""
    if message["resource_type"] in ("broker", "client_metrics"):
        yield f"{message['resource_type']}={message['resource_name'] or 'all'}"
    for each in message["configs"]:
        yield f"{each['name']}={'default' if each['value'] is None else each['value']}"


def field_meanings() -> dict[str, str]:
    """The fields of an event and their meanings."""
    kinds = get_type_hints(JournalEvent, include_extras=True)
    return {name: kind.__metadata__[0].description for name, kind in kinds.items()}
