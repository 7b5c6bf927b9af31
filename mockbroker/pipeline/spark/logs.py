"""Kafka's log lines, parsed into one table of events.

One table of patterns (`EVENTS`) serves the logs of controllers, state changes and servers, of real
brokers from 2.x to 4.x and of `log_lines`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Columns of the table of events after time, level, broker, component and event, with their types.
FIELDS: Mapping[str, str] = {
    "topic": "string",
    "partition": "int",
    "group": "string",
    "member": "string",
    "state": "string",
    "former_state": "string",
    "generation": "int",
    "members": "int",
    "leader": "int",
    "former_leader": "int",
    "leader_epoch": "int",
    "epoch": "int",
    "node": "int",
    "high_watermark": "bigint",
    "log_end_offset": "bigint",
    "isr": "string",
    "former_isr": "string",
    "replicas": "string",
    "reason": "string",
}


class Wording(NamedTuple):
    """A line's words as a Java regular expression, and the names of its groups."""

    event: str
    words: str
    fields: tuple[str, ...]


_PLACE = r"(\S+)-([0-9]+)"
_NODES = r"\[?([0-9, ]*)\]?"

EVENTS: tuple[Wording, ...] = (
    # server.log: groups
    Wording("removal", r"Member (\S+) in group (\S+) has failed, removing it", ("member", "group")),
    Wording(
        "leave",
        r"\[Group (\S+)\] Member (\S+) has left group through explicit .LeaveGroup. request",
        ("group", "member"),
    ),
    Wording(
        "rebalance",
        r"Preparing to rebalance group (\S+) in state (\w+) with old generation (-?[0-9]+) "
        r".*?\(reason: (.*)\)\.?$",
        ("group", "state", "generation", "reason"),
    ),
    Wording(
        "stable",
        r"Stabilized group (\S+) generation ([0-9]+)(?: \(\S+\))?(?: with ([0-9]+) members)?",
        ("group", "generation", "members"),
    ),
    Wording(
        "empty", r"Group (\S+) with generation ([0-9]+)(?: \S+)? is now empty",
        ("group", "generation"),
    ),
    Wording(
        "dead", r"Group (\S+) transitioned to Dead in generation ([0-9]+)", ("group", "generation")
    ),
    Wording("dead", r"The following groups were deleted: ([^.]+)\. A total", ("group",)),
    # server.log: ISRs
    Wording(
        "isr shrinks",
        rf"\[Partition {_PLACE} .*Shrinking ISR from {_NODES} to {_NODES}\. "
        r"Leader: \(highWatermark: (-?[0-9]+), endOffset: (-?[0-9]+)\)",
        ("topic", "partition", "former_isr", "isr", "high_watermark", "log_end_offset"),
    ),
    Wording(
        "isr grows",
        rf"\[Partition {_PLACE} .*Expanding ISR from {_NODES} to {_NODES}(?:\.|,|;|$)",
        ("topic", "partition", "former_isr", "isr"),
    ),
    Wording("broker state", r"Transition from (\w+) to (\w+)", ("former_state", "state")),
    # state-change.log
    Wording(
        "leads",
        rf"Leader {_PLACE} with topic id \S+ starts at leader epoch ([0-9]+) from offset "
        rf"([0-9]+) .*high watermark ([0-9]+), ISR {_NODES}.*Previous leader (?:None|Some\()?"
        r"(-?[0-9]*)",
        ("topic", "partition", "leader_epoch", "log_end_offset", "high_watermark", "isr",
         "former_leader"),
    ),
    Wording(
        "follows",
        rf"Follower {_PLACE} starts at leader epoch ([0-9]+) from offset ([0-9]+) .*"
        r"high watermark ([0-9]+)\. Current leader is (-?[0-9]+)",
        ("topic", "partition", "leader_epoch", "log_end_offset", "high_watermark", "leader"),
    ),
    Wording(
        "partition state",
        rf"Changed partition {_PLACE} (?:state )?from (\w+) to (\w+)",
        ("topic", "partition", "former_state", "state"),
    ),
    Wording(
        "replica state",
        rf"Changed state of replica ([0-9]+) for partition {_PLACE} from (\w+) to (\w+)",
        ("node", "topic", "partition", "former_state", "state"),
    ),
    # controller.log
    Wording(
        "controller",
        r"In the new epoch ([0-9]+), the leader is (?:\(none\)|([0-9]+))",
        ("epoch", "node"),
    ),
    Wording("fenced", r"Fencing broker ([0-9]+)", ("node",)),
    Wording("unfenced", r"The request from broker ([0-9]+) to unfence has been granted", ("node",)),
    Wording("topic created", r"Replayed TopicRecord for topic (\S+) with topic ID", ("topic",)),
    Wording("topic deleted", r"Replayed RemoveTopicRecord for topic (\S+) with", ("topic",)),
    Wording(
        "partition created",
        rf"Replayed PartitionRecord for new partition {_PLACE} with topic ID \S+ and "
        rf"PartitionRegistration\(replicas={_NODES}.*isr={_NODES}.*leader=(-?[0-9]+),.*"
        r"leaderEpoch=([0-9]+)",
        ("topic", "partition", "replicas", "isr", "leader", "leader_epoch"),
    ),
)  # fmt: skip

