"""The fast mode of a simulation: clients call the handlers directly.

One heap has all wake-ups: of clients, answers, timeouts of calls, and steps of the plan. The
cluster's timers have a heap of their own. The earliest entry of both is next; the seed decides
between entries with equal times.

This module stands for connections. A client has one connection to each broker and one call in
flight. A paused broker accepts requests and answers them later. A broker that stops closes its
connections, and parked requests stay unanswered. Rules fire as on a connection, except for those
that change the bytes of a frame.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from mockbroker.core.brokers.broker import Broker
from mockbroker.core.brokers.broker_life import PAUSED, RUNNING
from mockbroker.core.cluster import Cluster
from mockbroker.handlers.base import (
    APIS,
    NO_RESPONSE,
    Api,
    ConnectionInfo,
    EncodedResponse,
    Outcome,
    Parked,
    RequestContext,
)
from mockbroker.handlers.rows import perform
from mockbroker.server.network.routes import route_of
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.draws import Draws
from mockbroker.simulation.fast_exchange import FastExchange
from mockbroker.simulation.laws.base import TIME_GOES_ON
from mockbroker.simulation.logged_errors import errors_passed_to
from mockbroker.simulation.plan import Step
from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut, Script, Sleep
from mockbroker.simulation.world import GRACE_MS, LISTENER, REST_MS, LivelockError, World
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.headers import RequestHeader

EVENTS_MAX = 400_000  # wake-ups of one phase; more are an endless loop


class _Runner:
    """A client's script, its connections and its call in flight.

    `turn` grows whenever the script continues: wake-ups of an earlier turn are ignored.
    """

    __slots__ = ("call", "client", "connections", "ruled", "script", "since_ms", "turn")

    def __init__(self, client: SimulatedClient, script: Script) -> None:
        self.client = client
        self.script = script
        self.connections: dict[int, ConnectionInfo] = {}
        self.turn = 0
        self.call: Call | None = None
        self.since_ms = 0
        self.ruled = False  # a rule has fired for the call


class FastRun:
    """One run: it moves a world on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.clock
        self.rng = Draws(f"{world.plan.seed} driver")
        self.answered = 0
        self._heap: list[tuple[int, float, int, Callable[..., None], Any]] = []
        self._number = 0
        self._connections = 0
        self._lives: dict[str, int] = {}  # how often each client has started
        self._runners: dict[str, _Runner] = {}
        self._backlog: dict[int, list[Callable[[], None]]] = {}
        self._ended: Counter[int] = Counter()  # the ended processes of each broker
        self._muted_until_ms: dict[int, int] = {}  # by connection id
        self._responses: dict[tuple[ApiKey, int, bytes], Any] = {}  # decoded answers
        self._latency_ms = world.plan.settings.latency_ms
        world.on_restarted.append(self._restarted)
        world.on_restored.append(self._restored)
        world.on_client_crashed.append(self._crashed)
        world.cluster.on_broker_state.append(self._broker_changed)

    # -- the loop ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the plan, and then until everything is at rest. Raises an error that is logged."""
        with errors_passed_to(_raise):
            try:
                self._live()
            except LivelockError as error:
                self.world.laws.broken(TIME_GOES_ON, str(error))

    def _live(self) -> None:
        world = self.world
        plan = world.plan
        start_ms = self.clock.now_ms
        for client in world.clients.values():
            self._start(client)
        for number, step in enumerate(plan.steps):
            self._at(start_ms + step.at_ms, self._perform, (number, step))
        self._until(start_ms + plan.settings.duration_ms)
        self._heap = [each for each in self._heap if each[3] != self._perform]
        heapify(self._heap)
        world.end_faults()
        # The last members of share groups begin when the other clients have ended.
        for awaited_only in (True, False):
            self._until(self.clock.now_ms + GRACE_MS, while_any=self._runners)
            for runner in list(self._runners.values()):
                if runner.client.is_awaited or not awaited_only:
                    self._end(runner)
        for rest_ms in REST_MS:
            self._until(self.clock.now_ms + rest_ms)
            if not world.unsettled():
                break
        world.laws.conclude()

    def _until(self, end_ms: int, while_any: Mapping[str, object] | None = None) -> None:
        """Run until `end_ms`, or until `while_any` is empty."""
        if while_any is not None and not while_any:
            return
        heap, clock, world, rng = self._heap, self.clock, self.world, self.rng
        laws = world.laws
        for _ in range(EVENTS_MAX):
            timers = world.cluster.runtime.timers
            due_ms = timers.deadline_ms()
            at_ms = heap[0][0] if heap else None
            if at_ms is not None and (
                due_ms is None or at_ms < due_ms or (at_ms == due_ms and rng.random() < 0.5)
            ):
                if at_ms > end_ms:
                    break
                clock.now_ms = max(clock.now_ms, at_ms)
                _, _, _, act, argument = heappop(heap)
                act(argument)
            else:
                if due_ms is None or due_ms > end_ms:
                    break
                clock.now_ms = max(clock.now_ms, due_ms)
                timers.run_due(clock.now_ms)
            if laws.changed:
                laws.look()
            if while_any is not None and not while_any:
                return
        else:
            raise LivelockError(f"it does not end after {EVENTS_MAX:,} wake-ups")
        clock.now_ms = max(clock.now_ms, end_ms)

    def _at(self, at_ms: int, act: Callable[..., None], argument: Any) -> None:
        self._number += 1
        heappush(self._heap, (at_ms, self.rng.random(), self._number, act, argument))

    def _soon(self, act: Callable[..., None], argument: Any) -> None:
        """After the time that a message takes."""
        low, high = self._latency_ms
        self._at(self.clock.now_ms + self.rng.randint(low, high), act, argument)

    def _perform(self, what: tuple[int, Step]) -> None:
        self.world.perform(*what)

    # -- clients -----------------------------------------------------------------------------------

    def _start(self, client: SimulatedClient) -> None:
        life = self._lives[client.name] = self._lives.get(client.name, 0) + 1
        rng = Draws(f"{self.world.plan.seed} {client.name} {life}")
        runner = _Runner(client, client.run(rng))
        self._runners[client.name] = runner
        self._soon(self._go_on, (runner, 0, None))

    def _end(self, runner: _Runner) -> None:
        runner.turn += 1
        runner.script.close()
        for node_id, info in runner.connections.items():
            self._closed(node_id, info)
        runner.connections.clear()
        self._runners.pop(runner.client.name, None)

    def _crashed(self, client: SimulatedClient) -> None:
        """A client's process ends, and another one replaces it."""
        runner = self._runners.get(client.name)
        if runner is not None:
            self._end(runner)
            self._start(client)

    def _go_on(self, what: tuple[_Runner, int, object]) -> None:
        """Continue the script with an answer or an error."""
        runner, turn, value = what
        if turn != runner.turn:
            return
        runner.turn = turn = turn + 1
        try:
            if isinstance(value, Exception):
                yielded = runner.script.throw(value)
            else:
                yielded = runner.script.send(value)
        except StopIteration:
            self._end(runner)
            return
        if type(yielded) is Call:
            self._call(runner, yielded)
        else:
            assert type(yielded) is Sleep
            self._at(self.clock.now_ms + yielded.ms, self._go_on, (runner, turn, None))

    # -- calls -------------------------------------------------------------------------------------

    def _call(self, runner: _Runner, call: Call) -> None:
        runner.call = call
        runner.since_ms = now_ms = self.clock.now_ms
        runner.ruled = False
        node_id = call.node_id
        broker = self.world.cluster.processes.get(node_id)
        if broker is None or broker.state not in (RUNNING, PAUSED):
            self._drop(runner)
            return
        info = runner.connections.get(node_id)
        if info is None:
            self._connections += 1
            info = ConnectionInfo(self._connections, "127.0.0.1", 10_000 + self._connections)
            runner.connections[node_id] = info
        turn = runner.turn
        muted_until_ms = self._muted_until_ms.pop(info.id, 0)
        if muted_until_ms > now_ms:
            runner.ruled = True  # the rule of an earlier call delays this one
            self._at(now_ms + call.timeout_ms, self._time_out, (runner, turn))
            self._at(muted_until_ms, self._unmuted, (runner, turn, call, info))
            return
        if broker.state == PAUSED:
            self._at(now_ms + call.timeout_ms, self._time_out, (runner, turn))
            self._backlog.setdefault(node_id, []).append(
                lambda: self._serve(runner, turn, call, info)
            )
            return
        self._serve(runner, turn, call, info)
        if runner.turn == turn and runner.call is not None:
            self._at(now_ms + call.timeout_ms, self._time_out, (runner, turn))

    def mute(self, info: ConnectionInfo, wait_ms: int) -> None:
        """Serve no call of a connection for so many ms."""
        self._muted_until_ms[info.id] = self.clock.now_ms + wait_ms

    def _unmuted(self, what: tuple[_Runner, int, Call, ConnectionInfo]) -> None:
        runner, turn, call, info = what
        if not info.closed:
            self.when_running(call.node_id, lambda: self._serve(runner, turn, call, info))

    def _serve(self, runner: _Runner, turn: int, call: Call, info: ConnectionInfo) -> None:
        """Let the broker handle a request, also if its client no longer waits."""
        cluster = self.world.cluster
        broker = cluster.processes.get(call.node_id)
        if broker is None:
            return
        header = RequestHeader(call.api_key, call.version, turn, runner.client.client_id)
        context = RequestContext(cluster, broker, LISTENER, header, info, self.clock.now_ms)
        api = APIS[call.api_key]
        self.world.laws.on_request(runner.client, call)
        if cluster.faults is not None:
            fired = cluster.faults.evaluate(context, call.request)
            if fired is not None:
                runner.ruled = True
                route = route_of((call.api_key, call.version))
                assert route is not None
                caller = _Caller(self, runner, turn, call, context)
                exchange = FastExchange(context, call.request, route, caller)
                exchange.begin(cluster.faults, fired)
                return
        response = self.handle(context, call.request, api)
        if isinstance(response, Parked):
            if not response.done:
                context.is_late = True
                response.on_complete = partial(self._completed, runner, turn, call, response)
                return
            response = response.response
        if turn == runner.turn:
            self.world.laws.on_response(runner.client, call, response, since_ms=runner.since_ms)
        self.answer(runner, turn, call, response)

    def handle(self, context: RequestContext, request: Any, api: Api) -> Any:
        """The handler's answer, or the error response if it raises."""
        try:
            return perform(api, context, request)
        except Exception as error:
            return context.failure(request, error)

    def _completed(self, runner: _Runner, turn: int, call: Call, parked: Parked[Any]) -> None:
        if turn == runner.turn:
            self.world.laws.on_response(
                runner.client, call, parked.response, since_ms=runner.since_ms, late=True
            )
        self.when_running(call.node_id, lambda: self.answer(runner, turn, call, parked.response))

    def when_running(self, node_id: int, act: Callable[[], None]) -> None:
        """Call `act` as soon as the broker runs: at once, when it is resumed, never if it stops."""
        broker = self.world.cluster.processes.get(node_id)
        if broker is not None and broker.state == PAUSED:
            self._backlog.setdefault(node_id, []).append(act)
        else:
            act()

    def answer(self, runner: _Runner, turn: int, call: Call, response: Any) -> None:
        """Send an answer, which ends the timeout of the call."""
        if turn != runner.turn:
            return
        self.answered += 1
        digested = response
        if type(response) is EncodedResponse:
            digested = b"".join(response.parts)
            response = self._decoded(call, digested)
        elif isinstance(response, Outcome):
            if response is not NO_RESPONSE:
                self._drop(runner)
                return
            response = digested = None
        self.world.laws.on_received(runner.client, call, response)
        self.world.digest.add(self.clock.now_ms, runner.client.name, digested)
        runner.call = None
        self._soon(self._go_on, (runner, turn, response))

    def _decoded(self, call: Call, answer: bytes) -> Any:
        """An encoded answer as a struct, which clients do not change."""
        what = (call.api_key, call.version, answer)
        found = self._responses.get(what)
        if found is None:
            codec = response_codec(call.api_key, call.version)
            found, _ = codec.decode(memoryview(answer))
            self._responses[what] = found
        return found

    def _drop(self, runner: _Runner) -> None:
        """Close the client's connection."""
        assert runner.call is not None
        node_id = runner.call.node_id
        self.world.digest.add(self.clock.now_ms, runner.client.name, "disconnected")
        self.world.history.counts["calls disconnected"] += 1
        runner.call = None
        runner.turn += 1
        self._close(runner, node_id)
        self._soon(self._go_on, (runner, runner.turn, Disconnected()))

    def cut_off(self, runner: _Runner, turn: int) -> None:
        """Close the connection of a call, unless its client has gone on."""
        if turn == runner.turn and runner.call is not None:
            self._drop(runner)

    def _close(self, runner: _Runner, node_id: int) -> None:
        info = runner.connections.pop(node_id, None)
        if info is not None:
            self._closed(node_id, info)

    def _closed(self, node_id: int, info: ConnectionInfo) -> None:
        broker = self.world.cluster.processes.get(node_id)
        if broker is None:
            info.closed = True
        else:
            broker.connection_closed(info)

    def _time_out(self, what: tuple[_Runner, int]) -> None:
        runner, turn = what
        call = runner.call
        if turn != runner.turn or call is None:
            return
        self._judge_timeout(runner, call)
        self.world.digest.add(self.clock.now_ms, runner.client.name, "timed out")
        self.world.history.counts["calls timed out"] += 1
        runner.call = None
        self._close(runner, call.node_id)
        self._go_on((runner, turn, RequestTimedOut()))

    def _judge_timeout(self, runner: _Runner, call: Call) -> None:
        """A broker that ran all the time must have answered, unless a rule prevented it."""
        if self._was_free(runner, call):
            self.world.laws.timed_out(runner.client.name, call, runner.since_ms)

    def _was_free(self, runner: _Runner, call: Call) -> bool:
        """Whether the broker ran all the time since the call, and no rule fired for it."""
        return not runner.ruled and self.world.has_run_since(call.node_id, runner.since_ms)

    # -- brokers -----------------------------------------------------------------------------------

    def process_of(self, node_id: int) -> tuple[Cluster, int]:
        """A value that identifies the current process of a broker."""
        return self.world.cluster, self._ended[node_id]

    def _broker_changed(self, broker: Broker) -> None:
        node_id = broker.node_id
        if broker.state == RUNNING:
            for later in self._backlog.pop(node_id, ()):
                later()
        elif broker.state != PAUSED:
            self._ended[node_id] += 1
            self._backlog.pop(node_id, None)
            for runner in list(self._runners.values()):
                if runner.call is not None and runner.call.node_id == node_id:
                    self._drop(runner)
                else:
                    self._close(runner, node_id)

    def _restarted(self) -> None:
        self._backlog.clear()
        for runner in list(self._runners.values()):
            if runner.call is not None:
                self._drop(runner)
            for node_id in list(runner.connections):
                self._close(runner, node_id)
        self.world.cluster.on_broker_state.append(self._broker_changed)

    def _restored(self) -> None:
        """Answers in flight are of the time after the snapshot: they are lost."""
        for number, (at_ms, draw, order, act, argument) in enumerate(self._heap):
            if act == self._go_on and argument[2] is not None:
                lost = (*argument[:2], Disconnected())
                self._heap[number] = (at_ms, draw, order, act, lost)


