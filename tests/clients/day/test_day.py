"""A day of a cluster of three brokers, with Java's clients, librdkafka and aiokafka at work.

"orders" is what must not be lost: acks=all, idempotent producers, two in sync at least, no unclean
elections. "clicks" may be lost: acks=1, and a leader rather than none. What takes long (lags,
sessions, retention) passes on the cluster's clock; the clients keep real time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from tests.clients.day.clients import (
    Acquaintances,
    AsyncReader,
    AsyncWriter,
    Java,
    JavaReader,
    JavaWriter,
    Load,
    NativeReader,
    NativeWriter,
    Reader,
    Writer,
    until,
)
from tests.clients.day.ledger import Fate, Got, Ledger, Outcome
from tests.clients.java.test_tools import TOOLS, run
from tests.support import librdkafka
from tests.support.members import Look, look

pytestmark = pytest.mark.java

ORDERS, CLICKS, GROUP = "orders", "clicks", "billing"
PARTITIONS = {ORDERS: 6, CLICKS: 3}
CONFIGS = {
    ORDERS: {"min.insync.replicas": "2"},
    CLICKS: {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
}
SAFE = {"acks": "all", "enable_idempotence": True}
QUICK = {"acks": 1, "enable_idempotence": False}
LOAD = 50  # records of each writer in each hour of the day
DOOMED = 10  # records of each that a leader takes before it dies with them


class Day:
    """The cluster, whoever works on it, and the ledger."""

    def __init__(self, kafka: Cluster, told: Acquaintances, writing: Java, reading: Java) -> None:
        self.acquaintances = told
        self.kafka, self.writing, self.reading = kafka, writing, reading
        self.bootstrap = kafka.bootstrap_servers
        self.ledger = Ledger()
        self.writers: dict[str, list[Writer]] = {}
        self.readers: list[Reader] = []
        self.members: dict[str, Reader] = {}

    # -- who works here ----------------------------------------------------------------------------

    def open(self) -> None:
        def begin(cluster: CoreCluster) -> None:
            self.ledger.watch(cluster)
            for topic, partitions in PARTITIONS.items():
                spread = {p: [1 + (p + i) % 3 for i in range(3)] for p in range(partitions)}
                cluster.create_topic(topic, assignments=spread, configs=CONFIGS[topic])
            cluster.ensure_internal_topic("__consumer_offsets")

        self.kafka.call(begin)
        self.writers = {
            ORDERS: self.make_writers(ORDERS, **SAFE),
            CLICKS: self.make_writers(CLICKS, **QUICK),
        }
        for topic, kinds in ((ORDERS, self.alone), (CLICKS, self.alone)):
            self.readers += [kind(topic) for kind in kinds()]
        for reader in self.readers:
            reader.start()
        for library in ("java", "librdkafka", "aiokafka"):  # Java's first: it leads the group
            self.join(library)
            until(lambda: len(self.group().owned) == len(self.members), what="a member")
        self.settle_group()

    def make_writers(self, topic: str, **config: Any) -> list[Writer]:
        partitions = PARTITIONS[topic]
        native = dict(config)
        if config["acks"] == "all":
            native["message_timeout_ms"] = 60_000
        return [
            JavaWriter(self.writing, self.ledger, topic, partitions, **config),
            NativeWriter(self.bootstrap, self.ledger, topic, partitions, **native),
            AsyncWriter(self.bootstrap, self.ledger, topic, partitions, **config),
        ]

    def alone(self) -> list[Callable[[str], Reader]]:
        """Readers that belong to no group."""

        def java(topic: str) -> Reader:
            return JavaReader(self.reading, self.ledger, topic, PARTITIONS[topic])

        def native(topic: str) -> Reader:
            return NativeReader(self.bootstrap, self.ledger, topic, PARTITIONS[topic])

        def aio(topic: str) -> Reader:
            return AsyncReader(self.bootstrap, self.ledger, topic, PARTITIONS[topic])

        return [java, native, aio]

    def join(self, library: str) -> None:
        """Let the static member of one library join the group, for the first time or again."""
        where = (self.ledger, ORDERS, PARTITIONS[ORDERS], GROUP)
        made: dict[str, Callable[[], Reader]] = {
            "java": lambda: JavaReader(self.reading, *where),
            "librdkafka": lambda: NativeReader(self.bootstrap, *where),
            "aiokafka": lambda: AsyncReader(self.bootstrap, *where),
        }
        self.members[library] = made[library]()
        self.members[library].start()

    def close(self) -> None:
        self.end_readers()
        for writer in (*self.writers.get(ORDERS, ()), *self.writers.get(CLICKS, ())):
            writer.close()

    # -- looking -----------------------------------------------------------------------------------

    def group(self) -> Look:
        return look(self.kafka, GROUP)

    def settle_group(self, members: int = 3) -> Look:
        """Wait until all partitions are shared by so many members."""

        def settled() -> bool:
            found = self.group()
            owned = [each for share in found.owned.values() for each in share]
            return (found.state, len(found.owned), len(owned)) == (
                "Stable",
                members,
                PARTITIONS[ORDERS],
            )

        until(settled, what=f"a stable group of {members}")
        return self.group()

    def leader(self, topic: str, index: int) -> int:
        return self.kafka.call(lambda cluster: cluster.topics[topic].partitions[index].leader_id)

    def replicas(self, topic: str, index: int) -> list[int]:
        return self.kafka.call(
            lambda cluster: list(cluster.topics[topic].partitions[index].replicas)
        )

    def hold(self, topic: str, index: int, node_id: int) -> None:
        self.kafka.partition(topic, index).lag_follower(node_id)

    def release(self, topic: str, index: int, node_id: int) -> None:
        self.kafka.partition(topic, index).lag_follower(node_id, release=True)

    def tool(self, main: str, *args: str) -> str:
        """Run one of Kafka's tools in the readers' JVM; what it printed."""
        return str(self.reading(lambda steps: run(steps, main, *args)))

    def settle(self) -> None:
        """Wait until all replicas of all partitions are in sync and have everything."""

        def settled(cluster: CoreCluster) -> bool:
            return all(
                len(partition.isr) == len(partition.replicas) and not partition.own_replicas
                for topic in cluster.topics.values()
                for partition in topic.partitions
            )

        until(lambda: self.kafka.call(settled), what="an ISR that is full everywhere")
        everybody = [*self.both(), *self.readers, *self.members.values()]
        lost = [each.name for each in everybody if each.library == "aiokafka"]
        brokers = len(self.kafka.call(lambda cluster: cluster.brokers))
        until(lambda: self.acquaintances.know(lost, brokers), what=f"{lost} to know all brokers")

    def both(self) -> list[Writer]:
        return [*self.writers[ORDERS], *self.writers[CLICKS]]

    # -- the hours of the day ----------------------------------------------------------------------

    def rolling_restart(self) -> None:
        """Each broker in turn is shut down in an orderly way and started, under load."""
        for node_id in (1, 2, 3):
            with Load(self.both(), LOAD):
                self.kafka.broker(node_id).stop()
            with Load(self.both(), LOAD):
                self.kafka.broker(node_id).start()
            self.settle()

    def coordinator_moves(self) -> None:
        """From broker to broker, under load: the group keeps its generation and its members."""
        before = self.group()
        for node_id in (1, 2, 3):
            with Load(self.both(), LOAD):
                self.kafka.group(GROUP).move_coordinator(node_id)  # type: ignore[misc]
        assert self.settle_group() == before

    def members_bounce(self) -> None:
        """A static member that is back within its session changes nothing; one that stays away
        longer costs a rebalance, and another one when it returns.
        """
        before = self.group()
        for library in ("java", "librdkafka", "aiokafka"):
            with Load(self.writers[ORDERS], LOAD):
                self.members[library].end()
                assert self.group() == before
                self.join(library)
            assert self.settle_group() == before
        self.members["aiokafka"].end()
        self.kafka.clock.advance("46s", extend_sessions=True)
        without = self.settle_group(2)
        assert without.generation > before.generation
        self.writers[ORDERS][1].write(LOAD)
        self.join("aiokafka")
        assert self.settle_group().generation > without.generation

    def reassignments(self, directory: Path) -> None:
        """A fourth broker takes over what the first one held of two partitions, and gives it back,
        by Kafka's own tool.
        """
        self.kafka.broker(4).add()
        for number, new in enumerate((4, 1)):
            plan = [
                {"topic": topic, "partition": 0, "replicas": [new, 2, 3]}
                for topic in (ORDERS, CLICKS)
            ]
            file = directory / f"{number}.json"
            file.write_text(json.dumps({"version": 1, "partitions": plan}))
            words = (f"{TOOLS}.reassign.ReassignPartitionsCommand",)
            words += ("--reassignment-json-file", str(file))
            with Load(self.both(), LOAD):
                self.tool(*words, "--execute")
            until(lambda: not self.kafka.call(lambda c: dict(c.reassignments)), "the moves' end")
            assert self.tool(*words, "--verify").count("is completed.") == 2
            self.settle()
            for topic in (ORDERS, CLICKS):
                assert self.replicas(topic, 0) == [new, 2, 3]
        self.kafka.broker(4).remove()

    def too_few_in_sync(self) -> None:
        """Two brokers are gone. Orders are refused, clicks are taken."""
        for node_id in (2, 3):
            self.kafka.broker(node_id).stop(how="unclean")
        impatient = [
            JavaWriter(self.writing, self.ledger, ORDERS, 6, acks="all", retries=0,
                       enable_idempotence="false"),
            NativeWriter(self.bootstrap, self.ledger, ORDERS, 6, acks="all",
                         message_send_max_retries=0),
            AsyncWriter(self.bootstrap, self.ledger, ORDERS, 6, acks="all",
                        request_timeout_ms=1000),
        ]  # fmt: skip
        for writer in impatient:
            writer.idempotent = False
            writer.write(6)
            writer.close()
        with Load(self.writers[CLICKS], LOAD):
            pass
        for node_id in (2, 3):
            self.kafka.broker(node_id).start()
        self.settle()

    def nobody_can_tell(self) -> None:
        """A follower in the ISR does not fetch: acks=all is not answered in time, and the record is
        there all the same when the follower goes on.
        """
        follower = next(n for n in (1, 2, 3) if n != self.leader(ORDERS, 5))
        self.hold(ORDERS, 5, follower)
        impatient = [
            JavaWriter(self.writing, self.ledger, ORDERS, 6, acks="all", retries=0,
                       request_timeout_ms=500, delivery_timeout_ms=500,
                       enable_idempotence="false"),
            NativeWriter(self.bootstrap, self.ledger, ORDERS, 6, acks="all",
                         message_send_max_retries=0, request_timeout_ms=500),
            AsyncWriter(self.bootstrap, self.ledger, ORDERS, 6, acks="all",
                        request_timeout_ms=500),
        ]  # fmt: skip
        for writer in impatient:
            writer.idempotent = False
            writer.write(2, partition=5)
        self.release(ORDERS, 5, follower)
        for writer in impatient:
            writer.close()
        self.settle()

    def unclean_election(self) -> None:
        """Partition 0 of the clicks: its followers lag and leave the ISR, the leader goes on alone
        and dies. One of the followers has to lead.
        """
        former = self.leader(CLICKS, 0)
        others = [n for n in (1, 2, 3) if n != former]
        for node_id in others:
            self.hold(CLICKS, 0, node_id)
        self.writers[CLICKS][0].write(DOOMED, partition=0)
        self.kafka.clock.advance("46s", extend_sessions=True)  # replica.lag.time.max.ms, and more
        isr = self.kafka.call(lambda cluster: list(cluster.topics[CLICKS].partitions[0].isr))
        assert isr == [former]
        for writer in self.writers[CLICKS]:
            writer.write(DOOMED, partition=0)
        careful = NativeWriter(self.bootstrap, self.ledger, CLICKS, 3, **SAFE)
        careful.name += "-careful"
        careful.write(DOOMED, partition=0)
        careful.close()
        self.everybody_has_read(CLICKS)
        self.kafka.broker(former).stop(how="unclean")
        end = self.kafka.call(lambda cluster: cluster.topics[CLICKS].partitions[0].log_end_offset)
        for reader in self.readers_of(CLICKS):
            until(lambda r=reader: self.fetches(r, 0) <= end, f"{reader.name} at {end} or before")  # type: ignore[misc]
        for node_id in others:
            self.release(CLICKS, 0, node_id)
        with Load(self.both(), LOAD):
            self.kafka.broker(former).start()
        self.settle()

    def everybody_has_read(self, topic: str) -> None:
        """Wait until each reader fetches at the end of each partition."""
        ends = self.kafka.call(
            lambda cluster: {p.index: p.high_watermark for p in cluster.topics[topic].partitions}
        )
        for reader in self.readers_of(topic):
            for index, end in ends.items():
                until(lambda r=reader, p=index, e=end: self.fetches(r, p) == e, reader.name)  # type: ignore[misc]

    def readers_of(self, topic: str) -> list[Reader]:
        return [reader for reader in self.readers if reader.topic == topic]

    def fetches(self, reader: Reader, index: int) -> int:
        """The offset that a reader asked for last."""
        topic = self.kafka.call(lambda cluster: cluster.topics[reader.topic])
        return self.acquaintances.fetches(reader.name, topic, index)

    # -- the end of the day ------------------------------------------------------------------------

    def audit(self) -> None:
        """What is in the logs, and what each reader got, against the ledger."""
        for topic in PARTITIONS:
            self.everybody_has_read(topic)
        log = [
            Got((record.topic, record.partition), record.offset, (record.value or b"").decode())
            for topic in PARTITIONS
            for record in self.kafka.records(topic)
        ]
        self.ledger.audit(log)
        self.same_for_everybody(log)
        for reader in self.readers:
            self.ledger.audit_reader(reader.name, reader.topic)
        until(lambda: self.group_has_everything(log), what="the group's last records")

    def week(self) -> None:
        """Everybody goes home and a week passes: retention empties the logs, and with its offsets
        the group that nobody is in any more is forgotten.
        """
        self.end_readers()
        ends = self.ends()
        self.kafka.clock.advance("8d")
        assert self.ends() == {key: (end, end) for key, (_, end) in ends.items()}
        assert self.group().state == "Dead"

    def end_readers(self) -> None:
        everybody = [*self.readers, *self.members.values()]
        self.readers, self.members = [], {}
        for reader in everybody:
            reader.end()

    def ends(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Where each log begins and ends."""
        return self.kafka.call(
            lambda cluster: {
                (topic, each.index): (each.log_start_offset, each.log_end_offset)
                for topic in PARTITIONS
                for each in cluster.topics[topic].partitions
            }
        )

    def same_for_everybody(self, log: list[Got]) -> None:
        """A fresh reader gets what is in the log, and nothing else."""
        count = sum(each.partition[0] == CLICKS for each in log)
        read = librdkafka.read_all(self.bootstrap, CLICKS, count, PARTITIONS[CLICKS])
        got = {(m.partition(), m.offset(), (m.value() or b"").decode()) for m in read}
        assert got == {
            (each.partition[1], each.offset, each.value)
            for each in log
            if each.partition[0] == CLICKS
        }

    def group_has_everything(self, log: list[Got]) -> bool:
        got = {each for name in self.ledger.got for each in self.ledger.got[name] if GROUP in name}
        return got == {each for each in log if each.partition[0] == ORDERS}


