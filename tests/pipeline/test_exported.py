"""The report on an export, as the process of its own that the admin server runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import runpy, sys
sys.modules[{module!r}] = None
runpy.run_module("mockbroker.pipeline.exported", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["numpy", "pyarrow"])
def test_what_is_not_installed_is_named_with_its_extra(module: str) -> None:
    """`make run` installs the cluster alone, and its console has a button for the audit."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(module=module)],
        input=b"",
        capture_output=True,
        check=False,
    )
    told = done.stderr.decode()
    assert done.returncode == 1
    assert told.count("\n") == 1
    assert module in told
    assert "[pipeline]" in told
