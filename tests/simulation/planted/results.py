"""What came of the hunts, as `docs/_data/planted.toml` keeps it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

from tests.simulation.planted.hunting import Hunt
from tests.simulation.planted.planting import Planted

_ROOT = Path(__file__).resolve().parents[3]
RESULTS = _ROOT / "docs" / "_data" / "planted.toml"
_HEAD = "# Written by `make planted`. One table for each bug: what it is, and what finds it.\n"


def read(path: Path) -> dict[str, Hunt]:
    """The results by name of the bug; none where there is no file."""
    if not path.exists():
        return {}
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("bugs", [])
    return {
        row["name"]: Hunt(row["name"], row["schedules"], row["law"], row["seen"], row["audit"])
        for row in rows
    }


def write(path: Path, hunts: Mapping[str, Hunt], bugs: Mapping[str, Planted]) -> None:
    """Write the results of the bugs that there are, in their order."""
    lines = [_HEAD]
    for name, bug in bugs.items():
        if name not in hunts:
            continue
        hunt = hunts[name]
        values = {
            "name": name,
            "area": bug.area,
            "wrong": bug.wrong,
            "law": hunt.law,
            "schedules": hunt.schedules,
            "seen": hunt.seen.replace(f"{_ROOT}/", ""),
            "audit": hunt.audit,
        }
        # A basic string of TOML is written like one of JSON.
        rows = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        lines.append("\n".join(["[[bugs]]", *rows, ""]))
    path.write_text("\n".join(lines), encoding="utf-8")
