"""The second opinion: the audit as portable SQL, run by DuckDB within this process.

`prepare.sql` makes from the tables what several rules stand on; `rules/<anomaly>.sql` is one rule
each, a SELECT whose rows are findings but for the gaps. The definitions are in
docs/explanation/audit.md.
"""

from __future__ import annotations

from mockbroker.pipeline.duck.rulebook import audit, judge
from mockbroker.pipeline.duck.session import DuckSession, open_session

__all__ = ["DuckSession", "audit", "judge", "open_session"]
