"""The command line, called as a function against a cluster of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mockbroker import Cluster
from mockbroker.cli import main

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `mockbroker` with these arguments; no cluster is known to it unless it is told of one."""
    monkeypatch.delenv("MOCKBROKER_BOOTSTRAP", raising=False)

    def invoke(*args: object, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(main, [str(arg) for arg in args], input=stdin)

    return invoke


@pytest.fixture
def on_cluster(run: Run, mock_kafka: Cluster, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `mockbroker` on `mock_kafka`, and expect it to succeed unless told otherwise."""
    monkeypatch.setenv("MOCKBROKER_BOOTSTRAP", mock_kafka.bootstrap_servers)

    def invoke(*args: object, stdin: str | bytes | None = None, status: int = 0) -> Result:
        result = run(*args, stdin=stdin)
        assert result.exit_code == status, result.output
        return result

    return invoke


def lines_of_json(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def table(result: Result) -> list[list[str]]:
    """The cells of a printed table, row by row, its head first."""
    return [line.split() for line in result.stdout.splitlines() if line.strip()]
