"""What an answer brought, batch by batch."""

from __future__ import annotations

from typing import Any

from mockbroker.pipeline.convert.batches import BatchOpener
from mockbroker.pipeline.convert.cluster_state import RunState
from mockbroker.pipeline.convert.fetching import Fetching
from mockbroker_protocol.messages.fetch import PartitionData
from tests.support.requests import batch_of


def test_a_batch_without_records_hides_none_of_those_behind_it() -> None:
    """Compaction leaves such a batch for the sake of its producer."""
    unused: Any = None
    fetching = Fetching(unused, RunState(), unused, unused, unused, BatchOpener())
    records = batch_of(b"a") + batch_of(base_offset=1, last_offset=0)
    records += batch_of(b"b", base_offset=2)
    brought = fetching._brought(PartitionData(records=bytes(records)), 0, 0)
    assert [each.tolist() for each in brought.offsets] == [[0], [2]]
    assert (brought.records, brought.next_offset) == (2, 3)
