"""Releases: the highest versions we cap at are those of that release's own classes."""

from __future__ import annotations

import pytest

from mockbroker.core.metadata.profiles import profile_of
from tests.support.java_pipe import JavaPipe

pytestmark = pytest.mark.java

# Plug-ins decide whether a broker takes telemetry, so brokers of all releases may lack it.
TELEMETRY = {71, 72}
# InitProducerId v6 and others are in the classes before brokers offer them.
STABLE = "highestStable"


def highest_versions(oracle: JavaPipe) -> dict[int, int]:
    """API key -> highest version that a broker of the oracle's release offers."""
    return {
        api["key"]: api[STABLE]
        for api in oracle.ask_one("apis")["apis"]
        if "BROKER" in api["listeners"] and api[STABLE] >= api["lowest"]
    }


def test_the_newest_release(kafka43: JavaPipe) -> None:
    ours = profile_of("4.3").max_versions
    theirs = highest_versions(kafka43)
    assert {k: v for k, v in ours.items() if k not in TELEMETRY} == {
        k: v for k, v in theirs.items() if k not in TELEMETRY
    }


def test_the_last_release_before_4(kafka39: JavaPipe) -> None:
    ours = profile_of("3.9").max_versions
    theirs = highest_versions(kafka39)
    assert {k: v for k, v in ours.items() if k not in TELEMETRY} == {
        k: v for k, v in theirs.items() if k not in TELEMETRY
    }
