"""The states of a broker's process: the theory, then the table.

A process is running, paused or stopped. A paused process accepts connections and answers nothing,
and its session with the controller expires. A stopped process has closed its ports and kept its
logs. A removed broker does not come back: its id is free, and its replicas are offline until they
are reassigned.

The registration is a separate state, and may lag behind. The controller fences a killed or paused
process when its session expires. It also fences a running process that cannot reach it. A
registration can be removed from a running or a stopped process; the next start registers the broker
again. See `controller`.

`TRANSITIONS` and `REFUSALS` together cover every pair of state and event. Only the controller and
the restore of a snapshot write a broker's state.
"""

from __future__ import annotations

from enum import Enum

from mockbroker.core.errors import ActionError

RUNNING = "running"
PAUSED = "paused"
STOPPED = "stopped"
REMOVED = "removed"

STATES = (RUNNING, PAUSED, STOPPED, REMOVED)


class ProcessEvent(Enum):
    """A change of a process."""

    START = "start"
    STOP = "stop"  # controlled or unclean
    PAUSE = "pause"
    RESUME = "resume"
    FAIL_LOG_DIR = "lose a log directory"  # one of several; without the last one the process stops
    REMOVE = "remove"


NOT_STOPPED = "is {state}, not stopped"
NOT_RUNNING = "is {state}, not running"
NOT_PAUSED = "is {state}, not paused"
STOPPED_ALREADY = "is stopped already"
IS_STOPPED = "is stopped"
GONE = "was removed"

TRANSITIONS: dict[str, dict[ProcessEvent, str]] = {
    RUNNING: {
        ProcessEvent.STOP: STOPPED,
        ProcessEvent.PAUSE: PAUSED,
        ProcessEvent.FAIL_LOG_DIR: RUNNING,
        ProcessEvent.REMOVE: REMOVED,
    },
    PAUSED: {
        ProcessEvent.STOP: STOPPED,
        ProcessEvent.RESUME: RUNNING,
        ProcessEvent.FAIL_LOG_DIR: PAUSED,
        ProcessEvent.REMOVE: REMOVED,
    },
    STOPPED: {
        ProcessEvent.START: RUNNING,
        ProcessEvent.REMOVE: REMOVED,
    },
    REMOVED: {},
}

# The reasons of refusals. Together with TRANSITIONS they cover every cell.
REFUSALS: dict[str, dict[ProcessEvent, str]] = {
    RUNNING: {ProcessEvent.START: NOT_STOPPED, ProcessEvent.RESUME: NOT_PAUSED},
    PAUSED: {ProcessEvent.START: NOT_STOPPED, ProcessEvent.PAUSE: NOT_RUNNING},
    STOPPED: {
        ProcessEvent.STOP: STOPPED_ALREADY,
        ProcessEvent.PAUSE: NOT_RUNNING,
        ProcessEvent.RESUME: NOT_PAUSED,
        ProcessEvent.FAIL_LOG_DIR: IS_STOPPED,
    },
    REMOVED: dict.fromkeys(ProcessEvent, GONE),
}


def after(node_id: int, state: str, event: ProcessEvent) -> str:
    """The state after an event. Raises ActionError, with the reason, if the event is refused."""
    found = TRANSITIONS[state].get(event)
    if found is None:
        raise ActionError(f"broker {node_id} {REFUSALS[state][event].format(state=state)}")
    return found
