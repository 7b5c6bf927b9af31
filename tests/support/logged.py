"""What mockbroker logged in a test."""

from __future__ import annotations

import logging

import pytest


def logged(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """The records of mockbroker's loggers: libraries of clients may write at any moment."""
    return [each for each in caplog.records if each.name.partition(".")[0] == "mockbroker"]
