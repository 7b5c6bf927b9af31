"""The drivers: client programs that load a peer, one process for each turn."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Protocol

from bench.model import UnavailableError
from tests.support import golang, maven

HERE = Path(__file__).parent
GO_MODULE = maven.ROOT / "tests" / "go"
TIMEOUT_S = 60.0
JAVA_FLAGS = ("-Xms512m", "-Xmx512m")


class Driver(Protocol):
    """A client that produces and consumes in bulk, on partition 0 where it has the choice."""

    name: str
    title: str
    share: float
    """The part of a scale's bulk bytes that keeps it busy for about a second."""

    def prepare(self) -> None:
        """Build or fetch it. Raises UnavailableError."""

    def produce(self, bootstrap: str, topic: str, count: int, record_bytes: int) -> float:
        """Bytes of values per second, acks=all. Raises RuntimeError if a record was refused."""

    def consume(self, bootstrap: str, topic: str, count: int, passes: int) -> float:
        """Bytes of values per second over `passes` readings of the topic's `count` records.

        One reading is enough where each would cost a process of its own.
        """


class TransactingDriver(Protocol):
    """A client with a transactional id, which is the topic's name."""

    name: str
    title: str

    def prepare(self) -> None:
        """Build or fetch it. Raises UnavailableError."""

    def transact(self, bootstrap: str, topic: str, count: int, records: int) -> float:
        """Seconds for `count` transactions of `records` records of 100 bytes, one by one."""


class Librdkafka:
    """Built from C against the library inside confluent-kafka's wheel."""

    name, title, share = "librdkafka", "librdkafka", 1.0

    def prepare(self) -> None:
        self._program()

    def produce(self, bootstrap: str, topic: str, count: int, record_bytes: int) -> float:
        answer = self._run("produce", bootstrap, topic, count, record_bytes)
        return count * record_bytes / float(answer["seconds"])

    def consume(self, bootstrap: str, topic: str, count: int, passes: int) -> float:
        answer = self._run("consume", bootstrap, topic, count, passes)
        return float(answer["bytes"]) / float(answer["seconds"])

    def latencies(
        self, command: str, bootstrap: str, topic: str, count: int, record_bytes: int
    ) -> list[float]:
        """Seconds of each record; the command is `sequential` or `delivery`."""
        answer = self._run(command, bootstrap, topic, count, record_bytes)
        return [float(each) for each in answer["latencies_s"]]

    def transact(self, bootstrap: str, topic: str, count: int, records: int) -> float:
        return float(self._run("transact", bootstrap, topic, count, records)["seconds"])

    def _run(self, command: str, bootstrap: str, topic: str, count: int, number: int) -> Any:
        words = [str(self._program()), command, bootstrap, topic, str(count), str(number)]
        return json.loads(_output(words))

    def _program(self) -> Path:
        library = _librdkafka()
        compiler = shutil.which("cc")
        if compiler is None:
            raise UnavailableError("cc is not on the PATH")
        source = HERE / "librdkafka.c"
        target = maven.CACHE / "c" / f"librdkafka-{maven.hash_of([source], str(library))}"
        program = target / "librdkafka"
        with maven.once(target) as scratch:
            if scratch is not None:
                words = [compiler, "-O2", "-o", str(scratch / "librdkafka"), str(source)]
                words += [str(library), f"-Wl,-rpath,{library.parent}"]
                _output(words)
        return program


class FranzGo:
    name, title, share = "franz-go", "franz-go", 1.0

    def prepare(self) -> None:
        self._program()

    def produce(self, bootstrap: str, topic: str, count: int, record_bytes: int) -> float:
        words = ["produce", bootstrap, topic, str(count), str(record_bytes)]
        answer = json.loads(_output([str(self._program()), *words]))
        return count * record_bytes / float(answer["seconds"])

    def consume(self, bootstrap: str, topic: str, count: int, passes: int) -> float:
        words = ["consume", bootstrap, topic, str(count), str(passes)]
        answer = json.loads(_output([str(self._program()), *words]))
        return float(answer["bytes"]) / float(answer["seconds"])

    def transact(self, bootstrap: str, topic: str, count: int, records: int) -> float:
        words = ["transact", bootstrap, topic, str(count), str(records)]
        return float(json.loads(_output([str(self._program()), *words]))["seconds"])

    def consume_shared(self, bootstrap: str, topic: str, count: int, members: int) -> float:
        """Seconds in which `members` of the share group of the topic's name consume `count`
        records of 100 bytes.
        """
        words = ["share", bootstrap, topic, str(count), str(members)]
        return float(json.loads(_output([str(self._program()), *words]))["seconds"])

    def _program(self) -> Path:
        try:
            return golang.build(GO_MODULE, "./bulk", "bulk")
        except golang.GoError as error:
            raise UnavailableError(str(error)) from None


