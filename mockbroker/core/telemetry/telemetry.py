"""The instances of clients that push metrics, and their pushes (ClientMetricsManager).

A broker has *instances*: clients by instance id, with their requested metrics and the times of
their last requests. An instance expires when its connection closes, or after three intervals
without a request, at least one minute. The newest pushes are kept, up to a number and a size.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.brokers.client_connection import ClientConnection
from mockbroker.core.errors import ApiError
from mockbroker.core.ids import METADATA_TOPIC_ID, ZERO_UUID, uuid_text
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records.compression import CompressionType, decompress
from mockbroker_protocol.records.errors import RecordsError

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.telemetry.otlp import Point
    from mockbroker.core.telemetry.subscriptions import RequestedMetrics
    from mockbroker.core.timing.timers import Timer

# In Kafka's order of preference: zstd, lz4, gzip, snappy. Uncompressed pushes are accepted too.
ACCEPTED_COMPRESSION = (4, 3, 1, 2)
INSTANCES_MAX = 16_384  # of one broker (ClientMetricsManager.CACHE_MAX_SIZE)
EXPIRY_MS = 60_000
PUSHES_KEPT = 1_000
PUSHED_BYTES_KEPT = 16 * 1024 * 1024


class Instance:
    """One client of one broker."""

    __slots__ = (
        "attributes",
        "connection",
        "expiry",
        "instance_id",
        "last_error",
        "last_get_ms",
        "last_push_ms",
        "requested",
        "subscription_id",
        "terminating",
        "version",
    )

    def __init__(
        self,
        instance_id: bytes,
        attributes: Mapping[str, str],
        connection: ClientConnection,
        requested: RequestedMetrics,
        subscription_id: int,
        version: int,
    ) -> None:
        self.instance_id = instance_id
        self.attributes = attributes
        self.connection = connection
        self.requested = requested
        self.version = version  # of the subscriptions that `requested` comes from
        self.subscription_id = subscription_id
        self.last_get_ms = self.last_push_ms = 0
        self.terminating = False
        self.last_error = ErrorCode.NONE
        self.expiry: Timer | None = None

    def may_get(self, now_ms: int) -> bool:
        """Whether GetTelemetrySubscriptions is allowed: an interval after its last request."""
        last_ms = max(self.last_get_ms, self.last_push_ms)
        if now_ms - last_ms >= self.requested.interval_ms:
            self.last_get_ms = now_ms
            return True
        return False

    def may_push(self, now_ms: int) -> bool:
        """Whether PushTelemetry is allowed: once after a subscription, then after an interval."""
        is_first = self.last_get_ms > self.last_push_ms
        if is_first or now_ms - self.last_push_ms >= self.requested.interval_ms:
            self.last_push_ms = now_ms
            return True
        return False


class Push(NamedTuple):
    """One push of a client.

    Subscriptions select clients by `attributes`: `client_id`, `client_software_name`, …
    `metrics` are the received, compressed bytes.
    """

    time_ms: int
    broker_id: int
    instance_id: str
    principal: str
    attributes: Mapping[str, str]
    terminating: bool
    compression: int
    metrics: bytes

    def data(self, size_max: int = PUSHED_BYTES_KEPT) -> bytes:
        """The decompressed metrics (OTLP). Raises RecordsError."""
        return bytes(decompress(self.compression, self.metrics, decompressed_bytes_max=size_max))

    def points(self) -> list[Point]:
        """The numbers of the push. Raises RecordsError or OtlpError."""
        from mockbroker.core.telemetry.otlp import points

        return points(self.data())


class Telemetry:
    """The telemetry of a cluster; `pushes` has the kept pushes, the newest last."""

    def __init__(self, runtime: Runtime, configs: ClusterConfigs) -> None:
        self._runtime, self._configs = runtime, configs
        self._instances: dict[int, OrderedDict[bytes, Instance]] = {}
        self._seen: dict[str, dict[str, str]] = {}
        self._seen_at = -1
        self._version = 0
        self.pushes: deque[Push] = deque()
        self._pushed_bytes = 0
        # The number of refused requests by error.
        self.refused: dict[ErrorCode, int] = {}

    @property
    def receives(self) -> bool:
        """Whether the brokers advertise telemetry, as with a ClientTelemetry plugin."""
        return bool(self._configs.get("telemetry.receiver"))

    @property
    def size_max(self) -> int:
        return self._configs.get_int("telemetry.max.bytes")

    def instances(self, broker_id: int) -> list[Instance]:
        """The instances of a broker with an open connection."""
        known: Mapping[bytes, Instance] = self._instances.get(broker_id, {})
        return [instance for instance in known.values() if not instance.connection.closed]

    def points(self) -> Iterator[tuple[Push, Point]]:
        """All numbers of all kept pushes. Raises RecordsError or OtlpError."""
        for push in self.pushes:
            for point in push.points():
                yield push, point

    def clear(self) -> None:
        """Remove the pushes and the instances."""
        self.pushes.clear()
        self._pushed_bytes = 0
        for broker_id, known in self._instances.items():
            for instance in list(known.values()):
                self._forget(broker_id, instance)

    # -- requests ----------------------------------------------------------------------------------

    def subscribe(
        self,
        broker_id: int,
        instance_id: bytes,
        attributes: Mapping[str, str],
        connection: ClientConnection,
        now_ms: int,
    ) -> Instance:
        """The instance of a GetTelemetrySubscriptions; the zero id requests a new id.

        Raises ApiError THROTTLING_QUOTA_EXCEEDED before the interval has passed.
        """
        if instance_id == ZERO_UUID:
            instance_id = self._runtime.ids.uuid()
        instance = self._instance(broker_id, instance_id, attributes, connection, now_ms)
        if not instance.may_get(now_ms) and instance.last_error not in (
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ):
            raise self._refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        return instance

    def push(
        self, push: Push, instance_id: bytes, wanted_id: int, connection: ClientConnection
    ) -> None:
        """PushTelemetry with the subscription id `wanted_id`. Raises ApiError."""
        if instance_id in (ZERO_UUID, METADATA_TOPIC_ID):
            raise self._refusal(ErrorCode.INVALID_REQUEST)
        instance = self._instance(
            push.broker_id, instance_id, push.attributes, connection, push.time_ms
        )
        error = self._why_refused(push, instance, wanted_id)
        instance.terminating = push.terminating
        if error is None and push.metrics:
            error = self._keep(push)
        instance.last_error = error or ErrorCode.NONE
        if error is not None:
            raise self._refusal(error)

    def _why_refused(self, push: Push, instance: Instance, wanted_id: int) -> ErrorCode | None:
        if instance.terminating:
            return ErrorCode.INVALID_REQUEST
        if not instance.may_push(push.time_ms) and not push.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if wanted_id != instance.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if push.compression not in CompressionType._value2member_map_:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(push.metrics) > self.size_max:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return None

    def _keep(self, push: Push) -> ErrorCode | None:
        """Keep a push; returns an error if a receiver could not decompress it."""
        if self.receives:
            try:
                push.data(self.size_max)
            except RecordsError:
                return ErrorCode.INVALID_RECORD
        self.pushes.append(push)
        self._pushed_bytes += len(push.metrics)
        while len(self.pushes) > PUSHES_KEPT or self._pushed_bytes > PUSHED_BYTES_KEPT:
            self._pushed_bytes -= len(self.pushes.popleft().metrics)
        return None

    def _refusal(self, error: ErrorCode) -> ApiError:
        self.refused[error] = self.refused.get(error, 0) + 1
        return ApiError(error)

    # -- instances ---------------------------------------------------------------------------------

    def _instance(
        self,
        broker_id: int,
        instance_id: bytes,
        attributes: Mapping[str, str],
        connection: ClientConnection,
        now_ms: int,
    ) -> Instance:
        """The instance of a client, updated if the subscriptions have changed."""
        version = self._subscriptions_version()
        known = self._instances.setdefault(broker_id, OrderedDict())
        instance = known.get(instance_id)
        if instance is None or instance.connection.closed or instance.version < version:
            if instance is not None:
                self._forget(broker_id, instance)
            if instance is None or instance.connection.closed:
                attributes = {**attributes, "client_instance_id": uuid_text(instance_id)}
            else:
                attributes = instance.attributes
            instance = self._new_instance(instance_id, attributes, connection, version)
            known[instance_id] = instance
            if len(known) > INSTANCES_MAX:
                self._forget(broker_id, next(iter(known.values())))
        known.move_to_end(instance_id)
        if instance.expiry is not None:
            instance.expiry.cancel()
        delay_ms = max(EXPIRY_MS, 3 * instance.requested.interval_ms)
        expired = instance
        instance.expiry = self._runtime.timers.call_at(
            now_ms + delay_ms, lambda: self._forget(broker_id, expired)
        )
        return instance

    def _new_instance(
        self,
        instance_id: bytes,
        attributes: Mapping[str, str],
        connection: ClientConnection,
        version: int,
    ) -> Instance:
        # Imported here for a fast start, because few clusters have telemetry.
        from mockbroker.core.telemetry.subscriptions import requested_metrics, subscription_id

        requested = requested_metrics(self._configs.client_metrics, attributes)
        number = subscription_id(requested, instance_id)
        return Instance(instance_id, attributes, connection, requested, number, version)

    def _forget(self, broker_id: int, instance: Instance) -> None:
        if instance.expiry is not None:
            instance.expiry.cancel()
        known = self._instances[broker_id]
        if known.get(instance.instance_id) is instance:
            del known[instance.instance_id]

    def _subscriptions_version(self) -> int:
        """A number that rises with each change of the subscriptions."""
        configs = self._configs
        if configs.version != self._seen_at:
            self._seen_at = configs.version
            now = {name: dict(own) for name, own in configs.client_metrics.items()}
            if now != self._seen:
                self._seen = now
                self._version += 1
        return self._version
