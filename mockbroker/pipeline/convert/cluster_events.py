"""Events of brokers, leaders and logs; faults and actions; removed records."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from mockbroker.core.events import (
    LOG_DIR_FAILED,
    LOSSES,
    TRUNCATION,
    UNCLEAN_ELECTION,
    BrokerChanged,
    ChangedTopic,
    ConfigsChanged,
    Event,
    IsrChanged,
    LogTruncated,
    RecordsRemoved,
    TopicsChanged,
)
from mockbroker.core.journal.entries import AppendEntry, EventEntry, FactEntry
from mockbroker.core.journal.reader import ranges_of
from mockbroker.pipeline.convert.cluster_state import RunState, times
from mockbroker.pipeline.convert.rows import Rows

# Fields of events -> columns; the rest are details.
_COLUMNS = {
    "topic": "topic",
    "topic_id": "topic_id",
    "partition": "partition",
    "node_id": "broker",
    "leader_id": "leader",
    "leader_epoch": "leader_epoch",
    "former_leader_id": "former_leader",
    "unclean": "unclean",
    "reason": "reason",
}
# The causes of losses without another cause: a config allows the first one.
_CAUSES = {UNCLEAN_ELECTION: UNCLEAN_ELECTION, LOG_DIR_FAILED: "fail_log_dir"}
_FAULT_COLUMNS = ("request_seq", "api", "client_id", "broker", "topic", "partition", "group")


class ClusterEvents:
    """Makes `cluster`, `faults` and `removals`."""

    def __init__(self, rows: Rows, cluster: RunState) -> None:
        self._rows = rows
        self._cluster = cluster
        # The log ends of leaders, and the first and last offsets that deposed leaders wrote: by
        # topic, partition and broker.
        self._ends: dict[tuple[str, int], int] = {}
        self._deposed_appends: dict[tuple[str, int, int], tuple[int, int]] = {}

    def event(self, entry: EventEntry, event: Event) -> None:
        """Add an event of the cluster."""
        row: dict[str, object] = {**times(entry), "change": type(event).__name__}
        details: dict[str, object] = {}
        for name in event.__struct_fields__:
            value = getattr(event, name)
            if name in _COLUMNS:
                row[_COLUMNS[name]] = value
            elif name == "isr":
                row["isr"] = _nodes(value)
            elif name == "former" and isinstance(event, IsrChanged):
                row["former_isr"] = _nodes(value)
            elif name == "replicas":
                row["replicas"] = _nodes(value)
            elif name != "at_ms":
                details[name] = value
        if isinstance(event, BrokerChanged):
            row["change"] = details.pop("change")
        if "topic" in row and "topic_id" not in row:
            row["topic_id"] = self._cluster.topics.get(str(row["topic"]))
        row["details"] = _json(details)
        self._rows.add("cluster", row)

    def topics(self, entry: EventEntry, event: TopicsChanged) -> None:
        """Topics were created or deleted: a row for each."""
        for topic in event.deleted:
            self._forget(topic.topic)
        for change, topics in (("deleted", event.deleted), ("created", event.created)):
            for topic in topics:
                self._rows.add(
                    "cluster",
                    {
                        **times(entry),
                        "change": type(event).__name__,
                        "topic": topic.topic,
                        "topic_id": topic.topic_id,
                        "details": _json(_topic_details(change, topic)),
                    },
                )

    def _forget(self, topic: str) -> None:
        """A topic is deleted: the logs of another one of this name begin anew."""
        self._ends = {key: end for key, end in self._ends.items() if key[0] != topic}
        self._deposed_appends = {
            key: offsets for key, offsets in self._deposed_appends.items() if key[0] != topic
        }

    def configs(self, entry: EventEntry, event: ConfigsChanged) -> None:
        """Configs of a resource were set or deleted: a row for each."""
        place: dict[str, object] = {}
        if event.resource_type == "topic":
            topic = event.resource_name
            place = {"topic": topic, "topic_id": self._cluster.topics.get(topic)}
        elif event.resource_type == "broker" and event.resource_name:
            place = {"broker": int(event.resource_name)}
        resource = {"resource_type": event.resource_type, "resource_name": event.resource_name}
        for config in event.configs:
            details = {**resource, **msgspec.structs.asdict(config)}
            row = {**times(entry), "change": type(event).__name__, **place}
            self._rows.add("cluster", {**row, "details": _json(details)})

    def fault(self, entry: FactEntry) -> None:
        """Add a fired rule, an action, or a change of the clock."""
        facts = dict(entry.facts)
        row: dict[str, object] = {
            **times(entry),
            "kind": entry.kind,
            "change": facts.pop("change", None),
            "rules": facts.pop("rules", ()),
            "outcome": facts.pop("outcome", None),
        }
        arguments = facts.get("arguments")
        for name in _FAULT_COLUMNS:
            if name in facts:
                row[name] = facts.pop(name)
            elif isinstance(arguments, dict) and arguments.get(name) is not None:
                row[name] = arguments[name]
        for name, kind in (("topic", str), ("group", str), ("partition", int), ("broker", int)):
            if not isinstance(row.get(name), kind):
                row.pop(name, None)
        row["details"] = _json(facts)
        self._rows.add("faults", row)

    def appended(self, entry: AppendEntry) -> None:
        """Add an append, perhaps by a deposed broker."""
        if not self._cluster.exists(self._cluster.appended_to(entry)):
            return
        place = (entry.topic, entry.partition)
        first, last = entry.first_offset, entry.last_offset
        leading = self._cluster.leading.get(place)
        if leading is None or leading.leader in (-1, entry.node_id):
            self._ends[place] = last + 1
            return
        before, _ = self._deposed_appends.get((*place, entry.node_id), (first, last))
        self._deposed_appends[(*place, entry.node_id)] = (min(before, first), last)

    def truncated(self, entry: EventEntry, event: LogTruncated) -> None:
        """Handle a truncation: the records that a follower wrote while it was cut off are lost.

        If the present leader has other records at the same offsets, nothing is removed: two
        acknowledged records at one offset are an anomaly of their own.
        """
        place = (event.topic, event.partition)
        appended = self._deposed_appends.pop((*place, event.node_id), None)
        if appended is None:
            return
        first = max(appended[0], event.offset, self._ends.get(place, 0))
        if first <= appended[1]:
            self._rows.add(
                "removals",
                {
                    **times(entry),
                    **self._cluster.named(*place).columns(),
                    "first_offset": first,
                    "last_offset": appended[1],
                    "reason": TRUNCATION,
                },
            )

    def removed(self, entry: EventEntry, event: RecordsRemoved) -> None:
        """Add records that left a leader's log."""
        place = (event.topic, event.partition)
        if event.reason in LOSSES:
            self._ends[place] = event.first_offset
        whole = [(event.first_offset, event.last_offset)]
        for first, last in ranges_of(event.ranges) or whole:
            self._rows.add(
                "removals",
                {
                    **times(entry),
                    "topic": event.topic,
                    "topic_id": event.topic_id,
                    "partition": event.partition,
                    "first_offset": first,
                    "last_offset": last,
                    "reason": event.reason,
                    "cause": event.cause or _CAUSES.get(event.reason),
                },
            )


def _topic_details(change: str, topic: ChangedTopic) -> dict[str, object]:
    details: dict[str, object] = {"change": change, "assignment": topic.assignment}
    return {**details, "configs": topic.configs} if topic.configs else details


def _nodes(value: Any) -> str:
    return ",".join(map(str, value))


def _json(details: dict[str, object]) -> str | None:
    return json.dumps(details, ensure_ascii=False, default=str) if details else None
