"""Our broker answers as the real one does, request by request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.handlers.base import APIS, RequestContext
from mockbroker_protocol import ApiKey
from tests.differential.normalise import Normaliser, load_rules
from tests.differential.registry import Case, load_cases
from tests.differential.session import Session
from tests.support.real_kafka import NO_RETENTION, RealKafka

pytestmark = [pytest.mark.real_kafka, pytest.mark.java, pytest.mark.xdist_group("real_kafka")]

CASES = load_cases()
# Both peers get these, so that neither's defaults for tests show.
CONFIGS = {
    **NO_RETENTION,
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
    # Cases look at every record of the states of share partitions.
    "share.coordinator.state.topic.prune.interval.ms": "3600000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    # The records of cases are old, and the two peers would begin a round of retention at different
    # times.
    "log.retention.ms": "-1",
    # One request at a time. A real broker answers a ShareFetch with nothing, long before its wait
    # is over, if another thread appends while it looks at the log (`DelayedShareFetch`): with the
    # default of eight threads 48 of 2,970 did when the append came at once, with one thread none.
    "num.io.threads": "1",
}


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[str, int]]:
    with RealKafka(configs=CONFIGS) as kafka:
        yield kafka.addresses[1]


@pytest.fixture(scope="module")
def ours() -> Iterator[Cluster]:
    # The Metadata that creates a topic has it in its answer otherwise.
    configs = {**CONFIGS, "mockbroker.auto.created.at.once": "false"}
    with Cluster(brokers=1, configs=configs) as kafka:
        yield kafka


def play(case: Case, address: tuple[str, int]) -> list[object]:
    """Run a case against one peer; its exchanges, normalised."""
    session = Session(case.name, address, 1)
    try:
        case.play(session)
    finally:
        session.close()
    normaliser = Normaliser(load_rules())
    return [normaliser.exchange(exchange) for exchange in session.exchanges]


def differences(real: object, ours: object, path: str = "") -> Iterator[str]:
    """One line for each leaf that is not equal: where, what the real broker says, what ours."""
    if isinstance(real, dict) and isinstance(ours, dict) and real.keys() == ours.keys():
        for key in real:
            yield from differences(real[key], ours[key], f"{path}.{key}")
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, (expected, found) in enumerate(zip(real, ours, strict=True)):
            yield from differences(expected, found, f"{path}[{index}]")
    elif real != ours:
        yield f"{path}: real {real!r}, ours {ours!r}"


def check_alike(case: Case, real: tuple[str, int], ours: Cluster) -> None:
    """Play a case with both peers, and fail with the first differences of their answers."""
    theirs = play(case, real)
    mine = play(case, ours.endpoint(1))
    assert theirs, "a case that exchanges nothing shows nothing"
    found = list(differences(theirs, mine))
    if found:
        pytest.fail(f"{len(found)} differences in {case.name}:\n" + "\n".join(found[:40]), False)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if each.slow else ())
        for name, each in sorted(CASES.items())
    ],
)
def test_the_answers_are_those_of_the_real_broker(
    name: str, real: tuple[str, int], ours: Cluster
) -> None:
    """Every exchange of the case is equal but for the committed list of fields."""
    check_alike(CASES[name], real, ours)


def test_a_handler_made_wrong_on_purpose_is_noticed(
    real: tuple[str, int], ours: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If ListOffsets were off by one, the cases that ask for offsets would fail."""
    served = APIS[int(ApiKey.LIST_OFFSETS)]
    right = served.handle

    def wrong(context: RequestContext, request: Any) -> object:
        response: Any = right(context, request)
        for topic in response.topics:
            for partition in topic.partitions:
                partition.offset += 1
        return response

    case = CASES["list_offsets_special_values"]
    expected = play(case, real)
    assert play(case, ours.endpoint(1)) == expected
    monkeypatch.setattr(served, "handle", wrong)
    assert play(case, ours.endpoint(1)) != expected
