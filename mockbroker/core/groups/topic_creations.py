"""The creations of internal topics that a broker has requested for streams groups.

A topic is created once at a time. The error of a creation is kept for a while; as long, the topic
is not tried again. Errors beyond the limit push out those that end first.

Source: AutoTopicCreationManager, ExpiringErrorCache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

ERRORS_MAX = 1000


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class TopicCreations:
    """The topics under way, and the errors of those that failed, with the time of their end."""

    __slots__ = ("_errors", "_under_way")

    def __init__(self) -> None:
        self._under_way: set[str] = set()
        self._errors: dict[str, tuple[str, int]] = {}

    def begin(self, topics: list[T], now_ms: int) -> list[T]:
        """The topics to create now; they are under way until `end`."""
        failed = self.errors((topic.name for topic in topics), now_ms)
        topics = [each for each in topics if each.name not in failed]
        begun = [each for each in topics if each.name not in self._under_way]
        self._under_way.update(each.name for each in begun)
        return begun

    def end(self, names: Iterable[str], errors: Mapping[str, str], until_ms: int) -> None:
        """A creation has ended; its errors are kept until `until_ms`."""
        self._under_way.difference_update(names)
        for name, error in errors.items():
            self._errors[name] = (error, until_ms)
        while len(self._errors) > ERRORS_MAX:
            del self._errors[min(self._errors, key=lambda name: self._errors[name][1])]

    def errors(self, names: Iterable[str], now_ms: int) -> dict[str, str]:
        """The errors of failed creations that have not ended, by topic."""
        return {
            name: known[0]
            for name in names
            if (known := self._errors.get(name)) is not None and known[1] > now_ms
        }
