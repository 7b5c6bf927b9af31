"""The parts of a cluster whose time can be moved on alone are found by name."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster


@pytest.mark.parametrize("name", ["retention", "compaction", "groups", "transactions"])
def test_every_part_begins_at_the_clusters_time(name: str) -> None:
    cluster = Cluster(now_ms=lambda: 5000)
    assert cluster.time_scopes.find(name).now_ms() == 5000


@pytest.mark.parametrize("name", ["", "logs", "group", "Retention"])
def test_an_unknown_part_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"there are 'retention', 'compaction', 'groups', 'group:ID'"
    ):
        Cluster(now_ms=lambda: 5000).time_scopes.find(name)


def test_a_group_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"there is no group 'nobody'; groups: none yet"):
        Cluster(now_ms=lambda: 5000).time_scopes.find("group:nobody")
