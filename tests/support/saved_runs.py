"""A run of hours that was stopped goes on from a file, as long as the code is the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec


def save(progress: msgspec.Struct, path: Path) -> None:
    """Replace the file: a run that is killed meanwhile leaves the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(progress))
    os.replace(new, path)


def code_hash(root: Path, names: Iterable[str]) -> str:
    """A hash of files, and of the files in folders: of their names and bytes. Both are given as
    they are named from `root` on.
    """
    total = hashlib.sha256()
    for name in names:
        for path in sorted((root / name, *(root / name).rglob("*"))):
            if path.is_file() and "__pycache__" not in path.parts:
                total.update(f"{name}/{path.relative_to(root / name)}\0".encode())
                total.update(path.read_bytes())
    return total.hexdigest()
