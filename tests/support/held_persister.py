"""A persister of share state whose answers a test gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mockbroker.core.share.operations import each_row
from mockbroker_protocol import ErrorCode
from tests.support.share_node import ShareNode

E = ErrorCode


class HeldPersister:
    """A persister whose answers a test gives: with `answer`, an error for all partitions."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any, Callable[[Any], None]]] = []

    def send(self, operation: Any, request: Any, then: Callable[[Any], None]) -> None:
        self.asked.append((operation, request, then))

    def answer(self, error: ErrorCode = E.NONE) -> None:
        operation, request, then = self.asked.pop(0)
        then(operation.refusal(request, error, None if error is E.NONE else error.message))

    def partitions(self) -> list[int]:
        """The partitions of the oldest request."""
        return sorted(row.partition for _, row in each_row(self.asked[0][1]))


def hold_persister(node: ShareNode) -> HeldPersister:
    """Put a held persister in place of that of broker 1."""
    persister: Any = HeldPersister()
    node.cluster.brokers[1]._share_persister = persister
    assert isinstance(persister, HeldPersister)
    return persister
