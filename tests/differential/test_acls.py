"""Our authorizer lets through, hides and refuses what the real broker's does."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest

from mockbroker import Cluster
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from tests.differential.normalise import Normaliser, load_rules
from tests.differential.secured.session import CASES, USERS, AclSession
from tests.differential.test_differential import differences
from tests.support.real_kafka import NO_RETENTION
from tests.support.real_sasl import RealSaslKafka, sasl_configs

pytestmark = [pytest.mark.real_kafka, pytest.mark.java, pytest.mark.xdist_group("real_kafka")]

ROOMS = "acls admin groups records share_states shared_records tokens topics transactions"
for room in ROOMS.split():
    import_module(f"tests.differential.secured.{room}")

CONFIGS = {
    **NO_RETENTION,
    "authorizer.class.name": STANDARD_AUTHORIZER,
    # The real nodes talk to their controller over a listener that asks nobody who they are.
    "super.users": "User:admin;User:ANONYMOUS",
    "delegation.token.secret.key": "the secret of the tokens",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.share.max.share.sessions": "2",
    "group.share.max.size": "2",  # there have to be as many sessions at least
}
SLOW = {"very_many_acls_are_not_created_together"}


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[str, int]]:
    with RealSaslKafka(configs=sasl_configs(USERS) | CONFIGS) as kafka:
        yield kafka.endpoint(1)


@pytest.fixture(scope="module")
def ours() -> Iterator[tuple[str, int]]:
    with Cluster(
        brokers=1,
        security_protocol="SASL_PLAINTEXT",
        users=USERS,
        configs={**CONFIGS, "mockbroker.auto.created.at.once": "false"},
    ) as kafka:
        yield kafka.endpoint(1)


def play(name: str, address: tuple[str, int]) -> list[object]:
    """Run a case against one peer; its exchanges, normalised."""
    session = AclSession(name, address)
    try:
        try:
            CASES[name](session)
        finally:
            session.clear()
    finally:
        session.close()
    normaliser = Normaliser(load_rules())
    return [normaliser.exchange(exchange) for exchange in session.exchanges]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in sorted(CASES)],
)
def test_the_answers_are_those_of_the_real_broker(
    name: str, real: tuple[str, int], ours: tuple[str, int]
) -> None:
    """Every exchange of the case is equal but for the committed list of fields."""
    theirs, mine = play(name, real), play(name, ours)
    assert theirs, "a case that exchanges nothing shows nothing"
    found = list(differences(theirs, mine))
    if found:
        pytest.fail(f"{len(found)} differences in {name}:\n" + "\n".join(found[:40]), False)
