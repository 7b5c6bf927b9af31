"""The real Kafka broker, started from Maven's jars, as a peer to compare with.

`RealKafka` runs one JVM for each node in KRaft combined mode (broker and controller in one),
on free ports of 127.0.0.1 and in a directory of its own that goes away with it::

    with RealKafka(brokers=1, configs={"auto.create.topics.enable": "false"}) as kafka:
        client = Producer({"bootstrap.servers": kafka.bootstrap_servers})

Node ids count from 1, and the defaults are Kafka's except where one node cannot hold them
(replication factors of the internal topics) and for `group.initial.rebalance.delay.ms`, which
is 0 as in mockbroker.
"""

from __future__ import annotations

import base64
import contextlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.class_data import class_data
from tests.support.maven import jars, java

SEVERAL_NODES = "real_kafka: several nodes"
"""The group of the tests that start clusters of several nodes: one at a time, beside the tests that
have one node, which are a group as well."""

NO_RETENTION = {"log.initial.task.delay.ms": "86400000"}
"""Of brokers that get records with old timestamps. The first check of retention, half a minute
after the start, would delete them: in the middle of a test, if that runs slowly."""

SHARED_CONFIGS = {
    **NO_RETENTION,
    # By default a transaction that took too long is looked for every ten seconds, and members of
    # the new protocols hear of a rebalance every five.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
}
"""Of the one real broker that the tests of clients share, and of ours beside it."""

LOW_MEMORY_JVM_FLAGS = (
    "-Xms64m",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
)
"""For tests: a broker that starts soon and leaves memory to others. No figure measured under
these flags says anything about Kafka's speed."""

KAFKA_JVM_FLAGS = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
"""For measurements: the flags of Kafka's own `kafka-server-start.sh`."""

_POM = "kafka-server"
_DEFAULTS = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "group.initial.rebalance.delay.ms": "0",
    **NO_RETENTION,
}

STOP_TIMEOUT_S = 90.0

_PORT_MIN, _PORT_MAX = 15_000, 32_000
_PORT_TRIES = 200

_METADATA_ALL_TOPICS_V0 = struct.pack(">ihhihi", 14, 3, 0, 1, -1, 0)
"""A whole Metadata v0 request, size included: null client id, no topics named."""


