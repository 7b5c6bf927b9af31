"""The definitions of the audit's rules, for its report: those of docs/explanation/audit.md."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "explanation" / "audit.md"


def text() -> str:
    """The sections of the anomalies, each under its heading."""
    _, _, rules = PAGE.read_text(encoding="utf-8").partition("\n## Anomalies\n")
    return rules[rules.index("### ") :]
