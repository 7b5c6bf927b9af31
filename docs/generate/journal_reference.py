"""The journal's events and the tables that they become."""

from __future__ import annotations

import journal_events
import tables
from markdown import page as join
from markdown import part

INTRO = """
# Journal events and tables

The events of the journal, and the tables into which a run is written.
"""


def page() -> str:
    return join(INTRO, part(journal_events.page()), part(tables.page()))
