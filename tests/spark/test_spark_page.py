"""Run the examples of docs/howto/spark.md: tests on one session, commands in own processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.doc_blocks import ROOT, PageRunner, blocks_of
from tests.support.doc_examples import examples_of

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")]

# Rows of the checklist that the examples show.
ROWS = {
    "test_a_crash_costs_nothing": ["S338"],
    "test_every_order_is_billed": ["S328"],
    "test_records_go_between_plan_and_fetch": ["S339"],
    "test_retention_overtakes_a_query_that_was_away": ["S339"],
    "test_two_of_three_brokers_are_down": ["S338"],
    "test_a_batch_that_fails_halfway_is_written_again": ["S266"],
}

for _name, _example in examples_of("howto/spark.md").items():
    globals()[_name] = pytest.mark.covers(*ROWS[_name])(_example) if _name in ROWS else _example


def test_the_programs_of_the_page_run_as_they_stand(tmp_path: Path) -> None:
    """All but its tests, which are run above, one by one."""
    runner = PageRunner(tmp_path, timeout_s=600)  # Spark starts slowly where much else runs
    try:
        for block in blocks_of((ROOT / "docs" / "howto/spark.md").read_text(encoding="utf-8")):
            if not block.text.startswith("# test_"):
                runner.run(block)
    finally:
        runner.close()
