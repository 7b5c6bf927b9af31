"""What holds for every test: options, groups, which skips are allowed, which rows are shown."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

# `pytester` takes away the modules that its run imports, and these two cannot be imported twice.
import duckdb  # noqa: F401
import hypothesis
import numpy  # noqa: F401
import pytest

from tests.support import covers, leftovers, policy, sharing
from tests.support.maven import CACHE

# What tests have fetched, and the programs that they start, is kept in the checkout.
os.environ.setdefault("MOCKBROKER_CACHE", str(CACHE))
# Tests start pytest elsewhere, without the options of this project: see its `addopts`.
os.environ["PYTEST_ADDOPTS"] = f"{os.environ.get('PYTEST_ADDOPTS', '')} -p no:schemathesis".strip()

# A randomised failure prints the blob that replays it; two busy cores make deadlines meaningless.
# CI tries the same examples each time, so that a change is judged by what it changed; everybody's
# own runs go on looking for new ones.
hypothesis.settings.register_profile(
    "mockbroker", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI"))
)
hypothesis.settings.load_profile("mockbroker")


@pytest.fixture(scope="session")
def real_bootstrap_servers() -> Iterator[str]:
    """One real broker for all tests of clients; names of topics and groups are each test's own."""
    from tests.support.real_kafka import SHARED_CONFIGS, RealKafka

    with RealKafka(configs=SHARED_CONFIGS) as kafka:
        yield kafka.bootstrap_servers


def pytest_addoption(parser: pytest.Parser) -> None:
    sharing.add_options(parser)


# Objects between two collections of garbage. Clusters come and go with each test, and little of
# them is left when Python's 700 are made: a twentieth of the time of most tests went there.
GARBAGE_THRESHOLD = 20_000


def pytest_collection_finish() -> None:
    """Modules and tests live as long as the run: no collection of garbage need look at them."""
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, *gc.get_threshold()[1:])


def pytest_unconfigure() -> None:
    """DuckDB's library calls everything a leak that is left when Python ends."""
    gc.unfreeze()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(leftovers.LeftFiles(), "mockbroker-left-files")
    config.pluginmanager.register(leftovers.LeftThreads(), "mockbroker-left-threads")
    config.pluginmanager.register(policy.Policy(), "mockbroker-policy")
    config.pluginmanager.register(covers.Covers(), "mockbroker-covers")
    config.pluginmanager.register(sharing.Sharing(config), "mockbroker-sharing")
