"""Which quota holds for whom, whose meter it is measured by, and how long one waits for it."""

from __future__ import annotations

import math

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.quotas import throttling as throttlings
from mockbroker.core.quotas.client_quotas import ClientQuotas, entity_of
from mockbroker.core.quotas.rates import WindowedRate
from mockbroker.core.quotas.throttling import (
    METER_EXPIRY_MS,
    METERS_KEPT,
    ClientIdentity,
    ThrottledError,
    Throttling,
)
from mockbroker_protocol import ErrorCode

NOW_MS = 1_700_000_000_000
WINDOWS: dict[str, int] = {
    "quota.window.num": 11,
    "quota.window.size.seconds": 1,
    "controller.quota.window.num": 11,
    "controller.quota.window.size.seconds": 1,
}
ALICE = ClientIdentity("alice", "app")

# By precedence, the strongest first (the table of Kafka's documentation).
LEVELS: list[dict[str, str | None]] = [
    {"user": "alice", "client-id": "app"},
    {"user": "alice", "client-id": None},
    {"user": "alice"},
    {"user": None, "client-id": "app"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "app"},
    {"client-id": None},
]


def quotas_of(*levels: tuple[dict[str, str | None], dict[str, float]]) -> ClientQuotas:
    quotas = ClientQuotas(WINDOWS.__getitem__)
    for entity, values in levels:
        quotas.alter(entity_of(entity.items()), values, validate_only=False)
    return quotas


def throttling_of(*levels: tuple[dict[str, str | None], dict[str, float]]) -> Throttling:
    throttling = quotas_of(*levels).throttling
    assert throttling is not None
    return throttling


def wait_of(throttling: Throttling, client: ClientIdentity = ALICE, size: int = 20_000) -> int:
    return throttling.produced(1, client, size, NOW_MS)


def test_without_quotas_nothing_is_measured():
    quotas = quotas_of()
    assert quotas.throttling is None
    quotas.alter(entity_of([("user", "u")]), {"producer_byte_rate": 1.0}, validate_only=True)
    assert quotas.throttling is None


@pytest.mark.parametrize("strongest", range(len(LEVELS)), ids=[str(level) for level in LEVELS])
def test_the_most_specific_quota_holds(strongest):
    """20,000 bytes over ten windows are 2,000 a second; the wait tells the limit it was under."""
    levels = [
        (level, {"producer_byte_rate": 100.0 + number})
        for number, level in enumerate(LEVELS)
        if number >= strongest
    ]
    limit = 100 + strongest
    expected = int((2_000 - limit) / limit * 10_000 + 0.5)
    assert wait_of(throttling_of(*levels)) == expected


def test_another_quota_of_the_same_entity_does_not_hide_a_weaker_one():
    throttling = throttling_of(
        ({"user": "alice"}, {"consumer_byte_rate": 1.0}),
        ({"client-id": "app"}, {"producer_byte_rate": 1_000.0}),
    )
    assert wait_of(throttling) == 10_000


@pytest.mark.parametrize(
    ("entity", "same", "other"),
    [
        ({"user": "alice"}, ClientIdentity("alice", "second"), None),
        ({"client-id": "app"}, ClientIdentity("bob", "app"), None),
        ({"user": "alice", "client-id": "app"}, ALICE, None),
        ({"user": None}, ClientIdentity("alice", "second"), ClientIdentity("bob", "app")),
        ({"client-id": None}, ClientIdentity("bob", "app"), ClientIdentity("alice", "second")),
        ({"user": None, "client-id": None}, ALICE, ClientIdentity("alice", "second")),
        ({"user": "alice", "client-id": None}, ALICE, ClientIdentity("alice", "second")),
    ],
)
def test_those_whom_a_quota_speaks_of_share_a_meter(entity, same, other):
    """5,000 bytes twice are at 1,000 a second; the one more is what somebody waits for."""
    throttling = throttling_of((entity, {"producer_byte_rate": 1_000.0}))
    assert wait_of(throttling, ALICE, 5_000) == 0
    assert wait_of(throttling, same, 5_000) == 0
    if other is not None:
        assert wait_of(throttling, other, 10_000) == 0
    assert wait_of(throttling, ALICE, 1_000) == 1_000


def test_whom_no_quota_speaks_of_does_not_wait():
    throttling = throttling_of(({"user": "alice"}, {"producer_byte_rate": 1.0}))
    assert wait_of(throttling, ClientIdentity("bob", "app"), 10**9) == 0


def test_each_broker_measures_for_itself():
    throttling = throttling_of(({"user": "alice"}, {"producer_byte_rate": 1_000.0}))
    assert throttling.produced(1, ALICE, 10_000, NOW_MS) == 0
    assert throttling.produced(2, ALICE, 10_000, NOW_MS) == 0
    assert throttling.produced(2, ALICE, 1_000, NOW_MS) == 1_000