@pytest.fixture
def day() -> Iterator[Day]:
    told = Acquaintances()
    with Cluster(brokers=3, node_ids=[1, 2, 3], seed=1, trace=told) as kafka:
        writing, reading = Java(kafka.bootstrap_servers), Java(kafka.bootstrap_servers)
        found = Day(kafka, told, writing, reading)
        try:
            yield found
        finally:
            found.close()
            writing.close()
            reading.close()


@pytest.mark.slow
@pytest.mark.covers("S48", "S69", "S77", "S194", "S195")
def test_every_record_of_a_day_has_the_fate_that_the_rules_give_it(
    day: Day, tmp_path: Path
) -> None:

    day.open()
    with Load(day.both(), LOAD):
        pass
    day.rolling_restart()
    day.coordinator_moves()
    day.members_bounce()
    day.reassignments(tmp_path)
    day.too_few_in_sync()
    day.nobody_can_tell()
    day.unclean_election()
    day.audit()
    fates = day.ledger.fates()
    told = list(day.ledger.told.values())
    # Only the unclean election lost anything: what the last leader alone had, acks=all or not.
    assert len(fates[Fate.LOST]) == 5 * DOOMED
    assert {told.partition for told in fates[Fate.LOST]} == {(CLICKS, 0)}
    assert {told.acks for told in fates[Fate.LOST]} == {"1", "all"}
    # Refused were the orders that came when two brokers were gone, and nothing else.
    assert len(fates[Fate.ABSENT]) == 3 * 6
    assert {told.partition[0] for told in fates[Fate.ABSENT]} == {ORDERS}
    # Nobody can tell of the six that waited for a follower in vain; they are there.
    assert {told.partition for told in fates[Fate.OPEN]} == {(ORDERS, 5)}
    assert len(fates[Fate.OPEN]) == 3 * 2
    stored = {record.value for record in day.kafka.records(ORDERS, 5)}
    assert {told.value.encode() for told in fates[Fate.OPEN]} <= stored
    assert all(each.outcome is Outcome.ACKNOWLEDGED for each in told if each.idempotent)
    # The journal tells the same: what was lost, and that its offsets were given out once more.
    audit = day.kafka.audit()
    lost = {(found.topic, found.partition, found.offset) for found in audit.of("lost_write")}
    assert lost == {(*each.partition, each.offset) for each in fates[Fate.LOST]}
    assert {found.anomaly for found in audit.bugs} <= {"inconsistent_offset"}, audit
    day.week()
