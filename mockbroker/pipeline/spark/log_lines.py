"""The changes of a cluster and its groups as log lines of a broker.

The words are those of Kafka's `controller.log`, `state-change.log` and `server.log`. `logs` parses
them like those of real brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.pipeline.spark.logs import parse_lines
from mockbroker.pipeline.spark.program import main

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mockbroker.pipeline.spark.inputs import Inputs


class LogLine(NamedTuple):
    """The line of a change: its log, SQL for its words, and its logger."""

    file: str
    words: str
    logger: str


_PLACE = "concat(topic, '-', partition)"
_CONTROLLER = "coalesce(controller, lowest)"
_REPLICATION = "org.apache.kafka.controller.ReplicationControlManager"
_BROKERS = "org.apache.kafka.controller.BrokerHeartbeatManager"
_GROUPS = "org.apache.kafka.coordinator.group.GroupMetadataManager"


def _said(*words: str) -> str:
    return f"concat({', '.join(words)})"


def _quorum(*words: str) -> str:
    return _said("'[QuorumController id='", _CONTROLLER, "'] '", *words)


def _moved(*words: str) -> str:
    return _said(
        "'[Controller id='", _CONTROLLER, "'] '", *words, "former_state", "' to '", "state"
    )


def _server(former: str, state: str) -> LogLine:
    words = _said("'[BrokerServer id='", "broker", f"'] Transition from {former} to {state}'")
    return LogLine("server", words, "kafka.server.BrokerServer")


def _partition(*words: str) -> LogLine:
    start = ("'[Partition '", _PLACE, "' broker='", "current_leader", "'] '")
    return LogLine("server", _said(*start, *words), "kafka.cluster.Partition")


SHAPES: Mapping[str, LogLine] = {
    "LeaderChanged": LogLine(
        "state-change",
        # A partition without a leader has a state instead.
        "IF(leader < 0, NULL, " + _said(
            "'[Broker id='", "leader", "'] Leader '", _PLACE, "' with topic id Some('", "topic_id",
            "') starts at leader epoch '", "leader_epoch", "' from offset '", "log_end_offset",
            "' with partition epoch '", "partition_epoch", "', high watermark '",
            "high_watermark", "', ISR ['", "isr",
            "'], adding replicas [] and removing replicas [] . Previous leader '",
            "IF(former_leader < 0, 'None', concat('Some(', former_leader, ')'))",
            "' and previous leader epoch was '", "leader_epoch - 1", "'.'",
        ) + ")",
        "state.change.logger",
    ),
    "IsrShrunk": _partition(
        "'Shrinking ISR from '", "former_isr", "' to '", "isr", "'. Leader: (highWatermark: '",
        "high_watermark", "', endOffset: '", "log_end_offset", "').'",
    ),
    "IsrGrew": _partition("'Expanding ISR from '", "former_isr", "' to '", "isr", "'.'"),
    "ControllerChanged": LogLine(
        "controller",
        _said(
            "'[QuorumController id='", f"IF(broker < 0, {_CONTROLLER}, broker)",
            "'] In the new epoch '", "get_json_object(details, '$.epoch')",
            "', the leader is '", "IF(broker < 0, '(none)', string(broker))", "'.'",
        ),
        "org.apache.kafka.controller.QuorumController",
    ),
    "fenced": LogLine(
        "controller",
        _quorum("'Fencing broker '", "broker", "' because its session has timed out.'"),
        _REPLICATION,
    ),
    "unfenced": LogLine(
        "controller",
        _quorum("'The request from broker '", "broker", "' to unfence has been granted.'"),
        _BROKERS,
    ),
    "running": _server("STARTING", "STARTED"),
    "shutting down": _server("STARTED", "SHUTTING_DOWN"),
    "stopped": _server("SHUTTING_DOWN", "SHUTDOWN"),
    "TopicsChanged": LogLine(
        "controller",
        _quorum(
            "IF(get_json_object(details, '$.change') = 'created', "
            "'Replayed TopicRecord for topic ', 'Replayed RemoveTopicRecord for topic ')",
            "topic", "' with topic ID '", "topic_id", "'.'",
        ),
        _REPLICATION,
    ),
    "PartitionsMoved": LogLine(
        "state-change",
        _moved("'Changed partition '", _PLACE, "' state from '"),
        "state.change.logger",
    ),
    "ReplicasMoved": LogLine(
        "state-change",
        _moved(
            "'Changed state of replica '", "broker", "' for partition '", _PLACE, "' from '"
        ),
        "state.change.logger",
    ),
}  # fmt: skip

GROUP_SHAPES: Mapping[str, str] = {
    "PreparingRebalance": _said(
        "'Preparing to rebalance group '", "`group`",
        "' in state PreparingRebalance with old generation '", "generation", "' (reason: '",
        "coalesce(reason, 'unknown')", "').'",
    ),
    "CompletingRebalance": _said(
        "'Stabilized group '", "`group`", "' generation '", "generation", "' with '", "members",
        "' members.'",
    ),
    "Empty": _said("'Group '", "`group`", "' with generation '", "generation", "' is now empty.'"),
    "Dead": _said("'Group '", "`group`", "' transitioned to Dead in generation '", "generation"),
}  # fmt: skip


def _case(column: str, values: Mapping[str, str]) -> str:
    cases = " ".join(f"WHEN '{name}' THEN {value}" for name, value in values.items())
    return f"CASE {column} {cases} END"


def log_lines(inputs: Inputs) -> DataFrame:
    """A row for each line: `run`, `file` (controller, state-change, server), `seq` and `line`.

    The journal has only changes of the controller: before the first one its lines have the lowest
    node id of the run. The offsets of a log at a change of its leader are the last reported ones,
    or 0; the partition epoch is the number of the partition's changes in the run. Times are the
    cluster's, in UTC.
    """
    inputs.derive("moves", _moves)
    file = _case("change", {name: f"'{shape.file}'" for name, shape in SHAPES.items()})
    words = _case("change", {name: shape.words for name, shape in SHAPES.items()})
    logger = _case("change", {name: f"'{shape.logger}'" for name, shape in SHAPES.items()})
    return inputs.sql(f"""
        WITH reported AS (
            SELECT run, seq, virtual_ms, {file} AS file, {words} AS words, {logger} AS logger
            FROM {{moves}}
            UNION ALL
            SELECT run, seq, virtual_ms, 'server',
                   concat('[GroupCoordinator] ', {_case("state", GROUP_SHAPES)}), '{_GROUPS}'
            FROM {{groups}}
        )
        SELECT run, file, seq,
               concat('[', date_format(timestamp_millis(virtual_ms), 'yyyy-MM-dd HH:mm:ss,SSS'),
                      '] INFO ', words, ' (', logger, ')') AS line
        FROM reported WHERE words IS NOT NULL
        ORDER BY run, seq
    """)


def _moves(inputs: Inputs) -> DataFrame:
    """The rows of `cluster`, one for each partition, with the state known then."""
    return inputs.sql("""
        WITH lowest AS (
            SELECT run, min(broker) AS lowest FROM (
                SELECT run, broker FROM {requests} UNION ALL SELECT run, broker FROM {cluster}
            ) GROUP BY run
        ), moved AS (
            SELECT run, k, seq, virtual_ms, broker, topic, topic_id, leader, leader_epoch,
                   former_leader, isr, former_isr, details,
                   CASE WHEN change <> 'IsrChanged' THEN change
                        WHEN length(isr) < length(former_isr) THEN 'IsrShrunk'
                        ELSE 'IsrGrew' END AS change,
                   get_json_object(details, '$.former') AS former_state,
                   get_json_object(details, '$.state') AS state,
                   CAST(get_json_object(details, '$.high_watermark') AS bigint) AS high_watermark,
                   CAST(get_json_object(details, '$.log_end_offset') AS bigint) AS log_end_offset,
                   explode(coalesce(
                       from_json(get_json_object(details, '$.partitions'), 'array<int>'),
                       array(partition))) AS partition
            FROM {cluster}
        ), steps AS (
            SELECT run, k, seq, virtual_ms, broker, topic, topic_id, leader, leader_epoch,
                   former_leader, isr, former_isr, details, change, former_state, state,
                   high_watermark, log_end_offset, partition
            FROM moved
            UNION ALL
            SELECT run, k, seq, virtual_ms, broker, topic, topic_id, NULL, NULL, NULL, NULL, NULL,
                   NULL, NULL, NULL, NULL, high_watermark,
                   coalesce(log_end_offset, high_watermark), partition
            FROM {watermarks}
        ), stood AS (
            SELECT run, seq, virtual_ms, broker, topic, topic_id, leader, leader_epoch,
                   former_leader, isr, former_isr, details, change, former_state, state, partition,
                   coalesce(max(high_watermark) OVER so_far, 0) AS high_watermark,
                   coalesce(max(log_end_offset) OVER so_far, 0) AS log_end_offset,
                   count(coalesce(isr, former_isr)) OVER so_far AS partition_epoch,
                   coalesce(last_value(IF(leader < 0, NULL, leader)) IGNORE NULLS OVER so_far,
                            CAST(substring_index(coalesce(nullif(former_isr, ''), nullif(isr, '')),
                                                 ',', 1) AS int)) AS current_leader
            FROM steps
            WINDOW so_far AS (PARTITION BY run, topic, topic_id, partition ORDER BY seq
                              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
        )
        SELECT s.*, l.lowest,
               last_value(IF(change = 'ControllerChanged' AND broker >= 0, broker, NULL))
                   IGNORE NULLS OVER (PARTITION BY s.run ORDER BY seq
                   ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS controller
        FROM stood s LEFT JOIN lowest l ON l.run = s.run
        WHERE change IS NOT NULL
    """)


def log_events(inputs: Inputs) -> DataFrame:
    """The events of a run, parsed from its log lines."""
    return parse_lines(log_lines(inputs))


if __name__ == "__main__":
    main(log_lines)
