"""Throttling: the requests of clients, measured against their quotas.

Bytes produced, bytes fetched, the time of handlers and new connections are rates, and each broker
measures them for itself (ClientQuotaManager, ClientRequestQuotaManager, ConnectionQuotas). Changes
to topics draw from a bucket at the controller, one for the whole cluster
(ControllerMutationQuotaManager).

The clients of one quota share one *meter*: all connections of a user if the quota is the user's,
those with the same client id if it names both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from mockbroker.core.errors import ApiError
from mockbroker.core.quotas.rates import TokenBucket, WindowedRate, Windows
from mockbroker_protocol import ErrorCode

PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
REQUEST, MUTATION = "request_percentage", "controller_mutation_rate"
CONNECTION = "connection_creation_rate"

# A meter that was not used for so long is forgotten (InactiveSensorExpirationTimeSeconds).
METER_EXPIRY_MS = 3_600_000
# Meters above this many are looked through for such ones when another is made.
METERS_KEPT = 1_000
_PERCENT_PER_NS = 100 / 1e9

# Pairs of entity type and name, by type; the name None stands for the default of the type.
Entity: TypeAlias = tuple[tuple[str, str | None], ...]
Quotas: TypeAlias = Mapping[Entity, Mapping[str, float]]


class Client(NamedTuple):
    """The user's name without its type, and the client id."""

    user: str
    client_id: str


class _Limit(NamedTuple):
    """The quota of a client, and its meter."""

    value: float
    meter: Client


M = TypeVar("M", WindowedRate, TokenBucket)


