"""The life of a broker's process: the theory, then the table.

A process runs, stands still, or is stopped. One that stands still accepts connections and answers
nothing; its session with the controller runs out meanwhile. A stopped one has closed its ports and
kept its logs. A removed broker is gone for good: its id is free, and what it held is offline until
it is reassigned.

What the controller thinks of a broker is another matter, and may be late: a killed process is
fenced when its session is over, a paused one as well, and one that runs may be fenced because its
way to the controller is cut. Its registration may be taken away, whether it runs or not; a start
registers it again. See `controller`.

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
    STOP = "stop"  # in an orderly way, or killed
    PAUSE = "pause"
    RESUME = "resume"
    FAIL_LOG_DIR = "lose a log directory"  # one of several; without the last one it stops
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

# Why an event is refused; together with TRANSITIONS this covers every cell.
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
    """The state after an event. Raises ActionError, with the reason, if the state refuses it."""
    found = TRANSITIONS[state].get(event)
    if found is None:
        raise ActionError(f"broker {node_id} {REFUSALS[state][event].format(state=state)}")
    return found
