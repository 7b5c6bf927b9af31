"""The audit as portable SQL, run by DuckDB in this process, beside that of Spark.

`prepare.sql` derives the tables that several rules use. `rules/<anomaly>.sql` is one rule each: a
SELECT whose rows are findings, before gaps are considered. The definitions are in
docs/explanation/audit.md.
"""

from __future__ import annotations

from mockbroker.pipeline.duck.rulebook import audit, judge
from mockbroker.pipeline.duck.session import DuckSession, open_session

__all__ = ["DuckSession", "audit", "judge", "open_session"]
