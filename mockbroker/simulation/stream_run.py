"""The stream mode of a simulation: calls go over connections to a cluster server.

The server has the same connection code as over TCP, in virtual time; only the network is in memory.
Frames are cut, connections break, answers are late and rules change bytes as over TCP. The laws are
checked after each step of each task.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import trio

from mockbroker.handlers.base import RequestContext
from mockbroker.server.clock.cluster_clock import ClusterClock
from mockbroker.server.cluster_server import ClusterServer
from mockbroker.server.config import ServerConfig
from mockbroker.simulation import plan as plans
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.draws import Draws
from mockbroker.simulation.laws.base import NO_FAILURES, TIME_GOES_ON
from mockbroker.simulation.logged_errors import errors_passed_to, sentence_of
from mockbroker.simulation.memory_network import MemoryNetwork, Wires
from mockbroker.simulation.observed_server import ObservedServer
from mockbroker.simulation.plan import Plan
from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut
from mockbroker.simulation.stream_driver import InvalidResponse, StreamDriver, Troubles
from mockbroker.simulation.streams import SimulatedCluster, VirtualClusterClock
from mockbroker.simulation.virtual_run import VirtualClock, virtual_clock, virtual_run
from mockbroker.simulation.world import GRACE_MS, REST_MS, START_MS, Clock, LivelockError, World
from mockbroker_protocol import ApiKey

STEPS_MAX = 3_000_000  # task steps; a simulation with more does not end
FITTING = "answers parse and fit their requests"
_RULE_STEPS = (plans.ADD_RULE, plans.REMOVE_RULES, plans.RESTORE, plans.RESTART)


def run_over_streams(plan: Plan) -> tuple[World, int]:
    """Run a plan; returns its world and the number of answered requests."""

    async def main() -> tuple[World, int]:
        run = StreamRun(plan, virtual_clock())
        await run.run()
        return run.world, run.answered

    return virtual_run(main, seed=plan.seed)


class _RunClock(Clock):
    """The clock of a world whose time is that of a trio run."""

    def __init__(self, clock: ClusterClock) -> None:
        self._clock = clock

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        self._clock.jump(now_ms - self._clock.now_ms())

    @property
    def read(self) -> Callable[[], int]:
        """As `Clock.read`."""
        return self._clock.now_ms


class StreamRun(trio.abc.Instrument):
    """The run of one plan over connections."""

    def __init__(self, plan: Plan, clock: VirtualClock) -> None:
        self._plan = plan
        self._clock = clock
        self._cluster_clock = VirtualClusterClock(clock, START_MS)
        wires = Wires(plan.settings.latency_ms)
        rng = Draws(f"{plan.seed} wires")
        self._network = MemoryNetwork(clock, rng, wires)
        self.world = World(plan, _RunClock(self._cluster_clock))
        self.answered = 0
        self._lives: dict[str, int] = {}  # the number of starts of each client
        self._drivers: dict[str, StreamDriver] = {}
        self._correlation_ids = count(1)  # of all requests
        self._all_done = trio.Event()
        self._rules_changed_ms = 0
        self._steps = 0
        self._failure: BaseException | None = None
        self._scope = trio.CancelScope()
        self._serving = trio.CancelScope()
        self._sim = SimulatedCluster(self._served(), self._network, clock, plan.seed)
        self.world.on_restarted.append(self._restarted)
        self.world.on_restored.append(self._restored)
        self.world.on_client_crashed.append(self._crashed)

    async def run(self) -> None:
        """Run the plan, then wait until the cluster is at rest."""
        with errors_passed_to(self._on_error_logged):
            trio.lowlevel.add_instrument(self)
            try:
                with self._scope:
                    async with trio.open_nursery() as self._nursery:
                        self._nursery.start_soon(self._serve, self._sim.server, self._serving)
                        await self._live()
                        self._nursery.cancel_scope.cancel()
            except BaseExceptionGroup as errors:
                self._fail(_first(errors))
            finally:
                trio.lowlevel.remove_instrument(self)
                self._sim.server.close()
        laws = self.world.laws
        if isinstance(self._failure, LivelockError):
            laws.broken(TIME_GOES_ON, str(self._failure))
        elif self._failure is not None:
            raise self._failure
        else:
            laws.conclude()
        self.world.digest.add(self.world.clock.now_ms, "journal", self._sim.journal_hash())

    async def _live(self) -> None:
        world = self.world
        plan = world.plan
        start_ms = world.clock.now_ms
        for client in world.clients.values():
            self._start(client)
        for number, step in sorted(enumerate(plan.steps), key=lambda each: each[1].at_ms):
            if step.at_ms > plan.settings.duration_ms:
                break
            await self._until(start_ms + step.at_ms)
            if step.do in _RULE_STEPS:
                self._rules_changed_ms = world.clock.now_ms
            world.perform(number, step)
        await self._until(start_ms + plan.settings.duration_ms)
        if self._any_rules():
            self._rules_changed_ms = world.clock.now_ms
        world.end_faults()
        for driver in self._drivers.values():
            driver.end_troubles()
        # The last members of share groups begin when the other clients have ended.
        for awaited_only in (True, False):
            with trio.move_on_after(GRACE_MS / 1000):
                await self._clients_done()
            for name, driver in list(self._drivers.items()):
                if world.clients[name].is_awaited or not awaited_only:
                    driver.crash()
        for rest_ms in REST_MS:
            await self._sim.sleep(rest_ms)
            if not world.unsettled():
                break

    async def _until(self, at_ms: int) -> None:
        """Sleep until `at_ms`; the clock may be advanced meanwhile."""
        while (left_ms := at_ms - self.world.clock.now_ms) > 0:
            await self._sim.sleep(left_ms)

    async def _clients_done(self) -> None:
        while self._drivers:
            self._all_done = trio.Event()
            await self._all_done.wait()

    # -- the laws ----------------------------------------------------------------------------------

    def after_task_step(self, task: trio.lowlevel.Task) -> None:  # noqa: ARG002
        """Check the laws. trio calls this and would swallow exceptions."""
        self._steps += 1
        try:
            if self.world.laws.changed:
                self.world.laws.look()
            if self._steps == STEPS_MAX:
                self._fail(LivelockError(f"it does not end after {STEPS_MAX:,} steps of tasks"))
        except Exception as error:
            self._fail(error)

    def on_request(self, context: RequestContext, request: Any) -> None:
        """As `Observer.on_request`. The client may have given up."""
        self.world.laws.on_request(self._client_of(context), _call(context, request))

    def on_response(
        self, context: RequestContext, request: Any, response: Any, *, late: bool
    ) -> None:
        """As `Observer.on_response`. An answer that its client no longer awaits is not judged."""
        client = self._client_of(context)
        driver = self._drivers.get(client.name)
        if driver is not None and driver.awaited == context.header.correlation_id:
            call = _call(context, request)
            since_ms = context.now_ms
            self.world.laws.on_response(client, call, response, since_ms=since_ms, late=late)

    def _client_of(self, context: RequestContext) -> SimulatedClient:
        """The client that sent a request: its client id is its name."""
        return self.world.clients[context.header.client_id or ""]

    def _on_error_logged(self, record: logging.LogRecord) -> None:
        """Report an error that a broker has logged."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, LivelockError):
            self._fail(error)
        else:
            self.world.laws.broken(NO_FAILURES, sentence_of(record, error))

    def _fail(self, error: BaseException) -> None:
        """End the simulation with an error."""
        if self._failure is None:
            self._failure = error
            self._scope.cancel()

    # -- clients -----------------------------------------------------------------------------------

    def _start(self, client: SimulatedClient) -> None:
        life = self._lives[client.name] = self._lives.get(client.name, 0) + 1
        seed = f"{self._plan.seed} {client.name} {life}"

        driver = StreamDriver(
            self._sim,
            client.client_id,
            Draws(f"{seed} wires"),
            Troubles(),
            self.world.laws.sent,
            partial(self._on_call_done, client),
            self._correlation_ids,
        )
        self._drivers[client.name] = driver
        self._nursery.start_soon(self._run_client, client, driver, Draws(seed))

    async def _run_client(
        self, client: SimulatedClient, driver: StreamDriver, rng: random.Random
    ) -> None:
        await driver.run(client.run(rng))
        for name, number in driver.counts.items():
            self.world.history.counts[f"wires: {name}"] += number
        if self._drivers.get(client.name) is driver:
            del self._drivers[client.name]
            self._all_done.set()

    def _on_call_done(
        self, client: SimulatedClient, call: Call, answer: object, since_ms: int
    ) -> None:
        """Count a completed call, and check its result."""
        world = self.world
        now_ms = world.clock.now_ms
        if isinstance(answer, InvalidResponse) and not self._had_rules(since_ms):
            world.laws.broken(FITTING, f"{client.name} sent {call.api_key.name}: {answer}")
        if isinstance(answer, Disconnected):
            world.history.counts["calls disconnected"] += 1
            answer = "disconnected"
        elif isinstance(answer, RequestTimedOut):
            world.history.counts["calls timed out"] += 1
            self._check_timeout(client, call, since_ms)
            answer = "timed out"
        else:
            self.answered += 1
            world.laws.on_received(client, call, answer)
        world.digest.add(now_ms, client.name, answer)

    def _check_timeout(self, client: SimulatedClient, call: Call, since_ms: int) -> None:
        """Report a call without an answer, if its broker ran all the time and no rule was in force.

        Parked requests wait for the target of an advance of the clock.
        """
        moved_on_s = self._clock.now_s - self._clock.moved_to_s
        if since_ms < self.world.clock.now_ms - moved_on_s * 1000:
            return
        if self.world.has_run_since(call.node_id, since_ms) and not self._had_rules(since_ms):
            self.world.laws.timed_out(client.name, call, since_ms)

    def _had_rules(self, since_ms: int) -> bool:
        """Whether a rule was in force since then."""
        return self._any_rules() or self._rules_changed_ms >= since_ms

    def _any_rules(self) -> bool:
        faults = self.world.cluster.faults
        return faults is not None and bool(faults.rules)

    def _crashed(self, client: SimulatedClient) -> None:
        """Kill a client's process, and start another in its place."""
        driver = self._drivers.get(client.name)
        if driver is not None:
            driver.crash()
            self._start(client)

    # -- brokers -----------------------------------------------------------------------------------

    def _served(self) -> ClusterServer:
        """A server for the world's current cluster."""
        world = self.world
        settings = self._plan.settings
        server = ObservedServer(
            ServerConfig(brokers=settings.brokers, kafka_version=settings.kafka_version),
            network=self._network,
            real_ns=self._real_ns,
            cluster=world.cluster,
            clock=self._cluster_clock,
        )
        server.observer = self
        server.bind()
        return server

    def _real_ns(self) -> int:
        return self._cluster_clock.now_ms() * 1_000_000

    async def _serve(self, server: ClusterServer, scope: trio.CancelScope) -> None:
        with scope:
            async with trio.open_nursery() as nursery:
                server.run_in(nursery)
                await trio.sleep_forever()

    def _restarted(self) -> None:
        """Replace the server, because the world has another cluster."""
        self._sim.server.close()
        self._serving.cancel()
        self._serving = trio.CancelScope()
        self._sim.server = self._served()
        self._nursery.start_soon(self._serve, self._sim.server, self._serving)

    def _restored(self) -> None:
        """Drop the answers in flight, because they belong to the discarded state."""
        for driver in self._drivers.values():
            driver.break_off()


def _call(context: RequestContext, request: Any) -> Call:
    """A request that a broker has got, as its client's call."""
    header = context.header
    node_id = context.broker.node_id
    return Call(node_id, ApiKey(header.api_key), header.api_version, request)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error in nested groups."""
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
