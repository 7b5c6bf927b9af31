"""The states of records, share partitions and share sessions, drawn from the tables of the code."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum

import diagram
from markdown import page as join
from markdown import table
from state_tables import answer, steps_list, theory, word, yes

from mockbroker.core.share import states
from mockbroker.core.share.states import (
    ACKNOWLEDGE_SESSION_ANSWERS,
    COMPLETIONS,
    FETCH_SESSION_ANSWERS,
    RECORD_TRANSITIONS,
    RETURN_STATES,
    SHARE_PARTITION_TRANSITIONS,
    WRITTEN,
    RecordEvent,
    RecordState,
    SessionFacts,
    SessionRequest,
    SessionStep,
    SharePartitionEvent,
    SharePartitionState,
)


class Box(Enum):
    """The states in the diagram."""

    AVAILABLE = "Available"
    ACQUIRED = "Acquired"
    ACKNOWLEDGED = "Acknowledged"
    ARCHIVED = "Archived"


PLACES: dict[Box, tuple[int, int]] = {
    Box.AVAILABLE: (110, 60),
    Box.ACQUIRED: (480, 60),
    Box.ACKNOWLEDGED: (850, 60),
    Box.ARCHIVED: (480, 220),
}
SIZE = (960, 260)

INTRO = """
# Records of a share group

Drawn from `mockbroker/core/share/states.py`.

![States of a record in a share group](share-record.svg)

*Release*, *expire* and *leave* lead to Archived if the record is below the share-partition start
offset or was delivered too often.
"""

PARTITION = """
## A share partition

The share partition of a group at the partition's leader. A fenced one is forgotten; the next
ShareFetch makes another, which reads the state from the share coordinator.
"""

SESSION = """
## A share session

The answer to a request, by its share session epoch and whether the member has a session with the
broker.
"""


def page() -> str:
    return join(
        INTRO,
        words(),
        "## Events of a record",
        table(
            ("event", *(_name(state) for state in RECORD_TRANSITIONS), "written"),
            [
                (
                    f"**{word(event)}**: {event.value}",
                    *(_cell(row[event]) for row in RECORD_TRANSITIONS.values()),
                    WRITTEN[event].value,
                )
                for event in RecordEvent
            ],
        ),
        "A record that would become Available again:",
        table(
            ("below the SPSO", "delivered too often", "state"),
            [(*map(yes, facts), f"**{_name(state)}**") for facts, state in RETURN_STATES.items()],
        ),
        "How an ongoing transition ends:",
        table(
            ("written", "removed meanwhile", "lock over", "delivered too often", "end"),
            [(*map(yes, facts), end.value) for facts, end in COMPLETIONS.items()],
        ),
        PARTITION,
        table(
            ("event", *(state.value for state in SharePartitionState)),
            [
                (
                    f"**{word(event)}**: {event.value}",
                    *(
                        "-" if (after := row[event]) is None else after.value
                        for row in SHARE_PARTITION_TRANSITIONS.values()
                    ),
                )
                for event in SharePartitionEvent
            ],
        ),
        SESSION,
        table(
            ("epoch", "has a session", "ShareFetch", "ShareAcknowledge"),
            [
                (
                    request.value,
                    yes(known),
                    answer(FETCH_SESSION_ANSWERS[facts], SessionStep),
                    answer(ACKNOWLEDGE_SESSION_ANSWERS[facts], SessionStep),
                )
                for request in SessionRequest
                for known in (False, True)
                if (facts := SessionFacts(request, known)) in FETCH_SESSION_ANSWERS
            ],
        ),
        steps_list(SessionStep),
    )


def words() -> str:
    """The opening words of the module, without the sketch they hold."""
    blocks = theory(states).split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith("    "))


def picture() -> str:
    """The diagram as SVG."""
    edges: dict[tuple[Box, Box], list[str]] = defaultdict(list)
    for state, row in RECORD_TRANSITIONS.items():
        for event, after in row.items():
            if after is not None:
                edges[Box[state.name], Box[after.name]].append(word(event))
    return diagram.draw("States of a record in a share group", PLACES, edges, SIZE)


def _name(state: RecordState) -> str:
    return state.name.capitalize()


def _cell(state: RecordState | None) -> str:
    return "-" if state is None else _name(state)
