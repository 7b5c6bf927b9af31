"""What holds for every test: options, groups, which skips are allowed, which rows are shown."""

from __future__ import annotations

import hypothesis
import pytest

from tests.support import covers, policy

# A randomised failure prints the blob that replays it; two busy cores make deadlines meaningless.
hypothesis.settings.register_profile("mockbroker", deadline=None, print_blob=True)
hypothesis.settings.load_profile("mockbroker")


def pytest_addoption(parser: pytest.Parser) -> None:
    covers.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(policy.Policy(), "mockbroker-policy")
    config.pluginmanager.register(covers.Covers(config), "mockbroker-covers")
