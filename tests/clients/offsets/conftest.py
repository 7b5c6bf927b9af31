from __future__ import annotations

from tests.support.watched import admin, kafka, log, members

__all__ = ["admin", "kafka", "log", "members"]
