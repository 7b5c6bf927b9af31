"""A cluster in virtual time, and what is logged about it."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from mockbroker.server.config import ServerConfig
from mockbroker.simulation.streams import SimulatedCluster, simulated_cluster, virtual_run

T = TypeVar("T")


def with_cluster(
    config: ServerConfig, session: Callable[[SimulatedCluster, list[str]], Awaitable[T]]
) -> T:
    """Run a session, which is given the list that errors are added to as they are logged.

    Returns what it returns. Raises what it raises, out of the groups of nurseries.
    """

    async def main() -> T:
        with errors_logged() as errors:
            async with simulated_cluster(config) as sim:
                return await session(sim, errors)

    try:
        return virtual_run(main, seed=config.seed)
    except BaseExceptionGroup as group:
        raise first_of(group) from None


def first_of(error: BaseException) -> BaseException:
    """The first error in groups of groups."""
    return first_of(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


@contextmanager
def errors_logged() -> Iterator[list[str]]:
    """The errors that brokers and the admin API log in this thread, in the block."""
    found: list[str] = []
    handler = _Errors(found)
    log = logging.getLogger("mockbroker")
    log.addHandler(handler)
    try:
        yield found
    finally:
        log.removeHandler(handler)


class _Errors(logging.Handler):
    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._thread = threading.get_ident()
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            error = record.exc_info[1] if record.exc_info else None
            trace = "" if error is None else "".join(traceback.format_exception(error))
            self._found.append(f"{record.getMessage()}\n{trace}")
