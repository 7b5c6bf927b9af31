"""Errors that brokers log: defects, which a simulation must not hide."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def errors_passed_to(report: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    """Pass errors that this thread's brokers log to `report`; warnings are expected.

    What `report` raises is raised where the error is logged.
    """
    thread = threading.get_ident()

    def filter_record(record: logging.LogRecord) -> bool:
        if record.thread != thread:
            return True
        if record.levelno >= logging.ERROR:
            report(record)
        return False

    log = logging.getLogger("mockbroker")
    log.addFilter(filter_record)
    try:
        yield
    finally:
        log.removeFilter(filter_record)


def sentence_of(record: logging.LogRecord, error: BaseException | None) -> str:
    """The logged message, with the place of the exception."""
    if error is None:
        return record.getMessage()
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{last.filename}:{last.lineno}"
    return f"{record.getMessage()}: {type(error).__name__}: {error} ({where})"
