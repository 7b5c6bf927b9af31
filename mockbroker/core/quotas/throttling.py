"""The throttling of clients by their quotas.

Bytes produced, bytes fetched, the time of handlers and new connections are rates of each broker
(ClientQuotaManager, ClientRequestQuotaManager, ConnectionQuotas). Changes of topics take tokens
from a bucket of the controller (ControllerMutationQuotaManager).

The clients of one quota share one *meter* (Kafka: Sensor): all connections of a user if the quota
is the user's, those with the same client id if it has both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from mockbroker.core.errors import ApiError
from mockbroker.core.quotas.rates import TokenBucket, WindowedRate, Windows, truncated
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.runtime import as_int32

PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
REQUEST, MUTATION = "request_percentage", "controller_mutation_rate"
CONNECTION = "connection_creation_rate"

# An unused meter expires after this time (InactiveSensorExpirationTimeSeconds).
METER_EXPIRY_MS = 3_600_000
# Expired meters are removed from this number on, each time that there are twice as many.
METERS_KEPT = 1_000
# Of so many, the half that rests longest is forgotten: a client may give itself a new id each time.
METERS_MAX = 100_000
_PERCENT_PER_NS = 100 / 1e9

# Pairs of entity type and name; the name None is the default entity of the type.
Entity: TypeAlias = tuple[tuple[str, str | None], ...]
Quotas: TypeAlias = Mapping[Entity, Mapping[str, float]]


class ClientIdentity(NamedTuple):
    """The identity that selects a quota: the user name without its type, and the client id."""

    user: str
    client_id: str


class _Limit(NamedTuple):
    """The quota of a client, and its meter."""

    value: float
    meter: ClientIdentity


K = TypeVar("K")
M = TypeVar("M", WindowedRate, TokenBucket)


class _Meters(dict[K, M]):
    """Meters by key."""

    __slots__ = ("_look_at",)

    def __init__(self) -> None:
        super().__init__()
        self._look_at = METERS_KEPT  # the number at which to look for those that nobody uses

    def make_room(self, now_ms: int) -> None:
        """Forget meters that nobody uses, before there is a new one."""
        if len(self) < self._look_at:
            return
        for key in [k for k, meter in self.items() if now_ms - meter.last_ms >= METER_EXPIRY_MS]:
            del self[key]
        if len(self) >= METERS_MAX:
            by_rest = sorted(self, key=lambda key: self[key].last_ms)
            for key in by_rest[: len(by_rest) // 2]:
                del self[key]
        self._look_at = min(METERS_MAX, max(METERS_KEPT, 2 * len(self)))


class Throttling:
    """The meters of a cluster's clients, and their throttle times.

    `config_int` gives the value of a broker config. Times are the cluster's, in ms.
    """

    def __init__(self, quotas: Quotas, config_int: Callable[[str], int]) -> None:
        self._quotas = quotas
        self.windows = Windows.configured(config_int)
        self._mutation_windows = Windows.configured(config_int, "controller.")
        self._limits: dict[tuple[str, ClientIdentity], _Limit | None] = {}
        self._rates: _Meters[tuple[str, int, ClientIdentity], WindowedRate] = _Meters()
        self._buckets: _Meters[ClientIdentity, TokenBucket] = _Meters()
        # By quota: the number of responses with a throttle time, and the sum of these.
        self.throttled: dict[str, int] = {}
        self.throttled_ms: dict[str, int] = {}

    def quotas_changed(self) -> None:
        """Look up the quotas of clients again; the measurements do not change."""
        self._limits.clear()

    def reset_measurements(self) -> None:
        """Reset the measurements; the counts of throttled responses stay."""
        self._rates.clear()
        self._buckets.clear()

    def remove_broker(self, broker_id: int) -> None:
        """Drop the measurements of one broker; the controller's buckets stay."""
        for key in [key for key in self._rates if key[1] == broker_id]:
            del self._rates[key]

    # -- recording ---------------------------------------------------------------------------------

    def produced(self, broker_id: int, client: ClientIdentity, size: int, now_ms: int) -> int:
        """Record a Produce of `size` bytes; returns the throttle time in ms."""
        return as_int32(self._record(PRODUCE, broker_id, client, size, now_ms))

    def fetched(self, broker_id: int, client: ClientIdentity, size: int, now_ms: int) -> int:
        """Record the response of a Fetch; returns the throttle time in ms.

        With a throttle time the response is empty and not recorded.
        """
        wait_ms = as_int32(self._record(FETCH, broker_id, client, size, now_ms))
        if wait_ms > 0:
            self.unrecord_fetch(broker_id, client, size, now_ms)
        return wait_ms

    def unrecord_fetch(
        self, broker_id: int, client: ClientIdentity, size: int, now_ms: int
    ) -> None:
        """Undo the record of a Fetch whose response is not sent."""
        self._record(FETCH, broker_id, client, -size, now_ms)

    def handled(self, broker_id: int, client: ClientIdentity, spent_ns: int, now_ms: int) -> int:
        """Record the time of a handler; returns the throttle time, at most one window."""
        percent = spent_ns * _PERCENT_PER_NS
        # As in ClientRequestQuotaManager, the bound comes before the cast to an int.
        wait_ms = self._record(REQUEST, broker_id, client, percent, now_ms)
        return min(wait_ms, self.windows.window_ms)

    def connected(self, broker_id: int, address: str, now_ms: int) -> int:
        """Record a new connection; returns the delay before it is closed, 0 if it is accepted.

        A refused connection is not recorded.
        """
        client = ClientIdentity(address, "")
        limit = self._limit(CONNECTION, client)
        if limit is None:
            return 0
        rate = self._rate(CONNECTION, broker_id, limit.meter, now_ms)
        rate.record(1, now_ms)
        wait_ms = rate.throttle_ms(limit.value, now_ms)
        if wait_ms > 0:
            rate.record(-1, now_ms)
        return min(wait_ms, self.windows.window_ms)

    def mutate(self, client: ClientIdentity, partitions: int, now_ms: int, *, strict: bool) -> int:
        """Take tokens for created or deleted partitions; returns the throttle time in ms.

        A strict quota raises ThrottledError if the bucket is negative before. A permissive quota
        accepts all changes.
        """
        limit = self._limit(MUTATION, client)
        if limit is None:
            return 0
        bucket = self._buckets.get(limit.meter)
        if bucket is None:
            self._buckets.make_room(now_ms)
            bucket = self._buckets[limit.meter] = TokenBucket(self._mutation_windows)
        if strict:
            wait_ms = as_int32(bucket.throttle_ms(limit.value, now_ms))
            if wait_ms > 0:
                raise ThrottledError(wait_ms)
            bucket.take(partitions, limit.value, now_ms)
            return 0
        bucket.take(partitions, limit.value, now_ms)
        return as_int32(bucket.throttle_ms(limit.value, now_ms))

    def record_throttle(self, quota: str, wait_ms: int) -> None:
        """Count a response with a throttle time."""
        self.throttled[quota] = self.throttled.get(quota, 0) + 1
        self.throttled_ms[quota] = self.throttled_ms.get(quota, 0) + wait_ms

    def fetchable_bytes(self, client: ClientIdentity, wanted: int) -> int:
        """The bytes, at most `wanted`, of a Fetch that is not throttled by its own size."""
        limit = self._limit(FETCH, client)
        if limit is None:
            return wanted
        samples, window_ms = self.windows
        return min(wanted, truncated(limit.value * (samples - 1) * window_ms / 1000))

    def limits_fetches(self, client: ClientIdentity) -> bool:
        return self._limit(FETCH, client) is not None

    @property
    def meters(self) -> int:
        """The number of meters."""
        return len(self._rates) + len(self._buckets)

    # -- meters ------------------------------------------------------------------------------------

    def _record(
        self, quota: str, broker_id: int, client: ClientIdentity, value: float, now_ms: int
    ) -> int:
        limit = self._limit(quota, client)
        if limit is None:
            return 0
        rate = self._rate(quota, broker_id, limit.meter, now_ms)
        rate.record(value, now_ms)
        return rate.throttle_ms(limit.value, now_ms)

    def _rate(self, quota: str, broker_id: int, meter: ClientIdentity, now_ms: int) -> WindowedRate:
        key = (quota, broker_id, meter)
        rate = self._rates.get(key)
        if rate is None:
            self._rates.make_room(now_ms)
            rate = self._rates[key] = WindowedRate(self.windows, now_ms)
        return rate

    def _limit(self, quota: str, client: ClientIdentity) -> _Limit | None:
        key = (quota, client)
        try:
            return self._limits[key]
        except KeyError:
            if len(self._limits) >= METERS_KEPT:
                self._limits.clear()
            limit = self._limits[key] = self._find(quota, client)
            return limit

    def _find(self, quota: str, client: ClientIdentity) -> _Limit | None:
        """The first quota by precedence (DefaultQuotaCallback.quotaMetricTags)."""
        if quota == CONNECTION:
            return self._find_address(client)
        names = {"user": client.user, "client-id": client.client_id}
        for types in _PRECEDENCE:
            entity = tuple((kind, names[kind] if named else None) for kind, named in types)
            value = self._quotas.get(entity, {}).get(quota)
            if value is not None:
                kinds = [kind for kind, _ in types]
                # A part that the quota does not have is empty, so all its values share the meter.
                parts = (name if kind in kinds else "" for kind, name in names.items())
                return _Limit(value, ClientIdentity(*parts))
        return None

    def _find_address(self, client: ClientIdentity) -> _Limit | None:
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
    """The parsed address, for comparisons. Raises ValueError for text that is none."""
    from ipaddress import ip_address

    return ip_address("127.0.0.1" if text == "localhost" else text)


# By precedence; False is the default entity of the type.
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
    """A strict quota is exceeded; the throttle time is `wait_ms`."""

    def __init__(self, wait_ms: int) -> None:
        super().__init__(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self.wait_ms = wait_ms
