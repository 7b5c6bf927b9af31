"""The tables that the bench audits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.journal_tables import PLANTED, Shape, write_tables
from mockbroker.pipeline.duck import audit


@pytest.mark.parametrize("skewed", [False, True])
def test_they_have_the_planted_findings_and_no_other(tmp_path: Path, skewed: bool) -> None:
    write_tables(tmp_path, Shape(100_000, skewed=skewed))
    assert Counter(finding.anomaly for finding in audit(tmp_path)) == PLANTED