class RealKafka:
    """A real Kafka cluster of `brokers` nodes; a context manager.

    `configs` are added to every node's server.properties and outrank what stands there.
    Raises RuntimeError, with the end of the node's output, if a node ends or does not answer
    within `start_timeout_s` seconds.
    """

    def __init__(
        self,
        brokers: int = 1,
        configs: Mapping[str, str] | None = None,
        *,
        jvm_flags: Sequence[str] = LOW_MEMORY_JVM_FLAGS,
        start_timeout_s: float = 90.0,
    ) -> None:
        self.cluster_id = _kafka_uuid()
        self.start_s = 0.0
        """Seconds from the start of the (formatted) nodes to the first whole Metadata."""
        self._configs = dict(configs or {})
        self._jvm_flags = jvm_flags
        self._start_timeout_s = start_timeout_s
        self._ports = free_ports(2 * brokers)
        self._nodes = range(1, brokers + 1)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._paused: set[int] = set()
        self._directory = Path()

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        """Host and port of each node's client listener, by node id."""
        return {node: ("127.0.0.1", self._ports[node - 1]) for node in self._nodes}

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,…`, as every client takes it."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses.values())

    @property
    def pids(self) -> list[int]:
        """The process id of each node's JVM, in the order of node ids."""
        return [process.pid for process in self._processes]

    @property
    def running(self) -> list[int]:
        """The ids of the nodes whose process is there and not paused."""
        return [node for node in self._nodes if self.is_running(node) and node not in self._paused]

    def is_running(self, node: int) -> bool:
        """Whether the node's process is there, paused or not."""
        return self._processes[node - 1].poll() is None

    def __enter__(self) -> Self:
        self._directory = Path(tempfile.mkdtemp(prefix="real-kafka-"))
        try:
            self._format()
            begun = time.monotonic()
            for node in self._nodes:
                self._start("kafka.Kafka", node)
            self._wait(begun + self._start_timeout_s)
            self.start_s = time.monotonic() - begun
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def stop_node(self, node: int, *, kill: bool = False) -> None:
        """End one node, in an orderly way or with SIGKILL. Two of three have to stay."""
        process = self._processes[node - 1]
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        process.wait(STOP_TIMEOUT_S)

    def start_node(self, node: int, *, wait: bool = True) -> None:
        """Start a stopped node again, with its logs; returns once all nodes know each other,
        unless nobody wants to wait for that.
        """
        self._start("kafka.Kafka", node)
        self._processes[node - 1] = self._processes.pop()
        if wait:
            self.wait_whole()

    def wait_whole(self) -> None:
        """Wait until all nodes, which have to be started, know each other."""
        self._wait(time.monotonic() + self._start_timeout_s)

    def pause_node(self, node: int) -> None:
        """Let one node stand still, with its connections open."""
        self._processes[node - 1].send_signal(signal.SIGSTOP)
        self._paused.add(node)

    def resume_node(self, node: int) -> None:
        """Let a paused node go on."""
        self._processes[node - 1].send_signal(signal.SIGCONT)
        self._paused.discard(node)

    def output(self, node: int = 1) -> str:
        """What the node's JVM has printed so far."""
        return self._output(node).read_text(errors="replace")

    def _output(self, node: int) -> Path:
        return self._directory / f"node-{node}.out"

    def _properties(self, node: int) -> Path:
        return self._directory / f"node-{node}.properties"

    def _format(self) -> None:
        """Write each node's properties and format its storage, all nodes side by side."""
        controllers = {n: self._ports[len(self._nodes) + n - 1] for n in self._nodes}
        quorum = ",".join(f"127.0.0.1:{port}" for port in controllers.values())
        voters = ",".join(
            f"{node}@127.0.0.1:{port}:{_kafka_uuid()}" for node, port in controllers.items()
        )
        for node in self._nodes:
            listeners = (
                f"PLAINTEXT://127.0.0.1:{self._ports[node - 1]},"
                f"CONTROLLER://127.0.0.1:{controllers[node]}"
            )
            settings = _DEFAULTS | _replication_factors(len(self._nodes))
            settings |= {
                "node.id": str(node),
                "listeners": listeners,
                "advertised.listeners": listeners,
                "controller.quorum.bootstrap.servers": quorum,
                "log.dirs": str(self._directory / f"node-{node}"),
            }
            settings |= self._configs
            lines = [f"{name}={value}\n" for name, value in settings.items()]
            self._properties(node).write_text("".join(lines))
            words = ("format", "--cluster-id", self.cluster_id, "--initial-controllers", voters)
            self._start("kafka.tools.StorageTool", node, *words, "--config")
        for node, tool in zip(self._nodes, self._processes, strict=True):
            if tool.wait(self._start_timeout_s) != 0:
                raise RuntimeError(f"Kafka's StorageTool failed:\n{self.output(node)}")
        self._processes.clear()

    def _start(self, main: str, node: int, *arguments: str) -> None:
        """Start a JVM whose last argument is the node's properties file."""
        flags = self._jvm_flags
        if flags == LOW_MEMORY_JVM_FLAGS:
            flags = (*flags, *class_data(_POM, _start_and_stop))
        with self._output(node).open("ab") as output:
            process = java(
                jars(_POM),
                main,
                *arguments,
                str(self._properties(node)),
                jvm=flags,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)

    def _wait(self, deadline: float) -> None:
        """Return once every node answers a Metadata request that lists all nodes."""
        for node, (process, address) in enumerate(
            zip(self._processes, self.addresses.values(), strict=True), start=1
        ):
            while _brokers_seen(address) < len(self._nodes):
                if process.poll() is not None:
                    raise RuntimeError(f"Kafka node {node} ended:\n{self.output(node)[-4000:]}")
                if time.monotonic() > deadline:
                    raise RuntimeError(f"Kafka node {node} is silent:\n{self.output(node)[-4000:]}")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.02)  # the pause between two attempts; ends early with the node

    def _stop(self) -> None:
        """End all nodes at once. An orderly end would wait for a quorum that ends as well, for the
        sake of a directory that goes.
        """
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)


def _start_and_stop(flags: Sequence[str]) -> None:
    """Run a broker with further flags, and let it end by itself."""
    with RealKafka(jvm_flags=(*LOW_MEMORY_JVM_FLAGS, *flags)) as kafka:
        kafka.stop_node(1)


def _replication_factors(brokers: int) -> dict[str, str]:
    """Kafka's own replication factors and minimum ISRs, as far as the nodes go."""
    factor, min_isr = str(min(3, brokers)), str(min(2, brokers))
    return {
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": min_isr,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": min_isr,
    }


def _kafka_uuid() -> str:
    """A random UUID as Kafka writes it: URL-safe base64 without padding, no leading dash."""
    text = "-"
    while text.startswith(
        "-"
    ):  # Kafka's Uuid.randomUuid avoids it too: tools take it for an option
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return text


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 in a row that were free a moment ago.

    They lie below the range from which Linux and macOS take the ports of outgoing connections:
    one of those would be lost to any client that connects before the server listens.
    """
    for _ in range(_PORT_TRIES):
        first = random.randrange(_PORT_MIN, _PORT_MAX - count)
        ports = range(first, first + count)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in ports:
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return list(ports)
    raise RuntimeError(f"no {count} free ports in a row")


def _brokers_seen(address: tuple[str, int]) -> int:
    """How many brokers the node at `address` lists in its Metadata; 0 if it does not answer."""
    try:
        with socket.create_connection(address, timeout=5.0) as connection:
            connection.sendall(_METADATA_ALL_TOPICS_V0)
            answer = b""
            while len(answer) < 12:  # size, correlation id, count of brokers
                chunk = connection.recv(4096)
                if not chunk:
                    return 0
                answer += chunk
    except OSError:
        return 0
    return max(0, int.from_bytes(answer[8:12], "big", signed=True))
