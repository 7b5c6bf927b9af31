"""Bugs of the journal. No law looks there: the audit does, which has nothing else."""

from __future__ import annotations

from mockbroker.core.journal import entries
from mockbroker.handlers import produce
from tests.simulation.planted.planting import Planting, planted, rewritten


@planted("A retry is written down as one more append.", audited=True)
def retries_are_noted_as_appends() -> Planting:
    return rewritten(
        produce._append,
        "if journal is not None and not result.duplicate:",
        "if journal is not None:",
    )


@planted("A batch is written down one offset above its own.", audited=True)
def appends_are_noted_too_high() -> Planting:
    return rewritten(
        entries.appended, "first_offset,\n        header.", "first_offset + 1,\n        header."
    )
