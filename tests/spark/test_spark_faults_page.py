"""The examples of docs/howto/spark-faults.md, on the session that all tests of Spark share."""

from __future__ import annotations

import pytest

from tests.support.doc_examples import examples_of

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")]

# Rows of the checklist that they show.
ROWS = {
    "test_records_go_between_plan_and_fetch": ["S339"],
    "test_retention_overtakes_a_query_that_was_away": ["S339"],
    "test_two_of_three_brokers_are_down": ["S338"],
    "test_a_batch_that_fails_halfway_is_written_again": ["S266"],
}

for _name, _example in examples_of("howto/spark-faults.md").items():
    globals()[_name] = pytest.mark.covers(*ROWS[_name])(_example) if _name in ROWS else _example
