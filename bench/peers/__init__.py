"""The peers: how each is had, started and given topics."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import process
from bench.model import Peer, Running, UnavailableError
from tests.support import golang, maven
from tests.support.real_kafka import KAFKA_JVM_FLAGS, RealKafka, free_ports

HERE = Path(__file__).parent
BROKERS = 3
"""As many as mockbroker and kfake start by default. Real Kafka is one node: three JVMs would
compete with the others for the machine, and every topic here has one replica anyway."""
ADMIN_TIMEOUT_S = 30.0
PARTITIONS_PER_REQUEST_MAX = 5000
"""A controller refuses a request that would take more than 10,000 records of its log."""


class _WithTopics:
    """Topics through the admin client, for peers that have such an API."""

    def create_topic(self, running: Running, topic: str, partitions: int = 1) -> None:
        self.create_topics(running, [topic], partitions)

    def create_topics(self, running: Running, topics: Sequence[str], partitions: int) -> float:
        from confluent_kafka import KafkaException
        from confluent_kafka.cimpl import NewTopic

        admin = _admin_client(running)
        admin.list_topics(timeout=ADMIN_TIMEOUT_S)  # connects
        begun = time.perf_counter()
        at_once = max(PARTITIONS_PER_REQUEST_MAX // partitions, 1)
        try:
            for start in range(0, len(topics), at_once):
                some = topics[start : start + at_once]
                new = [NewTopic(topic, partitions, 1) for topic in some]
                for created in admin.create_topics(new).values():
                    created.result(ADMIN_TIMEOUT_S)
        except KafkaException as error:
            raise RuntimeError(f"CreateTopics: {error}") from None
        return time.perf_counter() - begun

    def delete_topic(self, running: Running, topic: str) -> None:
        from confluent_kafka import KafkaException

        admin = _admin_client(running)
        try:
            admin.delete_topics([topic])[topic].result(ADMIN_TIMEOUT_S)
        except KafkaException as error:
            raise RuntimeError(f"DeleteTopics: {error}") from None


class Mockbroker(_WithTopics):
    name, title = "mockbroker", "mockbroker"

    def prepare(self) -> None:
        """It is what runs this bench."""

    @contextmanager
    def start(self) -> Iterator[Running]:
        ports = free_ports(BROKERS)
        script = Path(sys.executable).with_name("mockbroker")
        words = ("serve", "--brokers", str(BROKERS), "--port", str(ports[0]), "--admin-port", "0")
        # An installed package has its modules compiled; a checkout may not be allowed to.
        environment = dict(os.environ, PYTHONPYCACHEPREFIX=str(maven.CACHE / "pycache"))
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        started = _started(self, [str(script), *words], ports, environment)
        with started as (running, child, output):
            process.wait_for_line(child, output, "ready ")  # the admin side is up as well
            yield running


class RealKafkaPeer(_WithTopics):
    name, title = "real", "real Kafka 4.3.1"

    def prepare(self) -> None:
        try:
            maven.jars("kafka-server")
        except maven.MavenError as error:
            raise UnavailableError(str(error)) from None

    @contextmanager
    def start(self) -> Iterator[Running]:
        with RealKafka(jvm_flags=KAFKA_JVM_FLAGS) as kafka:
            yield Running(self, kafka.bootstrap_servers, tuple(kafka.pids), kafka.start_s)


class Kfake(_WithTopics):
    name, title = "kfake", "kfake"

    def prepare(self) -> None:
        self._program()

    @contextmanager
    def start(self) -> Iterator[Running]:
        ports = free_ports(BROKERS)
        with _started(self, [str(self._program()), *map(str, ports)], ports) as (running, _, _):
            yield running

    def _program(self) -> Path:
        try:
            return golang.build(HERE / "kfake", ".", "kfake")
        except golang.GoError as error:
            raise UnavailableError(str(error)) from None


class LibrdkafkaMock:
    name, title = "librdkafka-mock", "librdkafka's mock"

    def prepare(self) -> None:
        try:
            import confluent_kafka  # noqa: F401
        except ImportError as error:
            raise UnavailableError(str(error)) from None

    @contextmanager
    def start(self) -> Iterator[Running]:
        command = [sys.executable, "-m", "bench.peers.librdkafka_mock", str(BROKERS)]
        begun = time.monotonic()
        with process.child(command) as (child, output):
            line = process.wait_for_line(child, output, "ready ")
            bootstrap = line.removeprefix("ready ")
            running = Running(self, bootstrap, (child.pid,), 0.0)
            process.wait_for_metadata(child, output, running.address)
            yield Running(self, bootstrap, (child.pid,), time.monotonic() - begun)

    def create_topic(self, running: Running, topic: str, partitions: int = 1) -> None:
        """It has no CreateTopics; asking for the topic makes it, with four partitions."""
        _admin_client(running).list_topics(topic, ADMIN_TIMEOUT_S)

    def create_topics(self, running: Running, topics: Sequence[str], partitions: int) -> float:
        raise UnavailableError("cannot be told how many partitions to make")

    def delete_topic(self, running: Running, topic: str) -> None:
        """It has no DeleteTopics; what it keeps of a topic is bounded."""


PEERS: tuple[Peer, ...] = (Mockbroker(), RealKafkaPeer(), Kfake(), LibrdkafkaMock())


def _admin_client(running: Running):  # type: ignore[no-untyped-def]  # confluent-kafka has no types
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": running.bootstrap_servers, "log_level": 2})


@contextmanager
def _started(
    peer: Peer,
    command: list[str],
    ports: list[int],
    environment: Mapping[str, str] | None = None,
) -> Iterator[tuple[Running, subprocess.Popen[bytes], Path]]:
    bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports)
    begun = time.monotonic()
    with process.child(command, environment) as (child, output):
        process.wait_for_metadata(child, output, ("127.0.0.1", ports[0]))
        start_s = time.monotonic() - begun
        yield Running(peer, bootstrap, (child.pid,), start_s), child, output
