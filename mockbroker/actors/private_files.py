"""Files that hold keys."""

from __future__ import annotations

from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Write a file that nobody but its owner can read, from its first byte on."""
    path.touch(mode=0o600)
    path.write_bytes(data)
