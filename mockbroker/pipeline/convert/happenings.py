"""What happened to the cluster: its brokers, leaders and logs, and what rules and people did."""

from __future__ import annotations

import json
from typing import Any

from mockbroker.core.journal.reader import ranges_of
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.world import World
from mockbroker.pipeline.spool.notes import Appended, Fact
from mockbroker.pipeline.tables import WANTED_REMOVALS

# Events that go into the table `cluster`: all that no other table holds.
CLUSTER_EVENTS = frozenset(
    (
        "BrokerChanged",
        "ControllerChanged",
        "LeaderChanged",
        "IsrChanged",
        "ReplicasChanged",
        "TopicsChanged",
        "TopicChanged",
        "PartitionsMoved",
        "ReplicasMoved",
        "LogTruncated",
        "PreferredElectionFailed",
        "LogDirFailed",
        "NetworkChanged",
    )
)
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
_FAULT_COLUMNS = ("request_seq", "api", "client_id", "broker", "topic", "partition", "group")


class Happenings:
    """Makes `cluster`, `faults` and `removals`."""

    def __init__(self, rows: Rows, world: World) -> None:
        self._rows = rows
        self._world = world
        # Where the logs of leaders end, and what brokers wrote that did not know that they lead no
        # more: (topic, partition, broker) -> first and last offset.
        self._ends: dict[tuple[str, int], int] = {}
        self._astray: dict[tuple[str, int, int], tuple[int, int]] = {}

    def event(self, note: Fact) -> None:
        """One of the cluster's events."""
        row: dict[str, object] = {**_times(note), "change": note.name}
        details: dict[str, object] = {}
        for name, value in note.fact.items():
            if name in _COLUMNS:
                row[_COLUMNS[name]] = value
            elif name == "isr":
                row["isr"] = _nodes(value)
            elif name == "former" and note.name == "IsrChanged":
                row["former_isr"] = _nodes(value)
            elif name == "replicas":
                row["replicas"] = _nodes(value)
            elif name != "at_ms":
                details[name] = value
        if note.name == "BrokerChanged":
            row["change"] = details.pop("change")
        if "topic" in row and "topic_id" not in row:
            row["topic_id"] = self._world.topics.get(str(row["topic"]))
        row["details"] = _json(details)
        self._rows.add("cluster", row)

    def fault(self, note: Fact) -> None:
        """A rule, a person or a test had a hand in it."""
        told = dict(note.fact)
        rules = list(told.pop("rules", ()))
        row: dict[str, object] = {
            **_times(note),
            "kind": note.kind,
            "change": told.pop("change", None),
            "rules": rules,
            "outcome": told.pop("outcome", None),
        }
        arguments = told.get("arguments")
        for name in _FAULT_COLUMNS:
            if name in told:
                row[name] = told.pop(name)
            elif isinstance(arguments, dict) and arguments.get(name) is not None:
                row[name] = arguments[name]
        for name, kind in (("topic", str), ("group", str), ("partition", int), ("broker", int)):
            if not isinstance(row.get(name), kind):
                row.pop(name, None)
        row["details"] = _json(told)
        self._rows.add("faults", row)

    def appended(self, note: Appended) -> None:
        """A batch was appended, perhaps by a broker that the others have deposed."""
        place = (note.topic, note.partition)
        first, last = note.first_offset, note.first_offset + note.last_offset_delta
        leading = self._world.leading.get(place)
        if leading is None or leading.leader in (-1, note.node_id):
            self._ends[place] = last + 1
            return
        before, _ = self._astray.get((*place, note.node_id), (first, last))
        self._astray[(*place, note.node_id)] = (min(before, first), last)

    def truncated(self, note: Fact) -> None:
        """A follower cut its log back: what it wrote while it was cut off is lost.

        Where the present leader has others at the same offsets, there is nothing to remove: two
        records that were acknowledged at one offset are a matter of their own.
        """
        told = note.fact
        topic, partition = told["topic"], told["partition"]
        astray = self._astray.pop((topic, partition, told["node_id"]), None)
        if astray is None:
            return
        first = max(astray[0], told["offset"], self._ends.get((topic, partition), 0))
        if first <= astray[1]:
            self._rows.add(
                "removals",
                {
                    **_times(note),
                    **self._world.named(topic, partition).columns(),
                    "first_offset": first,
                    "last_offset": astray[1],
                    "reason": "truncation",
                },
            )

    def removed(self, note: Fact) -> None:
        """Records left the log of a leader."""
        told = note.fact
        if told["reason"] == "topic_deleted":
            self._ends.pop((told["topic"], told["partition"]), None)
        elif told["reason"] not in WANTED_REMOVALS:
            self._ends[told["topic"], told["partition"]] = told["first_offset"]
        ranges = [(told["first_offset"], told["last_offset"])]
        if told["ranges"]:
            ranges = ranges_of(told["ranges"])
        for first, last in ranges:
            self._rows.add(
                "removals",
                {
                    **_times(note),
                    "topic": told["topic"],
                    "topic_id": told["topic_id"],
                    "partition": told["partition"],
                    "first_offset": first,
                    "last_offset": last,
                    "reason": told["reason"],
                    "cause": told["cause"] or None,
                },
            )


def _times(note: Fact) -> dict[str, object]:
    return {"seq": note.seq, "virtual_ms": note.virtual_ms, "real_ns": note.real_ns}


def _nodes(value: Any) -> str:
    return ",".join(map(str, value))


def _json(details: dict[str, object]) -> str | None:
    return json.dumps(details, ensure_ascii=False, default=str) if details else None
