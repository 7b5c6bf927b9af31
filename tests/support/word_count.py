"""The word count of the docs on Kafka Streams: lines in, counts out, instances that die."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from tests.support import doc_examples, maven
from tests.support.librdkafka import settings
from tests.support.waiting import wait_until

PAGE = "howto/applications.md"
LINES, COUNTS = "lines", "counts"
PARTITIONS = 2
STORE = "word-count-KSTREAM-AGGREGATE-STATE-STORE-0000000003"
REPARTITION, CHANGELOG = f"{STORE}-repartition", f"{STORE}-changelog"


class WordCount:
    """The app of the docs on one cluster: lines in, counts out, instances started and killed."""

    def __init__(self, kafka: Cluster, folder: Path, **more: object) -> None:
        """`more` are settings of Streams for all instances."""
        self._more = more
        self.kafka = kafka
        self.folder = folder
        self.jars = maven.jars("kafka-streams")
        self.classes = doc_examples.java_classes(PAGE, "WordCount.java", self.jars, folder)
        self.expected: dict[str, int] = {}
        self.told: dict[str, list[int]] = {}
        self.offsets: list[int] = []
        self._numbers = itertools.count()
        self._instances: list[subprocess.Popen[bytes]] = []
        bootstrap = kafka.bootstrap_servers
        self._producer = Producer(settings(bootstrap, linger_ms=0))
        self._consumer = Consumer(
            settings(bootstrap, group_id="nobody", isolation_level="read_committed")
        )
        self._consumer.assign([TopicPartition(COUNTS, n, 0) for n in range(PARTITIONS)])

    def start(self, **more: object) -> subprocess.Popen[bytes]:
        """Start an instance, with further settings of Streams."""
        number = len(self._instances)
        file = self.folder / f"{number}.properties"
        text = doc_examples.source(PAGE, "word-count.properties")
        own = {
            "bootstrap_servers": self.kafka.bootstrap_servers,
            "client_id": self._client_id(number),
            "state_dir": self.folder / f"state-{number}",
            **self._more,
            **more,
        }
        lines = [f"{name.replace('_', '.')}={value}" for name, value in own.items()]
        file.write_text("\n".join([text, *lines]), encoding="utf-8")
        with (self.folder / f"{number}.log").open("wb") as log:
            instance = maven.java(
                [self.classes, *self.jars], "WordCount", str(file), stdout=log, stderr=log
            )
        self._instances.append(instance)
        return instance

    def _client_id(self, number: int) -> str:
        return f"instance-{number}"

    def kill(self, instance: subprocess.Popen[bytes]) -> None:
        """SIGKILL, and a minute later: the group has noticed, and what the instance left open is
        aborted. Transactions of the others stay as they are: Streams ends where one times out
        before its commit.
        """
        instance.kill()
        instance.wait()
        self.kafka.clock.advance("1m", only="groups")
        client = f"{self._client_id(self._instances.index(instance))}-"
        begun = self.kafka.journal.events(kind="request", api="InitProducerId")
        left = {e.transactional_id for e in begun if (e.client_id or "").startswith(client)}
        for transactional_id in sorted(filter(None, left)):
            self.kafka.transaction(transactional_id).fence_producer()

    def write(self, *lines: str) -> None:
        for line in lines:
            self._producer.produce(LINES, line, key=str(next(self._numbers)))
            for word in line.split(" "):
                self.expected[word] = self.expected.get(word, 0) + 1
        assert self._producer.flush(60) == 0

    def read(self) -> None:
        """Take in what else is committed."""
        message = self._consumer.poll(0.05)
        while message is not None:
            if message.error() is not None:
                raise KafkaException(message.error())
            word = (message.key() or b"").decode()
            self.told.setdefault(word, []).append(int(message.value() or b""))
            self.offsets.append(message.offset() or 0)
            message = self._consumer.poll(0.05)

    def check(self) -> None:
        """Wait until all that was written is counted: each number of each word once, in order."""

        def is_complete() -> bool:
            self.read()
            return sum(map(len, self.told.values())) >= sum(self.expected.values())

        wait_until(is_complete, 120, f"the counts {self.logs()}")
        assert self.told == {word: [*range(1, n + 1)] for word, n in self.expected.items()}

    def logs(self) -> str:
        """What the instances said: nothing, unless they died by themselves."""
        return "".join(file.read_text() for file in sorted(self.folder.glob("*.log")))

    def close(self) -> None:
        self._consumer.close()
        for instance in self._instances:
            instance.kill()
            instance.wait()


def some_lines(count: int) -> list[str]:
    return [f"the word {n % 7}" for n in range(count)]


def stored(kafka: Cluster) -> int:
    """How many counts were written, whether they count or not."""
    return len(kafka.records(COUNTS))


def leader_of(cluster: CoreCluster, topic: str, index: int = 0) -> int:
    return cluster.topics[topic].partitions[index].leader_id
