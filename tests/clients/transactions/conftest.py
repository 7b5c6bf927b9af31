from __future__ import annotations

import pytest

from tests.support.python_transactions import PRODUCERS, Make
from tests.support.watched import kafka, log

__all__ = ["kafka", "log"]


@pytest.fixture(params=list(PRODUCERS))
def make(request: pytest.FixtureRequest) -> Make:
    """Opens transactional producers of one of the Python clients."""
    return PRODUCERS[request.param]
