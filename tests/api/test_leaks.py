"""Clusters that come and go in one process leave nothing there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.api.leaks import WAYS, Held


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [pytest.param(50), pytest.param(1_000, marks=pytest.mark.slow)])
def test_clusters_leave_no_descriptor_no_thread_and_no_object(way: str, count: int) -> None:
    """Less than one object for two clusters: caches of the process may grow a little.

    In a process of its own: what earlier tests have started would be counted as well.
    """
    command = [sys.executable, "-m", "tests.api.leaks", way, str(count)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=240)
    before, after = (Held(*each) for each in json.loads(done.stdout))
    assert after.descriptors == before.descriptors
    assert after.threads == before.threads
    assert after.objects - before.objects < count / 2