class Throttling:
    """The meters of a cluster's clients, and their throttle times.

    `config_int` gives the value of a broker config. Times are the cluster's, in ms.
    """

    def __init__(self, quotas: Quotas, config_int: Callable[[str], int]) -> None:
        self._quotas = quotas
        self.windows = Windows(
            config_int("quota.window.num"), config_int("quota.window.size.seconds") * 1000
        )
        self._mutation_windows = Windows(
            config_int("controller.quota.window.num"),
            config_int("controller.quota.window.size.seconds") * 1000,
        )
        self._limits: dict[tuple[str, Client], _Limit | None] = {}
        self._rates: dict[tuple[str, int, Client], WindowedRate] = {}
        self._buckets: dict[Client, TokenBucket] = {}
        # By quota: the number of responses with a throttle time, and the sum of these.
        self.throttled: dict[str, int] = {}
        self.throttled_ms: dict[str, int] = {}

    def quotas_changed(self) -> None:
        """Look up the quotas of clients again; the measurements stay."""
        self._limits.clear()

    def forget_measured(self) -> None:
        """Reset the measurements; the counts of throttled responses stay."""
        self._rates.clear()
        self._buckets.clear()

    def forget_broker(self, broker_id: int) -> None:
        """Drop the measurements of one broker; the controller's buckets stay."""
        for key in [key for key in self._rates if key[1] == broker_id]:
            del self._rates[key]

    # -- what clients do ---------------------------------------------------------------------------

    def produced(self, broker_id: int, client: Client, size: int, now_ms: int) -> int:
        """Count a Produce of so many bytes, as they came in; how many ms the client is to wait."""
        return self._counted(PRODUCE, broker_id, client, size, now_ms)

    def fetched(self, broker_id: int, client: Client, size: int, now_ms: int) -> int:
        """Count an answer to a Fetch; how many ms to wait, in which case it is not to be sent.

        What is not sent does not count.
        """
        wait_ms = self._counted(FETCH, broker_id, client, size, now_ms)
        if wait_ms > 0:
            self.unfetched(broker_id, client, size, now_ms)
        return wait_ms

    def unfetched(self, broker_id: int, client: Client, size: int, now_ms: int) -> None:
        """What was counted is not sent after all."""
        self._counted(FETCH, broker_id, client, -size, now_ms)

    def handled(self, broker_id: int, client: Client, spent_ns: int, now_ms: int) -> int:
        """Count the time a handler took; the wait is at most one window."""
        percent = spent_ns * _PERCENT_PER_NS
        wait_ms = self._counted(REQUEST, broker_id, client, percent, now_ms)
        return min(wait_ms, self.windows.window_ms)

    def connected(self, broker_id: int, address: str, now_ms: int) -> int:
        """Count a new connection; how many ms to leave it waiting before it is closed, else 0.

        One that is refused does not count.
        """
        client = Client(address, "")
        limit = self._limit(CONNECTION, client)
        if limit is None:
            return 0
        rate = self._rate(CONNECTION, broker_id, limit.meter, now_ms)
        rate.record(1, now_ms)
        wait_ms = rate.throttle_ms(limit.value, now_ms)
        if wait_ms > 0:
            rate.record(-1, now_ms)
        return min(wait_ms, self.windows.window_ms)

    def mutate(self, client: Client, partitions: int, now_ms: int, *, strict: bool) -> int:
        """Count partitions created or deleted; how many ms the client is to wait.

        A strict quota refuses anything while the bucket is in debt, and lets pass whatever comes
        while it is not; the others let everything pass and tell to wait. Raises ThrottledError.
        """
        limit = self._limit(MUTATION, client)
        if limit is None:
            return 0
        bucket = self._buckets.get(limit.meter)
        if bucket is None:
            _forget_idle(self._buckets, now_ms)
            bucket = self._buckets[limit.meter] = TokenBucket(self._mutation_windows)
        if strict:
            wait_ms = bucket.throttle_ms(limit.value, now_ms)
            if wait_ms > 0:
                raise ThrottledError(wait_ms)
            bucket.take(partitions, limit.value, now_ms)
            return 0
        bucket.take(partitions, limit.value, now_ms)
        return bucket.throttle_ms(limit.value, now_ms)

    def record_throttle(self, quota: str, wait_ms: int) -> None:
        """Count a response with a throttle time."""
        self.throttled[quota] = self.throttled.get(quota, 0) + 1
        self.throttled_ms[quota] = self.throttled_ms.get(quota, 0) + wait_ms

    def fetchable_bytes(self, client: Client, wanted: int) -> int:
        """So much of what is wanted as a fetch may bring without having to wait for certain."""
        limit = self._limit(FETCH, client)
        if limit is None:
            return wanted
        samples, window_ms = self.windows
        return min(wanted, int(limit.value * (samples - 1) * window_ms / 1000))

    def limits_fetches(self, client: Client) -> bool:
        return self._limit(FETCH, client) is not None

    @property
    def meters(self) -> int:
        """How many meters there are."""
        return len(self._rates) + len(self._buckets)

    # -- meters ------------------------------------------------------------------------------------

    def _counted(
        self, quota: str, broker_id: int, client: Client, value: float, now_ms: int
    ) -> int:
        limit = self._limit(quota, client)
        if limit is None:
            return 0
        rate = self._rate(quota, broker_id, limit.meter, now_ms)
        rate.record(value, now_ms)
        return rate.throttle_ms(limit.value, now_ms)

    def _rate(self, quota: str, broker_id: int, meter: Client, now_ms: int) -> WindowedRate:
        key = (quota, broker_id, meter)
        rate = self._rates.get(key)
        if rate is None:
            _forget_idle(self._rates, now_ms)
            rate = self._rates[key] = WindowedRate(self.windows, now_ms)
        return rate

    def _limit(self, quota: str, client: Client) -> _Limit | None:
        key = (quota, client)
        try:
            return self._limits[key]
        except KeyError:
            if len(self._limits) >= METERS_KEPT:
                self._limits.clear()
            limit = self._limits[key] = self._find(quota, client)
            return limit

    def _find(self, quota: str, client: Client) -> _Limit | None:
        """The first quota by precedence (DefaultQuotaCallback.quotaMetricTags)."""
        if quota == CONNECTION:
            return self._find_address(client)
        names = {"user": client.user, "client-id": client.client_id}
        for types in _PRECEDENCE:
            entity = tuple((kind, names[kind] if named else None) for kind, named in types)
            value = self._quotas.get(entity, {}).get(quota)
            if value is not None:
                kinds = [kind for kind, _ in types]
                # An empty name keeps a part out of the meter: all who differ in it share that.
                return _Limit(
                    value, Client(*(name if kind in kinds else "" for kind, name in names.items()))
                )
        return None

    def _find_address(self, client: Client) -> _Limit | None:
        try:
            here = address_of(client.user)
        except ValueError:  # a client without a socket
            here = None
        for ((kind, name), *_), quotas in self._quotas.items():
            if kind == "ip" and name is not None and address_of(name) == here:
                return _Limit(quotas[CONNECTION], client)
        default = self._quotas.get((("ip", None),))
        return None if default is None else _Limit(default[CONNECTION], client)


def address_of(text: str) -> object:
    """What tells one address from another, however it is written. Raises ValueError."""
    from ipaddress import ip_address

    return ip_address("127.0.0.1" if text == "localhost" else text)


# What is looked for first comes first; a type without its name is the default of the type.
_PRECEDENCE: tuple[tuple[tuple[str, bool], ...], ...] = (
    (("client-id", True), ("user", True)),
    (("client-id", False), ("user", True)),
    (("user", True),),
    (("client-id", True), ("user", False)),
    (("client-id", False), ("user", False)),
    (("user", False),),
    (("client-id", True),),
    (("client-id", False),),
)


class ThrottledError(ApiError):
    """A strict quota is used up for `wait_ms` more."""

    def __init__(self, wait_ms: int) -> None:
        super().__init__(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self.wait_ms = wait_ms


K = TypeVar("K")


def _forget_idle(meters: dict[K, M], now_ms: int) -> None:
    if len(meters) < METERS_KEPT:
        return
    for key in [k for k, m in meters.items() if now_ms - m.last_ms >= METER_EXPIRY_MS]:
        del meters[key]