class _Caller:
    """The client's side of a `FastExchange`, for a call with firing rules."""

    __slots__ = ("_call", "_context", "_process", "_run", "_runner", "_turn")

    def __init__(
        self, run: FastRun, runner: _Runner, turn: int, call: Call, context: RequestContext
    ) -> None:
        self._run = run
        self._runner = runner
        self._turn = turn
        self._call = call
        self._context = context
        self._process = run.process_of(call.node_id)

    def handle(self, request: Any) -> Any:
        return self._run.handle(self._context, request, APIS[self._call.api_key])

    def answer(self, response: Any) -> None:
        self._run.answer(self._runner, self._turn, self._call, response)

    def close(self) -> None:
        self._run.cut_off(self._runner, self._turn)

    def mute(self, wait_ms: int) -> None:
        self._run.mute(self._context.connection, wait_ms)

    def when_running(self, call: Callable[[], None]) -> None:
        self._run.when_running(self._call.node_id, call)

    @property
    def broker_ended(self) -> bool:
        return self._run.process_of(self._call.node_id) != self._process


def _raise(record: logging.LogRecord) -> None:
    """Raise the error of a log record: a defect ends the simulation where it shows."""
    error = record.exc_info[1] if record.exc_info else None
    raise error or AssertionError(record.getMessage())
