"""What mockbroker promises, the tests of each promise, and the figures of one run.

From `docs/_data/trust.toml`, which says when and with which version each figure was measured. The
figures of planted bugs and of exhaustive exploration are those of their own data.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from markdown import page as join
from markdown import table

DOCS = Path(__file__).resolve().parents[1]
DATA = DOCS / "_data"
THREATS = DOCS / "explanation" / "threat-model.md"
PROMISE = re.compile(r"^\|.* \| `tests/.*\|$", re.MULTILINE)

INTRO = """
# Trust

This table has what mockbroker promises, the tests that show each promise, what one run found, and
the command that repeats it on your machine. [Limits](limits.md) lists the differences from Kafka.
The [threat model](threat-model.md) says who may do what.
"""


def data() -> dict[str, Any]:
    return tomllib.loads((DATA / "trust.toml").read_text("utf-8"))


def figure(row: dict[str, Any]) -> str:
    """What was found, and when."""
    found = COUNTS[row["data"]]() if "data" in row else row["figure"]
    return f"{found} ({row['date']}, {row['version']})"


def _planted() -> str:
    bugs = tomllib.loads((DATA / "planted.toml").read_text("utf-8"))["bugs"]
    return f"{sum(bool(bug['law']) for bug in bugs)} of {len(bugs)} bugs are found"


def _exhaustive() -> str:
    counts = json.loads((DATA / "exhaustive.json").read_text("utf-8"))
    states = sum(level[0] for each in counts.values() for level in each["levels"])
    return f"{len(counts)} machines, {states:,} states, no violation"


def _threats() -> str:
    return f"{len(PROMISE.findall(THREATS.read_text('utf-8')))} promises, each with its tests"


COUNTS = {"planted": _planted, "exhaustive": _exhaustive, "threat model": _threats}


def page() -> str:
    found = data()
    rows = [
        (
            f"**{row['name']}.** {row['promise']}",
            "<br>".join(f"`{test}`" for test in row["tests"]),
            figure(row),
            f"`{row['command']}`",
        )
        for row in found["promises"]
    ]
    return join(
        INTRO,
        table(("Promise", "Test", "Figure", "Command"), rows),
        "## The figures",
        "\n".join(f"- {note}" for note in found["notes"]),
    )