def test_what_was_measured_outlives_a_change_of_the_quota():
    quotas = quotas_of(({"user": "alice"}, {"producer_byte_rate": 1_000.0}))
    assert quotas.throttling is not None
    assert wait_of(quotas.throttling, size=10_000) == 0
    entity = entity_of([("user", "alice")])
    quotas.alter(entity, {"producer_byte_rate": 100.0}, validate_only=False)
    assert wait_of(quotas.throttling, size=0) == 90_000
    quotas.alter(entity, {"producer_byte_rate": None}, validate_only=False)
    assert wait_of(quotas.throttling, size=10**9) == 0


def test_a_fetch_that_is_not_sent_does_not_count():
    throttling = throttling_of(({"user": "alice"}, {"consumer_byte_rate": 1_000.0}))
    assert throttling.fetched(1, ALICE, 10_000, NOW_MS) == 0
    assert throttling.fetched(1, ALICE, 1_000, NOW_MS) == 1_000
    assert throttling.fetched(1, ALICE, 1_000, NOW_MS) == 1_000
    assert throttling.fetched(1, ALICE, 1_000, NOW_MS + 12_000) == 0


def test_a_fetch_brings_no_more_than_all_windows_but_one_hold():
    throttling = throttling_of(({"user": "alice"}, {"consumer_byte_rate": 1_000.0}))
    assert throttling.fetchable_bytes(ALICE, 50_000_000) == 10_000
    assert throttling.fetchable_bytes(ALICE, 500) == 500
    assert throttling.fetchable_bytes(ClientIdentity("bob", ""), 50_000_000) == 50_000_000


def test_handlers_that_take_long_are_waited_for_no_longer_than_a_window():
    """Half a second of ten is 5 % of one thread."""
    throttling = throttling_of(({"user": "alice"}, {"request_percentage": 5.0}))
    assert throttling.handled(1, ALICE, 500_000_000, NOW_MS) == 0
    assert throttling.handled(1, ALICE, 1_000_000, NOW_MS) == 20
    assert throttling.handled(1, ALICE, 900_000_000, NOW_MS) == 1_000


def test_strict_mutations_are_refused_while_the_bucket_is_in_debt():
    """The bucket holds eleven tokens; a request may take more, the next one pays for it."""
    throttling = throttling_of(({"user": "alice"}, {"controller_mutation_rate": 1.0}))
    assert throttling.mutate(ALICE, 13, NOW_MS, strict=True) == 0
    for _ in range(2):
        with pytest.raises(ThrottledError) as refused:
            throttling.mutate(ALICE, 1, NOW_MS, strict=True)
        assert (refused.value.error, refused.value.wait_ms) == (
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            2_000,
        )
    assert throttling.mutate(ALICE, 1, NOW_MS + 2_000, strict=True) == 0
    assert throttling.mutate(ClientIdentity("bob", "app"), 100, NOW_MS, strict=True) == 0


def test_permissive_mutations_pass_and_are_waited_for():
    throttling = throttling_of(({"user": "alice"}, {"controller_mutation_rate": 2.0}))
    assert throttling.mutate(ALICE, 22, NOW_MS, strict=False) == 0
    assert throttling.mutate(ALICE, 1, NOW_MS, strict=False) == 500
    assert throttling.mutate(ALICE, 1, NOW_MS, strict=False) == 1_000


def test_connections_of_an_address_come_as_fast_as_its_quota_says():
    throttling = throttling_of(
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 1.0}),
        ({"ip": None}, {"connection_creation_rate": 2.0}),
    )
    waits = [throttling.connected(1, "10.0.0.1", NOW_MS) for _ in range(12)]
    assert waits == [0] * 10 + [1_000] * 2
    assert [throttling.connected(1, "10.0.0.2", NOW_MS) for _ in range(21)] == [0] * 20 + [500]
    assert throttling.connected(1, "10.0.0.1", NOW_MS + 12_000) == 0


def test_addresses_are_compared_as_addresses():
    throttling = throttling_of(({"ip": "localhost"}, {"connection_creation_rate": 1.0}))
    assert sum(throttling.connected(1, "127.0.0.1", NOW_MS) > 0 for _ in range(12)) == 2
    throttling = throttling_of(({"ip": "2001:DB8:0::1"}, {"connection_creation_rate": 1.0}))
    assert sum(throttling.connected(1, "2001:db8::1", NOW_MS) > 0 for _ in range(12)) == 2