_LINE = (
    r"^\[([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8},[0-9]{3})\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
    r"(.*) \(([\w.$]+)\)\s*$"
)


def parse_lines(lines: DataFrame) -> DataFrame:
    """Events from a column `line` of text: time (UTC), level, broker, component, event, FIELDS.

    Other lines, such as stack traces, are left out; a line without a matching pattern has a null
    event. `broker` is the broker that logged it, if the line names it.
    """
    heads = lines.where(f"line RLIKE {_text(_LINE)}").selectExpr(
        f"try_to_timestamp(replace({_part('line', _LINE, 1)}, ',', '.')) AS time",
        f"{_part('line', _LINE, 2)} AS level",
        f"{_part('line', _LINE, 3)} AS message",
        f"{_part('line', _LINE, 4)} AS logger",
        *(f"`{name}`" for name in lines.columns if name != "line"),
    )
    number = " ".join(
        f"WHEN message RLIKE {_text(pattern.words)} THEN {index}"
        for index, pattern in enumerate(EVENTS)
    )
    found = heads.selectExpr("*", f"CASE {number} END AS pattern")
    events = " ".join(f"WHEN {at} THEN '{pattern.event}'" for at, pattern in enumerate(EVENTS))
    component, last = r"^\[(\w+)", r"(\w+)$"
    broker = r"(?:^\[\w+ |(?:brokerId|broker|nodeId|id)=)([0-9]+)"
    columns = [
        "time",
        "level",
        f"TRY_CAST({_part('message', broker, 1)} AS int) AS broker",
        f"coalesce(nullif({_part('message', component, 1)}, ''), {_part('logger', last, 1)})"
        " AS component",
        f"CASE pattern {events} END AS event",
    ]
    columns += [_field(name, kind) for name, kind in FIELDS.items()]
    others = [f"`{name}`" for name in lines.columns if name != "line"]
    return found.selectExpr(*columns, "message", *others)


def _field(name: str, kind: str) -> str:
    """SQL for a field: the group of the pattern that matches the line."""
    cases = [
        f"WHEN {index} THEN {_part('message', pattern.words, pattern.fields.index(name) + 1)}"
        for index, pattern in enumerate(EVENTS)
        if name in pattern.fields
    ]
    value = f"nullif(CASE pattern {' '.join(cases)} END, '')"
    if kind == "string" and name in ("isr", "former_isr", "replicas"):
        value = f"replace({value}, ' ', '')"
    return f"TRY_CAST({value} AS {kind}) AS `{name}`"


def _part(column: str, words: str, group: int) -> str:
    return f"regexp_extract({column}, {_text(words)}, {group})"


def _text(words: str) -> str:
    """A string literal of Spark's SQL, with escaped backslashes."""
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"
