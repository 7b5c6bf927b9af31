"""Node programs of ours with what their package-lock.json names, installed into `.cache/node/`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.maven import CACHE, hash_of, once

INSTALL_TIMEOUT_S = 300


class NodeError(RuntimeError):
    """Node or npm is missing or did not install; the message says which and why."""


def install(package: Path) -> Path:
    """Copy the folder `package` beside its installed dependencies; return the copy.

    The packages come from wherever npm's own settings say: the lock names none. Raises NodeError.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NodeError("node and npm are not both on the PATH")
    files = sorted([*package.glob("*.js"), *package.glob("*.json")])
    target = CACHE / "node" / f"{package.name}-{hash_of(files)}"
    with once(target) as scratch:
        if scratch is not None:
            for file in files:
                shutil.copy(file, scratch)
            done = subprocess.run(
                [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
                cwd=scratch,
                capture_output=True,
                text=True,
                timeout=INSTALL_TIMEOUT_S,
                check=False,
            )
            if done.returncode != 0:
                raise NodeError(f"npm ci failed in {package}:\n{done.stdout}{done.stderr}")
    return target
