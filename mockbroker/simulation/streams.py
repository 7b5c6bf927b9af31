"""A whole cluster with its real connection code, in virtual time; a seed decides the task order.

    async def main():
        async with simulated_cluster(brokers=3, topics={"orders": 3}) as sim:
            stream = await sim.connect(1)  # a trio stream to broker 1
            ...
            return sim.journal_hash()

    assert virtual_run(main, seed=7) == virtual_run(main, seed=7)

The brokers handle frames as over TCP; only the network is in memory. Clients are tasks of the same
run: your own trio clients, or scripts.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from mockbroker.server.clock.cluster_clock import HAIR_MS, ClusterClock
from mockbroker.server.cluster_server import ClusterServer, open_server
from mockbroker.server.config import ServerConfig, ServerError, TopicSpec
from mockbroker.simulation.memory_network import NO_PORT, WIRES, MemoryNetwork, MemoryStream, Wires
from mockbroker.simulation.virtual_run import VirtualClock, virtual_clock, virtual_run

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

__all__ = ["SimulatedCluster", "Wires", "simulated_cluster", "virtual_run"]

EPOCH_MS = 1_735_689_600_000
"""The start time of a simulation: 2025-01-01 00:00 UTC."""
_NEVER_S = -1.0


class VirtualClusterClock(ClusterClock):
    """The clock of a cluster in a virtual run. It caches the time, because each request reads it
    about twenty times.
    """

    __slots__ = ("_read_ms", "_read_s", "_virtual")

    def __init__(self, virtual: VirtualClock, epoch_ms: int) -> None:
        super().__init__(epoch_ms)
        self._virtual = virtual
        # The last time read, and the run's time then.
        self._read_ms = epoch_ms
        self._read_s = _NEVER_S

    def now_ms(self) -> int:
        """As `ClusterClock.now_ms`."""
        now_s = self._virtual.now_s
        if now_s != self._read_s:
            self._read_s = now_s
            self._read_ms = self._epoch_ms + int((now_s - self._started_at) * 1000 + HAIR_MS)
        return self._read_ms

    def jump(self, by_ms: int) -> None:
        """As `ClusterClock.jump`."""
        super().jump(by_ms)
        self._read_s = _NEVER_S


class SimulatedCluster:
    """A cluster in a virtual run; made by `simulated_cluster`."""

    def __init__(
        self, server: ClusterServer, network: MemoryNetwork, clock: VirtualClock, seed: int
    ) -> None:
        self.server = server
        self.network = network
        self.clock = clock
        self.seed = seed

    @property
    def cluster(self) -> Cluster:
        """The cluster. Its actions are methods: `cluster.pause_broker(1)`."""
        return self.server.cluster

    @property
    def now_ms(self) -> int:
        """The cluster's time, in ms since the epoch."""
        return self.server.clock.now_ms()

    async def connect(self, node_id: int, listener: str | None = None) -> MemoryStream:
        """A connection to a broker, on `listener` or on its first one.

        Raises ConnectionRefusedError if the broker does not exist or does not listen.
        """
        name = listener or self.server.config.listeners[0].name
        host = self.server.socket_servers.get(node_id)
        port = None if host is None else host.port(name)
        return await self.network.connect(NO_PORT if port is None else port)

    async def sleep(self, ms: float) -> None:
        """Sleep for so many ms of the cluster's time."""
        await self.clock.sleep(ms / 1000)

    def act(self, action: str, **arguments: object) -> None:
        """Carry out a cluster action by name, as rules do: `act("stop_broker", node=1)`.

        Raises ValidationError for an invalid argument, and ActionError or ApiError if it cannot be
        carried out.
        """
        from mockbroker.core.actions import find_action, parse_action

        self.cluster.perform(find_action(action), parse_action(action, arguments))

    def add_rule(self, rule: Mapping[str, object]) -> str:
        """Add a rule, or a plan with `rules` and `timeline`; returns its name.

        Raises ValidationError.
        """
        from mockbroker.core.faults.engine import engine_of
        from mockbroker.core.faults.rules import parse_plan

        engine = engine_of(self.cluster)
        plan = parse_plan(rule, engine.free_name())
        engine.add(plan)
        return plan.name

    def journal_hash(self) -> str:
        """The SHA-256 of the journal: all requests, answers, appends and events with their times.

        Two runs with equal hashes are equal. Raises RuntimeError without a journal.
        """
        journal = self.cluster.runtime.journal
        if journal is None:
            raise RuntimeError("this cluster keeps no journal")
        digest = hashlib.sha256()
        for entry in journal.since()[1]:
            digest.update(msgspec.msgpack.encode(entry, enc_hook=_plain))
        return digest.hexdigest()


def _plain(value: Any) -> object:
    """The plain form of journal values that msgpack cannot encode."""
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return repr(value)


@asynccontextmanager
async def simulated_cluster(
    config: ServerConfig | None = None,
    *,
    seed: int | None = None,
    brokers: int = 3,
    topics: Mapping[str, int] | None = None,
    configs: Mapping[str, str] | None = None,
    wires: Wires = WIRES,
) -> AsyncIterator[SimulatedCluster]:
    """A cluster for the length of the block, inside of `virtual_run`.

    It is started from `config`, or from `brokers`, `topics` ({name: partitions}) and broker
    `configs`. `wires` are the properties of the network. The default of `seed` is that of the run.
    Raises RuntimeError outside of a virtual run, and ServerError for an invalid config.
    """
    clock = virtual_clock()
    seed = clock.seed if seed is None else seed
    if config is None:
        replicas = min(brokers, 3)
        config = ServerConfig(
            brokers=brokers,
            topics=[TopicSpec(name, count, replicas) for name, count in (topics or {}).items()],
            configs=configs or {},
            seed=seed,
        )
    if any(listener.is_tls for listener in config.listeners):
        raise ServerError("a network in memory carries no TLS; use PLAINTEXT or SASL_PLAINTEXT")
    network = MemoryNetwork(clock, random.Random(f"{seed}/wires"), wires)
    cluster_clock = VirtualClusterClock(clock, EPOCH_MS)

    def real_ns() -> int:
        return cluster_clock.now_ms() * 1_000_000

    async with open_server(config, network=network, real_ns=real_ns, clock=cluster_clock) as server:
        yield SimulatedCluster(server, network, clock, seed)
