"""The parts of a cluster whose time can be advanced alone are found by name."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.timing.clock_domains import find_domain


@pytest.mark.parametrize("name", ["retention", "compaction", "groups", "transactions"])
def test_every_part_begins_at_the_clusters_time(name: str) -> None:
    cluster = Cluster(now_ms=lambda: 5000)
    assert find_domain(cluster, name).now_ms() == 5000


@pytest.mark.parametrize("name", ["", "logs", "group", "Retention"])
def test_an_unknown_part_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"there are 'retention', 'compaction', 'groups', 'group:ID'|did you mean"
    ):
        find_domain(Cluster(now_ms=lambda: 5000), name)


def test_a_group_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"there is no group 'nobody'; groups: none yet"):
        find_domain(Cluster(now_ms=lambda: 5000), "group:nobody")
