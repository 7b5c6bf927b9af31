"""The limits of a broker's connections and of their rate (Kafka's ConnectionQuotas).

A broker with `max.connections` connections accepts no more until one is closed: the next clients
wait in the backlog of the port, as they do after `max.connection.creation.rate`. A listener has
such limits of its own, `listener.name.NAME.max.connections` and so on; without them those of the
broker hold for it too. An address with `max.connections.per.ip` connections is refused. So is any
client when few file descriptors are left: the admin API, journals and data directories need theirs.

The listener for the brokers' own requests is *protected* where there are several listeners: only
its own limits hold for it. A broker that is full accepts on it all the same, and closes the
connection of another listener that was idle longest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mockbroker.core.configs.defs import BROKER_CONFIGS, ConfigValue
from mockbroker.core.errors import ConfigError
from mockbroker.core.quotas.rates import WindowedRate, Windows
from mockbroker.server.network.descriptors import DESCRIPTORS, descriptors_for_clients
from mockbroker.server.network.pause_gate import PauseGate

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.server.config import ListenerSpec
    from mockbroker.server.network.acceptor import AcceptedTransport
    from mockbroker.server.network.stats import Stats

MAX_CONNECTIONS = "max.connections"
PER_ADDRESS = "max.connections.per.ip"
CREATION_RATE = "max.connection.creation.rate"
UNLIMITED = (1 << 31) - 1


class ListenerQuota:
    """The connections of one listener. `gate` is shut while it accepts none.

    `own` are the listener's configs from the start of the broker; the broker's dynamic configs
    outrank them.
    """

    def __init__(
        self, quotas: ConnectionQuotas, listener: ListenerSpec, own: Mapping[str, ConfigValue]
    ) -> None:
        self.name = listener.name
        self.gate = PauseGate()
        self.count = 0
        self.shut_until_ms = 0
        self.rate: WindowedRate | None = None
        self.prefix = listener.config_prefix
        self._quotas = quotas
        self._own = own

    def limit(self, name: str) -> int:
        """The listener's limit: its own, or that of the broker."""
        text = self._quotas.dynamic(self.prefix + name)
        if text is not None:
            try:
                value = BROKER_CONFIGS[name].parse(text)
            except ConfigError:
                value = None  # as if it were not set
            if isinstance(value, int):
                return value
        own = self._own.get(name)
        return own if isinstance(own, int) else self._quotas.limit(name)

    def full_by(self) -> str | None:
        """The limit that lets the listener accept no connection now, if any."""
        quotas = self._quotas
        if self.count >= self.limit(MAX_CONNECTIONS):
            is_broker_wide = self.limit(MAX_CONNECTIONS) == quotas.limit(MAX_CONNECTIONS)
            return MAX_CONNECTIONS if is_broker_wide else self.prefix + MAX_CONNECTIONS
        if not quotas.is_protected(self) and quotas.total >= quotas.limit(MAX_CONNECTIONS):
            return MAX_CONNECTIONS
        return CREATION_RATE if quotas.now_ms() < self.shut_until_ms else None


class ConnectionQuotas:
    """The connections of one broker."""

    def __init__(self, cluster: Cluster, node_id: int, stats: Stats) -> None:
        self.total = 0
        self.now_ms = cluster.runtime.now_ms
        self._cluster = cluster
        self._node_id = node_id
        self._stats = stats
        self._listeners: dict[str, ListenerQuota] = {}
        self._by_address: dict[str, int] = {}
        self._rate: WindowedRate | None = None
        cluster.configs.on_changed.append(self._adjust)

    def add_listener(self, listener: ListenerSpec, own: Mapping[str, ConfigValue]) -> None:
        """Count the connections of a listener, which has these configs of its own."""
        self._listeners[listener.name] = ListenerQuota(self, listener, own)

    def gate(self, listener: str) -> PauseGate:
        """The gate of a listener."""
        return self._listeners[listener].gate

    def is_protected(self, listener: ListenerQuota) -> bool:
        """Whether the limits of the whole broker do not hold for a listener."""
        if len(self._listeners) < 2:
            return False
        configs = self._cluster.configs
        wanted = configs.get("inter.broker.listener.name")
        return listener.name == (wanted or configs.get("security.inter.broker.protocol"))

    def exceeded_by(self, accepted: AcceptedTransport, address: str) -> str | None:
        """The limit that a new connection of `address` would exceed, if any."""
        descriptor = accepted.descriptor
        if descriptor is not None and descriptor >= descriptors_for_clients():
            return DESCRIPTORS
        if self._by_address.get(address, 0) >= self._limit_of(address):
            return PER_ADDRESS
        return None

    def opened(self, listener: str, address: str) -> int:
        """Count a new connection; the ms to wait before it is served."""
        quota = self._listeners[listener]
        self.total += 1
        quota.count += 1
        self._by_address[address] = self._by_address.get(address, 0) + 1
        quota.rate, wait_ms = self._throttle_ms(quota.rate, quota.limit(CREATION_RATE))
        if not self.is_protected(quota):
            self._rate, broker_ms = self._throttle_ms(self._rate, self.limit(CREATION_RATE))
            wait_ms = max(wait_ms, broker_ms)
        if wait_ms:
            quota.shut_until_ms = self.now_ms() + wait_ms
            self._cluster.runtime.timers.call_at(quota.shut_until_ms, self._adjust)
        self._adjust()
        return wait_ms

    def evicts(self, listener: str) -> bool:
        """Whether a new connection of `listener` takes the place of another listener's."""
        return self.total > self.limit(MAX_CONNECTIONS) and self.is_protected(
            self._listeners[listener]
        )

    def closed(self, listener: str, address: str) -> None:
        """A connection that was counted has ended."""
        self.total -= 1
        self._listeners[listener].count -= 1
        left = self._by_address[address] - 1
        if left:
            self._by_address[address] = left
        else:
            del self._by_address[address]
        self._adjust()

    def _adjust(self) -> None:
        for quota in self._listeners.values():
            limit = quota.full_by()
            if limit is None:
                quota.gate.open()
            elif not quota.gate.shut:
                self._stats.exceeded(limit)
                quota.gate.close()

    def _limit_of(self, address: str) -> int:
        """`max.connections.per.ip.overrides` has limits for single addresses."""
        overrides = str(self._cluster.config(f"{PER_ADDRESS}.overrides"))
        for each in overrides.split(",") if overrides else ():
            name, _, limit = each.rpartition(":")
            if name.strip() == address:
                return int(limit)
        return self.limit(PER_ADDRESS)

    def _throttle_ms(
        self, rate: WindowedRate | None, limit: int
    ) -> tuple[WindowedRate | None, int]:
        """Record a connection: the rate, and the ms until it is at the limit again."""
        if limit >= UNLIMITED:
            return None, 0
        now_ms = self.now_ms()
        windows = Windows.configured(self._cluster.config_int)
        if rate is None:
            rate = WindowedRate(windows, now_ms)
        rate.record(1, now_ms)
        if limit == 0:
            return rate, windows.window_ms
        return rate, min(rate.throttle_ms(limit, now_ms), windows.window_ms)

    def limit(self, name: str) -> int:
        """A limit of the broker."""
        value = self._cluster.configs.get_for(self._node_id, name)
        assert isinstance(value, int)
        return value

    def dynamic(self, name: str) -> str | None:
        """A dynamic config of the broker that is no broker config by its whole name."""
        return self._cluster.configs.dynamic(self._node_id, name)
