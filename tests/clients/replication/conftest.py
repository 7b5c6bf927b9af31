from __future__ import annotations

from tests.support.replicated import brokers
from tests.support.watched import kafka, log

__all__ = ["brokers", "kafka", "log"]
