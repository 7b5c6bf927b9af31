"""A whole cluster with its real connection code, in virtual time and in an order that a seed gives.

    async def main():
        async with simulated_cluster(brokers=3, topics={"orders": 3}) as sim:
            stream = await sim.connect(1)  # a trio stream to broker 1
            ...
            return sim.journal_hash()

    assert virtual_run(main, seed=7) == virtual_run(main, seed=7)

The brokers serve as they do over TCP, down to the frames; only the network is in memory. Clients
are tasks of the same run: trio clients of your own, or scripts (`run_scripts`).
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
"""When a simulation begins: 2025-01-01 00:00 UTC."""
_NEVER_S = -1.0


class VirtualClusterClock(ClusterClock):
    """The clock of a cluster in a virtual run: as any other, without asking trio which run it is.

    A cluster asks for the time some twenty times for each request.
    """

    __slots__ = ("_read_ms", "_read_s", "_virtual")

    def __init__(self, virtual: VirtualClock, epoch_ms: int) -> None:
        super().__init__(epoch_ms)
        self._virtual = virtual
        # The time as it was read last, and what the run's clock said then.
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
        """The cluster itself. Its methods are its actions: `cluster.pause_broker(1)`."""
        return self.server.cluster

    @property
    def now_ms(self) -> int:
        """The cluster's time, in ms since the epoch."""
        return self.server.clock.now_ms()

    async def connect(self, node_id: int, listener: str | None = None) -> MemoryStream:
        """A connection to a broker, on its first listener or the one named.

        Raises ConnectionRefusedError where the broker is not there or does not listen.
        """
        name = listener or self.server.config.listeners[0].name
        host = self.server.socket_servers.get(node_id)
        port = None if host is None else host.port(name)
        return await self.network.connect(NO_PORT if port is None else port)

    async def sleep(self, ms: float) -> None:
        """Let so many ms of the cluster's time pass."""
        await self.clock.sleep(ms / 1000)

    def act(self, action: str, **arguments: object) -> None:
        """Carry out a cluster action by name, as rules do: `act("stop_broker", broker=1)`.

        Raises ValidationError that names a wrong argument, and ActionError or ApiError where it
        cannot be done.
        """
        from mockbroker.core.actions import find_action, parse_action

        self.cluster.perform(find_action(action), parse_action(action, arguments))

    def add_rule(self, rule: Mapping[str, object]) -> str:
        """Add a rule, or a plan with `rules` and `timeline`; its name. Raises ValidationError."""
        from mockbroker.core.faults.engine import engine_of
        from mockbroker.core.faults.rules import parse_plan

        engine = engine_of(self.cluster)
        plan = parse_plan(rule, engine.free_name())
        engine.add(plan)
        return plan.name

    def journal_hash(self) -> str:
        """SHA-256 over the journal: every request, answer, append and event, with their times.

        Two runs with the same hash did the same. Raises RuntimeError where no journal is kept.
        """
        journal = self.cluster.runtime.journal
        if journal is None:
            raise RuntimeError("this cluster keeps no journal")
        digest = hashlib.sha256()
        for entry in journal.since()[1]:
            digest.update(msgspec.msgpack.encode(entry, enc_hook=_plain))
        return digest.hexdigest()


def _plain(value: Any) -> object:
    """What stands in the journal and msgpack does not know."""
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
    `configs`. `wires` says how bytes travel. `seed` is that of the run, unless another is given.
    Raises RuntimeError outside of a virtual run and ServerError for a config that cannot be.
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
