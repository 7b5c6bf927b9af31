"""Whether reading broken bytes ends in one of the two ways that it may."""

from __future__ import annotations

from collections.abc import Callable

from mockbroker_protocol.records import RecordsError


def error_in(read: Callable[[], object]) -> RecordsError | None:
    """The error that callers catch, or None if all went well; anything else passes through."""
    try:
        read()
    except RecordsError as error:
        return error
    return None
