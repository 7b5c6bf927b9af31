"""Files that hold keys."""

from __future__ import annotations

from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.chmod(0o600)  # an existing file may be open to others
    path.write_bytes(data)
