from __future__ import annotations

import pytest

from tests.support.python_transactions import PRODUCERS, Make
from tests.support.watched import kafka, log

__all__ = ["kafka", "log"]


@pytest.fixture(params=list(PRODUCERS))
def make(request: pytest.FixtureRequest) -> Make:
    """Opens transactional producers of one of the Python clients."""
    return PRODUCERS[request.param]


@pytest.fixture(params=[name for name in PRODUCERS if name != "kafka-python"])
def outliving(request: pytest.FixtureRequest) -> Make:
    """Opens producers of the clients that outlive their coordinator.

    kafka-python 3.0 does not: when the dead coordinator refuses its connection, its
    ``Sender._maybe_send_pending_request`` looks for another one, but drops the request it was about
    to send (it leaves its loop with the old node still set, so that nothing queues the request
    again), and commit_transaction() waits for ever. A coordinator that moves and stays alive
    does it no harm.
    """
    return PRODUCERS[request.param]
