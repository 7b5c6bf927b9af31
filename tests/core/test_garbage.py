"""The collector pauses while much is made, and goes on as it was."""

from __future__ import annotations

import gc

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.garbage import no_collections


@pytest.fixture
def collector():
    was_enabled = gc.isenabled()
    yield
    if was_enabled:
        gc.enable()
    else:
        gc.disable()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_it_was_afterwards(enabled: bool) -> None:
    if enabled:
        gc.enable()
    else:
        gc.disable()
    pauses: list[bool] = []

    def fail() -> None:
        with no_collections():
            pauses.append(not gc.isenabled())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert pauses == [True]
    assert gc.isenabled() is enabled


@pytest.mark.usefixtures("collector")
def test_nothing_is_collected_while_a_broker_stops() -> None:
    cluster = Cluster()
    cluster.create_topic("many", 300, 3)
    collections: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            collections.append(info["generation"])

    gc.collect()
    gc.enable()
    gc.callbacks.append(note)
    try:
        cluster.stop_broker(2)
        during = len(collections)
    finally:
        gc.callbacks.remove(note)
    assert len(cluster.topics["many"].partitions[0].own_replicas) == 1
    assert during <= 1  # the one that comes right afterwards
