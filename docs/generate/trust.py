"""What mockbroker promises, the tests of each promise, and the figures of one run.

From `docs/_data/trust.toml`, which says when and with which version each figure was measured. The
figures of planted bugs and of exhaustive exploration are those of their own data. The threat model
stands in the page itself, and the comparison comes from `docs/_data/comparison.toml`.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import comparison
from markdown import page as join
from markdown import part, table

DOCS = Path(__file__).resolve().parents[1]
DATA = DOCS / "_data"
PAGE = DOCS / "explanation" / "trust.md"
PROMISE = re.compile(r"^\|.* \| `tests/.*\|$", re.MULTILINE)

INTRO = """
# Trust

This table has what mockbroker promises, the tests that show each promise, what one run found, and
the command that repeats it on your machine. [Limits](limits.md) lists the differences from Kafka.
The [threat model](#threat-model) says who may do what, and the [comparison](#comparison) what else
can stand in for a cluster.
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


def threat_model() -> str:
    """The part of the page that is written by hand."""
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index("## Threat model") : text.index("## Comparison")]


def _threats() -> str:
    return f"{len(PROMISE.findall(threat_model()))} promises, each with its tests"


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
        threat_model(),
        part(comparison.page()),
    )
