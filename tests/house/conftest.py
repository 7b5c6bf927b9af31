"""The generators of the docs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.house.lint import ROOT

GENERATORS = ROOT / "docs" / "generate"


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Load a module of `docs/generate`, which is a program and no package."""
    monkeypatch.syspath_prepend(str(GENERATORS))
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(
            f"docs_generate_{name}", GENERATORS / f"{name}.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == GENERATORS:
            del sys.modules[name]
