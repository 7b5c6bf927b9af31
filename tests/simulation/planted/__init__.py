"""Bugs that are planted on purpose, so that it shows whether the simulator finds them.

Each is one small programming error as people make them: a comparison that is off by one, a check
or a notification that is missing. It is there while its context manager is entered, and nowhere in
the sources. There is a module for each area; a function decorated with `@planted` returns the
context manager.

    python -m tests.simulation.planted --bug the-name

runs schedules until a law is broken, and notes in `docs/_data/planted.toml` which and how soon.
"""

from __future__ import annotations

from tests.simulation.planted.planting import PLANTED, Planted, load_all

__all__ = ["PLANTED", "Planted", "load_all"]
