"""Plans of the simulator, carried out by real brokers in real time.

The scripts of the simulated clients run over TCP, each in a thread of its own; a lock lets one of
them think at a time, so that their history is in order. Steps become signals to processes and
requests of an administrator. When all is over, the logs are read from the leaders and the laws of
the history judge them.
"""

from __future__ import annotations

import random
import select
import socket
import threading
import time
import traceback
from collections import Counter
from typing import Any, NamedTuple

from mockbroker.client.connection import Connection
from mockbroker.client.errors import (
    ConnectError,
    ConnectionClosedError,
    RequestTimeoutError,
)
from mockbroker.simulation import plan as plans
from mockbroker.simulation.clients import client_of
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.clients.reading import Reading
from mockbroker.simulation.history import History
from mockbroker.simulation.laws import Violation
from mockbroker.simulation.laws.of_history import HistoryLaws
from mockbroker.simulation.plan import ClientSettings, Plan, Step
from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut, Script, Sleep
from mockbroker_protocol import ApiKey
from tests.support.real_admin import RealAdmin
from tests.support.real_kafka import RealKafka

CONNECT_TIMEOUT_S = 10.0
GRACE_S = 60.0  # how long clients may go on once everything runs again
REST_S = 90.0  # how long it may then take until everything is at rest
FAILURES = "clients understand what they are told"


class RealOutcome(NamedTuple):
    """What came of a plan: the laws that were broken, and how often what happened."""

    violations: list[Violation]
    counts: Counter[str]


def run_real(plan: Plan, kafka: RealKafka) -> RealOutcome:
    """Run a plan to its rest on a cluster that is whole, and leave it whole."""
    plans.check(plan)
    return RealRun(plan, kafka).run()


class RealRun:
    """One plan, and how it goes on."""

    def __init__(self, plan: Plan, kafka: RealKafka) -> None:
        self.plan = plan
        self.kafka = kafka
        self.lock = threading.Lock()
        self.history = History(_now_ms, limits_precede_reads=True)
        self.laws = HistoryLaws(self.history)
        self.counts: Counter[str] = Counter()
        self._admin = RealAdmin(kafka, [topic.name for topic in plan.settings.topics])
        self._runners: dict[str, _Runner] = {}
        self._lives: Counter[str] = Counter()
        # Since when a broker has run, in ms since the epoch; without those that do not.
        self._runs_since_ms = dict.fromkeys(kafka.addresses, 0)
        self._starting: set[int] = set()

    def run(self) -> RealOutcome:
        """Live through the plan, then let everything come to rest."""
        settings = self.plan.settings
        try:
            self._admin.create_topics(settings.topics)
            clients = [self._made(each) for each in self.plan.clients]
            begun = time.monotonic()
            for client in clients:
                self._start(client)
            for number, step in enumerate(self.plan.steps):
                if step.at_ms >= settings.duration_ms:
                    break
                _wait_s(begun + step.at_ms / 1_000 - time.monotonic())
                self.laws.step = number
                self._perform(step)
            _wait_s(begun + settings.duration_ms / 1_000 - time.monotonic())
            self._calm()
            self._finish()
        finally:
            for runner in list(self._runners.values()):
                runner.crash()
            self._admin.close()
        counts = Counter(self.history.counts)
        counts.update(self.counts)
        return RealOutcome(self.laws.violations, counts)

    def _finish(self) -> None:
        """Wait for clients and rest, look at what was committed, and judge."""
        self._join(GRACE_S)
        unsettled = self._admin.unsettled()
        deadline = time.monotonic() + REST_S
        while unsettled and time.monotonic() < deadline:
            _wait_s(0.2)
            unsettled = self._admin.unsettled()
        for group in sorted({each.group for each in self.plan.clients if each.group}):
            self._start(_Auditor(group, self.plan, list(self.kafka.addresses), self.history))
        self._join(GRACE_S)
        logs = self._admin.logs()
        self.counts["batches in logs"] = sum(len(log.batches) for log in logs)
        self.laws.conclude(logs, unsettled)

    def _join(self, timeout_s: float) -> None:
        """Wait for the clients that are there; those that go on for too long are ended."""
        deadline = time.monotonic() + timeout_s
        for runner in list(self._runners.values()):
            runner.join(max(0.0, deadline - time.monotonic()))
            runner.crash()
            runner.join(CONNECT_TIMEOUT_S)

    # -- clients -----------------------------------------------------------------------------------

    def _made(self, settings: ClientSettings) -> SimulatedClient:
        release = self.plan.settings.kafka_version
        return client_of(settings, release, list(self.kafka.addresses), self.history)

    def _start(self, client: SimulatedClient) -> None:
        self._lives[client.name] += 1
        rng = random.Random(f"{self.plan.seed} {client.name} {self._lives[client.name]}")
        self._runners[client.name] = runner = _Runner(self, client, client.run(rng))
        runner.start()

    def failed(self, client: str, failure: str) -> None:
        """A client has failed: what it was told, it did not understand."""
        self.laws.broken(FAILURES, f"{client}: {failure}")

    def timed_out(self, client: str, call: Call, since_ms: int) -> None:
        """A client has lost its patience; a broker that ran all the time should have answered."""
        if self._runs_since_ms.get(call.node_id, since_ms) < since_ms:
            self.laws.timed_out(client, call, since_ms)

    # -- steps -------------------------------------------------------------------------------------

    def _perform(self, step: Step) -> None:
        done = self._carry_out(step)
        self.counts[f"step {step.do}" if done else f"refused {step.do}"] += 1

    def _carry_out(self, step: Step) -> bool:
        kafka, given = self.kafka, step.arguments
        match step.do:
            case "stop_broker":
                self._whole()
                self._halt(given["node"])
                kafka.stop_node(given["node"], kill=given.get("how") == "unclean")
            case "pause_broker":
                self._whole()
                self._halt(given["node"])
                kafka.pause_node(given["node"])
            case "start_broker":
                kafka.start_node(given["node"], wait=False)
                self._starting.add(given["node"])
            case "resume_broker":
                kafka.resume_node(given["node"])
                self._runs_since_ms[given["node"]] = _now_ms()
            case plans.CRASH_CLIENT:
                former = self._runners[given["client"]]
                if not former.is_alive():
                    return False
                former.crash()
                former.join(CONNECT_TIMEOUT_S)
                self._start(former.client)
            case "move_leader":
                return self._admin.move_leader(given["topic"], given["partition"], given["node"])
            case "delete_records":
                where = given["topic"], given["partition"]
                return self._admin.delete_records(*where, given["before_offset"])
            case "fence_producer":
                return self._admin.fence_producer(given["transactional_id"])
            case name:
                raise plans.PlanError(f"real brokers cannot carry out {name}")
        return True

    def _halt(self, node: int) -> None:
        self._runs_since_ms.pop(node, None)
        self._admin.forget(node)

    def _whole(self) -> None:
        """Wait for the broker that is starting: two of three have to run at any time."""
        if self._starting:
            self.kafka.wait_whole()
            for node in self._starting:
                self._runs_since_ms[node] = _now_ms()
            self._starting.clear()

    def _calm(self) -> None:
        """Let run again what is paused or stopped."""
        self.laws.step = len(self.plan.steps)
        for node in self.kafka.addresses:
            if node in self._runs_since_ms or node in self._starting:
                continue
            if self.kafka.is_running(node):
                self.kafka.resume_node(node)
                self._runs_since_ms[node] = _now_ms()
            else:
                self.kafka.start_node(node, wait=False)
                self._starting.add(node)
        self._whole()