def test_meters_that_nobody_uses_are_forgotten():
    throttling = throttling_of(({"client-id": None}, {"producer_byte_rate": 1.0}))
    for number in range(METERS_KEPT):
        throttling.produced(1, ClientIdentity("u", f"client {number}"), 1, NOW_MS)
    assert throttling.meters == METERS_KEPT
    throttling.produced(1, ClientIdentity("u", "late"), 1, NOW_MS + METER_EXPIRY_MS)
    assert throttling.meters == 1


def test_a_new_meter_does_not_look_at_all_others(monkeypatch: pytest.MonkeyPatch):
    """A client that gives itself a new id in each request would stop the cluster."""
    looks = 0
    last_ms = WindowedRate.last_ms.fget
    assert last_ms is not None

    def counted(rate: WindowedRate) -> int:
        nonlocal looks
        looks += 1
        return last_ms(rate)

    monkeypatch.setattr(WindowedRate, "last_ms", property(counted))
    throttling = throttling_of(({"client-id": None}, {"producer_byte_rate": 1.0}))
    for number in range(5 * METERS_KEPT):
        throttling.produced(1, ClientIdentity("u", f"client {number}"), 1, NOW_MS)
    assert throttling.meters == 5 * METERS_KEPT
    assert looks < 2 * throttling.meters


def test_beyond_a_number_of_meters_those_that_rest_longest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(throttlings, "METERS_MAX", 3_000)
    throttling = throttling_of(({"client-id": None}, {"producer_byte_rate": 1.0}))
    for number in range(10_000):
        throttling.produced(1, ALICE, 1, NOW_MS + number)
        throttling.produced(1, ClientIdentity("u", f"client {number}"), 1, NOW_MS + number)
        assert throttling.meters <= 3_000
    assert throttling.produced(1, ALICE, 1, NOW_MS + 10_000) > 0


def test_a_broker_that_was_stopped_has_measured_nobody():
    cluster = Cluster(now_ms=lambda: NOW_MS)
    entity = entity_of([("user", "alice")])
    cluster.quotas.alter(entity, {"producer_byte_rate": 1_000.0}, validate_only=False)
    throttling = cluster.quotas.throttling
    assert throttling is not None
    for broker_id in (1, 2):
        assert throttling.produced(broker_id, ALICE, 11_000, NOW_MS) == 1_000
    cluster.stop_broker(1)
    cluster.start_broker(1)
    assert throttling.produced(1, ALICE, 10_000, NOW_MS) == 0
    assert throttling.produced(2, ALICE, 0, NOW_MS) == 1_000


def test_what_was_measured_can_be_forgotten():
    """As when a cluster goes back to a snapshot; what was told stays counted."""
    quotas = quotas_of()
    quotas.reset_measurements()
    rates = {"producer_byte_rate": 1_000.0, "controller_mutation_rate": 1.0}
    quotas.alter(entity_of([("user", "alice")]), rates, validate_only=False)
    assert quotas.throttling is not None
    quotas.throttling.record_throttle("producer_byte_rate", 1)
    for _ in range(2):
        assert wait_of(quotas.throttling, size=10_000) == 0
        assert quotas.throttling.mutate(ALICE, 20, NOW_MS, strict=True) == 0
        quotas.reset_measurements()
    assert quotas.throttling.throttled == {"producer_byte_rate": 1}


def test_what_clients_were_told_is_counted_by_quota():
    throttling = throttling_of(({"user": "alice"}, {"producer_byte_rate": 1.0}))
    throttling.record_throttle("producer_byte_rate", 300)
    throttling.record_throttle("producer_byte_rate", 200)
    assert throttling.throttled == {"producer_byte_rate": 2}
    assert throttling.throttled_ms == {"producer_byte_rate": 500}


@pytest.mark.parametrize("limit", [math.nan, 5e-324, 1e-7, 1.0, 1e15])
def test_any_quota_gives_a_time_that_an_answer_can_have(limit: float) -> None:
    """A long time is cast to an int, as by ClientQuotaManager: its low 32 bits are left."""
    quotas = ("producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate")
    throttling = throttling_of(({"user": "alice"}, dict.fromkeys(quotas, limit)))
    for wait_ms in (
        throttling.produced(1, ALICE, 1 << 20, NOW_MS),
        throttling.fetched(1, ALICE, 1 << 20, NOW_MS),
        throttling.mutate(ALICE, 1_000, NOW_MS, strict=False),
    ):
        assert -(2**31) <= wait_ms < 2**31


@pytest.mark.parametrize("spent_ms", range(1, 60, 7))
def test_the_wait_for_handlers_is_at_most_a_window_however_small_the_quota(spent_ms: int) -> None:
    """The bound comes before the cast: the time alone may have any low 32 bits."""
    throttling = throttling_of(({"user": "alice"}, {"request_percentage": 1e-7}))
    assert throttling.handled(1, ALICE, spent_ms * 1_000_000, NOW_MS) == 1_000
