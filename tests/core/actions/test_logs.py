"""Actions on logs."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ActionError
from tests.support.replicas import Replicas


def test_a_leader_deletes_its_records():
    node = Replicas(replicas=[2, 3])
    node.sent("a")
    node.cluster.delete_records("t")
    assert node.partition.log_start_offset == 1


def test_without_a_leader_nobody_deletes_records():
    """Also where a broker has not heard yet that it leads no longer: it keeps its records."""
    node = Replicas(replicas=[2])
    node.sent("a")
    node.cluster.cut_network(2)
    assert node.cluster.topics["t"].partitions[0].leader_id == -1
    with pytest.raises(ActionError, match="t-0 has no leader to delete its records"):
        node.cluster.delete_records("t")
    left = node.cluster.processes[2].image.partition("t", 0)
    assert (left.leader_id, left.log_start_offset) == (2, 0)