class _Auditor(Reading):
    """Asks at the end for what a group has committed in all topics."""

    def __init__(self, group: str, plan: Plan, nodes: list[int], history: History) -> None:
        topics = [topic.name for topic in plan.settings.topics]
        settings = ClientSettings(kind="reader", name=f"auditor of {group}", topics=topics)
        super().__init__(settings, plan.settings.kafka_version, nodes, history)
        self._group = group

    def live(self) -> Script:
        yield from self.refresh()
        yield from self.find_positions(self._group, self.settings.topics)


class _Runner(threading.Thread):
    """One client's script, and its connection to each broker that it has asked."""

    def __init__(self, run: RealRun, client: SimulatedClient, script: Script) -> None:
        super().__init__(name=client.name, daemon=True)
        self.client = client
        self._run = run
        self._script = script
        self._connections: dict[int, Connection] = {}
        self._over = False
        # A byte that never comes: the read end is readable once the other is closed.
        self._wake, self._waker = socket.socketpair()

    def crash(self) -> None:
        """End the client as a process that is killed; what it waits for never comes."""
        with self._run.lock:
            self._over = True
            self._script.close()
            self._waker.close()

    def run(self) -> None:
        """Carry the script on to its end, or until `crash`."""
        value: Any = None
        try:
            while (wish := self._next(value)) is not None:
                if isinstance(wish, Sleep):
                    select.select([self._wake], [], [], wish.ms / 1_000)
                    value = None
                else:
                    value = self._call(wish)
        except Exception:
            with self._run.lock:
                self._run.failed(self.client.name, traceback.format_exc(limit=-2))
        finally:
            for connection in self._connections.values():
                connection.close()
            self._wake.close()

    def _next(self, value: object) -> Call | Sleep | None:
        """What the script wants next; None once there is nothing."""
        with self._run.lock:
            if self._over:
                return None
            try:
                if isinstance(value, Exception):
                    return self._script.throw(value)
                return self._script.send(value)
            except StopIteration:
                return None

    def _call(self, call: Call) -> Any:
        """The answer, or the exception that comes in its place."""
        run = self._run
        since_ms = _now_ms()
        try:
            answer = self._ask(call)
        except (ConnectError, ConnectionClosedError, RequestTimeoutError):
            self._drop(call.node_id)
            run.counts["calls disconnected"] += 1
            return Disconnected()
        if isinstance(answer, RequestTimedOut):
            self._drop(call.node_id)
            with run.lock:
                run.counts["calls timed out"] += 1
                run.timed_out(self.client.name, call, since_ms)
        else:
            run.counts["requests answered"] += 1
        return answer

    def _ask(self, call: Call) -> Any:
        connection = self._connections.get(call.node_id)
        if connection is None:
            host, port = self._run.kafka.addresses[call.node_id]
            connection = Connection(host, port, self.client.client_id, timeout_s=CONNECT_TIMEOUT_S)
            self._connections[call.node_id] = connection
        correlation_id = connection.write(call.request, call.version)
        if call.api_key == ApiKey.PRODUCE and not call.request.acks:
            return None
        ready, _, _ = select.select([connection, self._wake], [], [], call.timeout_ms / 1_000)
        if not ready:
            return RequestTimedOut()
        if connection not in ready:
            return Disconnected()
        return connection.read(call.api_key, call.version, correlation_id)

    def _drop(self, node_id: int) -> None:
        connection = self._connections.pop(node_id, None)
        if connection is not None:
            connection.close()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _wait_s(seconds: float) -> None:
    if seconds > 0:
        threading.Event().wait(seconds)
