"""A client's connection, as the parts of a broker see it."""

from __future__ import annotations

from typing import Protocol


class ClientConnection(Protocol):
    """A client's connection to a broker, with its number."""

    @property
    def id(self) -> int: ...

    closed: bool
