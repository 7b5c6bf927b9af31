"""The metrics that subscriptions request of a client, and the subscription id.

A *subscription* is a config resource of type CLIENT_METRICS: prefixes of metric names, an interval,
and selectors of clients. A client pushes the union of those that match it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mockbroker.core.configs.defs import CLIENT_METRICS_CONFIGS
from mockbroker.core.hashing.java_hash import string_hash, uuid_hash
from mockbroker.core.patterns import compile_pattern
from mockbroker_protocol.records._crc32c import crc32c

DEFAULT_INTERVAL_MS = 300_000
ALL_METRICS = "*"


class RequestedMetrics(NamedTuple):
    """Prefixes of metrics, in the order of the response, and the push interval."""

    metrics: tuple[str, ...]
    interval_ms: int


def requested_metrics(
    subscriptions: Mapping[str, Mapping[str, str]], client: Mapping[str, str]
) -> RequestedMetrics:
    """The metrics that subscriptions, by name, request of a client with these attributes."""
    interval_ms = DEFAULT_INTERVAL_MS
    metrics: dict[str, None] = {}
    for configs in subscriptions.values():
        if not _matches(_texts(configs, "match"), client):
            continue
        metrics |= dict.fromkeys(_java_order(_texts(configs, "metrics")))
        interval = CLIENT_METRICS_CONFIGS["interval.ms"].parse(
            configs.get("interval.ms", str(DEFAULT_INTERVAL_MS))
        )
        assert isinstance(interval, int)
        interval_ms = min(interval_ms, interval)
    if ALL_METRICS in metrics:
        return RequestedMetrics((ALL_METRICS,), interval_ms)
    return RequestedMetrics(_java_order(metrics), interval_ms)


def subscription_id(requested: RequestedMetrics, instance_id: bytes) -> int:
    """The CRC-32C of the requested metrics, mixed with Java's hash of the client's id."""
    text = f"[{', '.join(requested.metrics)}]{requested.interval_ms}"
    value = crc32c(text.encode()) ^ uuid_hash(instance_id)
    return value - (1 << 32) if value & 0x80000000 else value


def _texts(configs: Mapping[str, str], name: str) -> tuple[str, ...]:
    value = CLIENT_METRICS_CONFIGS[name].parse(configs.get(name, ""))
    assert isinstance(value, tuple)
    return value


def _matches(selectors: Iterable[str], client: Mapping[str, str]) -> bool:
    """Whether each selector, `client_software_name=.*Java.*`, matches its whole attribute."""
    for selector in selectors:
        name, _, expression = selector.partition("=")
        attribute = client.get(name.strip())
        if attribute is None or not compile_pattern(expression.strip()).fullmatch(attribute):
            return False
    return True


def _java_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Distinct texts in the order of a Java HashSet, on which the response and the id depend."""
    distinct = list(dict.fromkeys(texts))
    buckets = 16
    while len(distinct) > buckets * 3 // 4:
        buckets *= 2
    return tuple(sorted(distinct, key=lambda text: _spread(string_hash(text)) & (buckets - 1)))


def _spread(value: int) -> int:
    value &= 0xFFFFFFFF
    return value ^ (value >> 16)