class JavaTools:
    """Kafka's own kafka-producer-perf-test and kafka-consumer-perf-test, JVM start excluded."""

    name, title, share = "java", "Java", 0.3

    def prepare(self) -> None:
        try:
            maven.jars("kafka-server")
        except maven.MavenError as error:
            raise UnavailableError(str(error)) from None

    def produce(self, bootstrap: str, topic: str, count: int, record_bytes: int) -> float:
        words = ["ProducerPerformance", "--topic", topic, "--num-records", str(count)]
        words += ["--record-size", str(record_bytes), "--throughput", "-1"]
        text = self._run(*words, "--bootstrap-server", bootstrap, "--command-property", "acks=all")
        summary = re.search(rf"^{count} records sent, ([\d.]+) records/sec", text, re.MULTILINE)
        if summary is None or "Exception" in text:
            raise RuntimeError(f"ProducerPerformance: {text.strip()[-500:]}")
        return float(summary[1]) * record_bytes

    def consume(self, bootstrap: str, topic: str, count: int, passes: int) -> float:
        words = ["ConsumerPerformance", "--topic", topic, "--num-records", str(count)]
        text = self._run(*words, "--bootstrap-server", bootstrap, "--hide-header")
        fields = text.strip().splitlines()[-1].split(",")
        if len(fields) != _CONSUMER_FIELDS or int(fields[_CONSUMED]) < count:
            raise RuntimeError(f"ConsumerPerformance: {text.strip()[-500:]}")
        return float(fields[_MEBIBYTES]) * 2**20 / (float(fields[_FETCH_MS]) / 1000)

    def _run(self, main: str, *arguments: str) -> str:
        jars = maven.joined(maven.jars("kafka-server"))
        main = f"org.apache.kafka.tools.{main}"
        return _output(["java", *JAVA_FLAGS, "-cp", jars, main, *arguments])


class Streams:
    """An application of Kafka Streams, JVM start excluded."""

    def prepare(self) -> None:
        try:
            self._classpath()
        except maven.MavenError as error:
            raise UnavailableError(str(error)) from None

    def start(self, bootstrap: str, name: str) -> float:
        """Seconds from the start of an application of four stateful tasks until it is RUNNING."""
        words = ["java", *JAVA_FLAGS, "-cp", self._classpath(), "mockbroker.streams.StreamsStart"]
        return float(json.loads(_output([*words, bootstrap, name]))["seconds"])

    def _classpath(self) -> str:
        jars = maven.jars("kafka-streams")
        sources = (maven.ROOT / "tests" / "java" / "src" / "streams-start").rglob("*.java")
        return maven.joined([maven.javac(sources, jars, "streams-start"), *jars])


_CONSUMER_FIELDS = 10
_MEBIBYTES, _CONSUMED, _FETCH_MS = 2, 4, 7
"""ConsumerPerformance's columns: start, end, MiB, MiB/s, records, records/s, rebalance ms,
fetch ms, fetch MiB/s, fetch records/s."""

LIBRDKAFKA = Librdkafka()
FRANZ_GO = FranzGo()
STREAMS = Streams()
DRIVERS: tuple[Driver, ...] = (LIBRDKAFKA, FRANZ_GO, JavaTools())
TRANSACTING_DRIVERS: tuple[TransactingDriver, ...] = (LIBRDKAFKA, FRANZ_GO)
"""The first speaks the first protocol of transactions, the second the second (KIP-890)."""


def _librdkafka() -> Path:
    try:
        import confluent_kafka
    except ImportError as error:
        raise UnavailableError(str(error)) from None
    package = Path(confluent_kafka.__file__).parent
    found = sorted((package.parent / "confluent_kafka.libs").glob("librdkafka-*.so*"))
    if not found:
        raise UnavailableError("confluent-kafka's wheel holds no librdkafka to link with")
    return found[0]


def _output(command: list[str]) -> str:
    """What the command prints. Raises RuntimeError with its last words if it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{Path(command[0]).name} took more than {TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise RuntimeError(f"{Path(command[0]).name}: " + " / ".join(words))
    return done.stdout
