"""Files that hold keys."""

from __future__ import annotations

from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, from the first byte on."""
    path.touch(mode=0o600)
    path.chmod(0o600)  # a file of this name may be there, and open to others
    path.write_bytes(data)
