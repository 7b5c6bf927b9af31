from __future__ import annotations

from tests.support.watched import kafka, log

__all__ = ["kafka", "log"]
