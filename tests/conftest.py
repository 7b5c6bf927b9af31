"""What holds for every test: options, groups, which skips are allowed, which rows are shown."""

from __future__ import annotations

import os

import hypothesis
import pytest

from tests.support import covers, policy
from tests.support.maven import CACHE

# What tests have fetched, and the programs that they start, is kept in the checkout.
os.environ.setdefault("MOCKBROKER_CACHE", str(CACHE))

# A randomised failure prints the blob that replays it; two busy cores make deadlines meaningless.
# CI tries the same examples each time, so that a change is judged by what it changed; everybody's
# own runs go on looking for new ones.
hypothesis.settings.register_profile(
    "mockbroker", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI"))
)
hypothesis.settings.load_profile("mockbroker")


def pytest_addoption(parser: pytest.Parser) -> None:
    covers.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(policy.Policy(), "mockbroker-policy")
    config.pluginmanager.register(covers.Covers(config), "mockbroker-covers")
