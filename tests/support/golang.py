"""Go programs of ours, built once into `.cache/go/`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.maven import CACHE, ROOT, hash_of, once

MODULE = ROOT / "tests" / "go"

# Go compiles its standard library and all modules first. Without optimizations that takes a third
# less, and the tour sends a few requests at a time.
_UNOPTIMIZED = ("-gcflags=all=-N -l",)


class GoError(RuntimeError):
    """Go is missing or did not build; the message says which and why."""


def tour() -> list[str]:
    """The command of franz-go's tour (`tests/go/tour`). Raises GoError."""
    return [str(build(MODULE, "./tour", "tour", _UNOPTIMIZED))]


def build(module: Path, package: str, name: str, flags: Sequence[str] = ()) -> Path:
    """Build `package` of the module in folder `module`; return the program's path.

    `flags` are those of `go build`. The modules it needs come from wherever Go's own settings say.
    Raises GoError.
    """
    go = shutil.which("go")
    if go is None:
        raise GoError("go is not on the PATH")
    sources = sorted(module.rglob("*.go"))
    files = [*sources, module / "go.mod", module / "go.sum"]
    target = CACHE / "go" / f"{name}-{hash_of(files, *flags)}"
    with once(target) as scratch:
        if scratch is not None:
            done = subprocess.run(
                [go, "build", *flags, "-o", str(scratch / name), package],
                cwd=module,
                env={**os.environ, "CGO_ENABLED": "0"},  # spares a C compiler, and its time
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise GoError(f"go build {package} failed in {module}:\n{done.stderr}")
    return target / name
