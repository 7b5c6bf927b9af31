"""The life of a broker's process: the theory, then the table.

A process runs, stands still, or is stopped. One that stands still accepts connections and answers
nothing; its session with the controller runs out meanwhile. A stopped one has closed its ports and
kept its logs. A removed broker is gone for good: its id is free, and what it held is offline until
it is reassigned.

What the controller thinks of a broker is another matter, and may be late: a killed process is
fenced when its session is over, a paused one as well, and one that runs may be fenced because its
way to the controller is cut. Its registration may be taken away, whether it runs or not; a start
registers it again. See `controller`.

`TRANSITIONS` is total: what a state has no step for is refused with the words of `REFUSALS`. Only
`after` reads it. The controller alone writes a broker's state, apart from snapshots, which put back
what they find.
"""

from __future__ import annotations

from enum import Enum

from mockbroker.core.errors import ActionError

RUNNING = "running"
PAUSED = "paused"
STOPPED = "stopped"
REMOVED = "removed"

STATES = (RUNNING, PAUSED, STOPPED, REMOVED)


class Step(Enum):
    """What is done to a process."""

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

TRANSITIONS: dict[str, dict[Step, str]] = {
    RUNNING: {
        Step.STOP: STOPPED,
        Step.PAUSE: PAUSED,
        Step.FAIL_LOG_DIR: RUNNING,
        Step.REMOVE: REMOVED,
    },
    PAUSED: {
        Step.STOP: STOPPED,
        Step.RESUME: RUNNING,
        Step.FAIL_LOG_DIR: PAUSED,
        Step.REMOVE: REMOVED,
    },
    STOPPED: {
        Step.START: RUNNING,
        Step.REMOVE: REMOVED,
    },
    REMOVED: {},
}

# Why a step is refused; together with TRANSITIONS this covers every cell.
REFUSALS: dict[str, dict[Step, str]] = {
    RUNNING: {Step.START: NOT_STOPPED, Step.RESUME: NOT_PAUSED},
    PAUSED: {Step.START: NOT_STOPPED, Step.PAUSE: NOT_RUNNING},
    STOPPED: {
        Step.STOP: STOPPED_ALREADY,
        Step.PAUSE: NOT_RUNNING,
        Step.RESUME: NOT_PAUSED,
        Step.FAIL_LOG_DIR: IS_STOPPED,
    },
    REMOVED: dict.fromkeys(Step, GONE),
}


def after(node_id: int, state: str, step: Step) -> str:
    """The state after a step. Raises ActionError, with the reason, when it cannot be taken."""
    found = TRANSITIONS[state].get(step)
    if found is None:
        raise ActionError(f"broker {node_id} {REFUSALS[state][step].format(state=state)}")
    return found
