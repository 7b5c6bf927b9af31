"""Go programs of ours, built once into `.cache/go/`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.maven import CACHE, hash_of, once


class GoError(RuntimeError):
    """Go is missing or did not build; the message says which and why."""


def build(module: Path, package: str, name: str) -> Path:
    """Build `package` of the module in folder `module`; return the program's path.

    The modules it needs come from wherever Go's own settings say. Raises GoError.
    """
    go = shutil.which("go")
    if go is None:
        raise GoError("go is not on the PATH")
    sources = sorted(module.rglob("*.go"))
    target = CACHE / "go" / f"{name}-{hash_of([*sources, module / 'go.mod', module / 'go.sum'])}"
    with once(target) as scratch:
        if scratch is not None:
            done = subprocess.run(
                [go, "build", "-o", str(scratch / name), package],
                cwd=module,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise GoError(f"go build {package} failed in {module}:\n{done.stderr}")
    return target / name
