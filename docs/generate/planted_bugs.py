"""Which planted bugs the simulator finds, as `make planted` has written it down."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from markdown import page as join
from markdown import table

RESULTS = Path(__file__).resolve().parents[1] / "_data" / "planted.toml"

INTRO = """
# Planted bugs

A simulator that finds nothing may be looking the wrong way. So the tests plant bugs: each is one
small programming error, as people make them, put into the running code and taken out again. For
each the simulator runs schedules from seed 0 on, until a law is broken.

*Schedules* is how many that took. Bugs are hunted several at a time; one counts as found on a
schedule that breaks a law with all of them and with this one alone, and none without any.
*Audit* is what [the audit](../explanation/audit.md) says of the history that went over the wire in
that
schedule: which anomaly it calls a bug; a dash where it sees none, as with much that no client can
see. `make planted` writes these results.
"""


def page() -> str:
    bugs = tomllib.loads(RESULTS.read_text(encoding="utf-8"))["bugs"]
    found = [bug for bug in bugs if bug["law"]]
    blocks = [INTRO, f"The simulator finds {len(found)} of {len(bugs)} bugs."]
    for area in dict.fromkeys(bug["area"] for bug in bugs):
        blocks.append(f"## {area[0].upper()}{area[1:]}")
        rows = [_row(bug) for bug in bugs if bug["area"] == area]
        blocks.append(table(("bug", "what is wrong", "law", "schedules", "audit"), rows))
    return join(*blocks)


def _row(bug: dict[str, Any]) -> tuple[str, ...]:
    law = bug["law"] or "**not found**"
    schedules = str(bug["schedules"]) if bug["law"] else f"more than {bug['schedules']}"
    return f"`{bug['name']}`", bug["wrong"], law, schedules, bug["audit"] or "–"
