"""A pytest that a test starts to look at the tests' own tools."""

from __future__ import annotations

import pytest

from tests.house.lint import ROOT


def use_only(monkeypatch: pytest.MonkeyPatch, *plugins: str) -> None:
    """Processes of pytest find the tests' modules, and load pytest-xdist and these plugins alone.

    To import all that are installed takes most of their time.
    """
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", ",".join(["xdist.plugin", *plugins]))
