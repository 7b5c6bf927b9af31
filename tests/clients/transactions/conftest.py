from __future__ import annotations

from functools import partial

import pytest

from tests.support.python_transactions import PRODUCERS, Make
from tests.support.tour import POMS
from tests.support.transactional_clients import FranzGo, Java, Tours
from tests.support.watched import kafka, log

__all__ = ["kafka", "log"]

OTHERS = [
    *(pytest.param(f"java-{version}", marks=pytest.mark.java) for version in POMS),
    pytest.param("franz-go", marks=pytest.mark.go),
]


@pytest.fixture(params=list(PRODUCERS))
def make(request: pytest.FixtureRequest) -> Make:
    """Opens transactional producers of one of the Python clients."""
    return PRODUCERS[request.param]


@pytest.fixture(params=[*PRODUCERS, *OTHERS])
def make_any(request: pytest.FixtureRequest, tours: Tours) -> Make:
    """Opens transactional producers of one of all clients: Java's 3.9 speaks the first protocol
    of transactions, Java's 4.3 and franz-go the second.
    """
    return _maker(request.param, tours)


@pytest.fixture(params=[*(name for name in PRODUCERS if name != "kafka-python"), *OTHERS])
def make_outliving(request: pytest.FixtureRequest, tours: Tours) -> Make:
    """Opens producers of the clients that outlive their coordinator.

    kafka-python 3.0 does not: when the dead coordinator refuses its connection, its
    ``Sender._maybe_send_pending_request`` looks for another one, but drops the request it was about
    to send (it leaves its loop with the old node still set, so that nothing queues the request
    again), and commit_transaction() waits for ever. A coordinator that moves and stays alive
    does it no harm.
    """
    return _maker(request.param, tours)


@pytest.fixture(params=["confluent-kafka", *OTHERS])
def make_recovering(request: pytest.FixtureRequest, tours: Tours) -> Make:
    """Opens producers of the clients that recover by themselves (KIP-360).

    aiokafka knows nothing of it, and kafka-python 3.0 asks for its next epoch before it aborts,
    which it then refuses to do.
    """
    return _maker(request.param, tours)


def _maker(client: str, tours: Tours) -> Make:
    if client == "franz-go":
        return FranzGo
    if client.startswith("java-"):
        return partial(Java, tours[client.removeprefix("java-")])
    return PRODUCERS[client]
