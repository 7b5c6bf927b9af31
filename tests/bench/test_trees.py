"""Two trees serve side by side, and each kind of request has a ratio."""

from __future__ import annotations

import shutil

import pytest

from bench.trees import ROOT, compare, serving, tree_of

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(), reason="no git repository"
)
KINDS = ["Metadata", "Produce", "Fetch", "ListOffsets", "OffsetCommit", "OffsetFetch", "Heartbeat"]


def test_each_kind_of_request_is_compared_in_each_round() -> None:
    with tree_of("HEAD") as tree, serving(tree) as then, serving(ROOT) as now:
        ratios = compare(then, now, rounds=2, requests=5)
    assert list(ratios) == KINDS
    assert all(len(found) == 2 and min(found) > 0 for found in ratios.values())
    assert not tree.exists()


def test_a_commit_that_is_not_there_is_named() -> None:
    with pytest.raises(SystemExit, match="no tree of 'no-such-commit'"), tree_of("no-such-commit"):
        pass
