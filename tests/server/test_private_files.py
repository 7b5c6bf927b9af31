"""Only the owner can read files with keys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mockbroker.server.private_files import write_private

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX")


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    write_private(tmp_path / "ca.key", b"key")
    assert mode_of(tmp_path / "ca.key") == 0o600
    assert (tmp_path / "ca.key").read_bytes() == b"key"


def test_a_file_that_others_could_read_is_closed_to_them_before_the_key_is_in_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ca.key"
    path.write_bytes(b"an older and longer key")
    path.chmod(0o644)
    write_private(path, b"key")
    assert mode_of(path) == 0o600
    assert path.read_bytes() == b"key"
