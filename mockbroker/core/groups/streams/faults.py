"""The fault of a topology whose topics do not fit; members get it as a status.

Source: TopicConfigurationException.
"""

from __future__ import annotations

from mockbroker.core.groups.streams.states import StatusCode


class TopicConfigurationError(Exception):
    """The status and its detail."""

    def __init__(self, status: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
