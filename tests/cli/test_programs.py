"""Programs beside a cluster: they end with this process, and not before."""

from __future__ import annotations

import os
import sys

import pytest
import trio

from mockbroker.cli.programs import run_program


def test_a_program_outlives_the_threads_of_trio(monkeypatch: pytest.MonkeyPatch):
    """Linux sends the signal of a parent's death when the thread that started a program ends."""
    monkeypatch.setattr("trio._core._thread_cache.IDLE_TIMEOUT", 0.001)
    program = [sys.executable, "-c", "raise SystemExit(7)"]
    assert trio.run(run_program, program, dict(os.environ)) == 7
