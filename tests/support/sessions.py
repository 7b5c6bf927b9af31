"""Sessions of group members end by the clock, not by waiting."""

from __future__ import annotations

from mockbroker import Cluster
from mockbroker_protocol import ApiKey
from tests.support.request_log import RequestLog


def pass_half_sessions(
    kafka: Cluster, log: RequestLog, heartbeat: ApiKey, session_ms: int, count: int = 2
) -> None:
    """Let half a session pass so many times, each time after a heartbeat that the log has seen.

    Members that send heartbeats stay. After two halves, one that sends none is out.
    """
    for _ in range(count):
        log.clear()
        log.wait_for(heartbeat)
        kafka.clock.advance(session_ms // 2, extend_sessions=False)
