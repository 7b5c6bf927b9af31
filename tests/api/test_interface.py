"""The same calls have the same results in a thread, in the caller's trio run, and over HTTP."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing
from confluent_kafka import Consumer, Producer

from mockbroker import Cluster
from mockbroker.api.transport import ClusterError
from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.faults.errors import NameTakenError, UnknownNameError
from mockbroker.core.validation import ValidationError
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from tests.support.librdkafka import TIMEOUT_S


def with_kafka(test: Callable[[Any], Awaitable[None]]) -> Callable[..., None]:
    """Run a test that awaits, with a cluster in each place."""

    def run(place: Callable[[], Any]) -> None:
        async def main() -> None:
            async with place() as kafka:
                await test(kafka)

        trio.run(main, clock=AdjustableClock())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def produce(kafka: Any, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


@with_kafka
async def test_topics_are_created_altered_and_deleted(kafka: Any) -> None:
    topic = kafka.topic("payments")
    await topic.create(2, 3, configs={"retention.ms": 1000})
    assert await topic.configs == {"retention.ms": "1000"}
    await topic.alter(partitions=3, configs={"retention.ms": None, "cleanup.policy": "compact"})
    assert await topic.configs == {"cleanup.policy": "compact"}
    assert [each.partition for each in await topic.partitions] == [0, 1, 2]
    assert (await topic.view()).replication_factor == 3
    await topic.delete()
    with pytest.raises(ApiError, match="there is no topic 'payments'"):
        await topic.view()
    await kafka.topic("placed").create(assignments={0: [3, 1]})
    assert await kafka.partition("placed", 0).leader == 3


@with_kafka
async def test_records_are_appended_and_read(kafka: Any) -> None:
    """Text and bytes, with and without key, header, partition and timestamp."""
    topic = kafka.topic("orders")
    first = await topic.produce("tea", key=b"\xff", headers={"a": b"1", "b": None}, partition=1)
    assert (first.partition, first.offset) == (1, 0)
    await topic.produce_all(["one", b"two", {"value": None, "partition": 1, "timestamp_ms": 5}])
    await kafka.partition("orders", 1).produce("last")
    stored = await topic.records(1)
    assert [(each.key, each.value) for each in stored[:1]] == [(b"\xff", b"tea")]
    assert stored[0].headers == (("a", b"1"), ("b", None))
    assert stored[0].timestamp_ms > 0
    assert (None, 5) in [(each.value, each.timestamp_ms) for each in stored]
    assert stored[-1].value == b"last"
    assert stored == await kafka.partition("orders", 1).records()
    assert len(await kafka.expect_records("orders", 5)) == 5
    [tea, *_] = await kafka.partition("orders", 1).log(limit=2)
    assert (tea.key, tea.value, tea.codec, tea.control) == ("0xff", "tea", "none", None)
    leader = await kafka.partition("orders", 1).leader
    assert len(await kafka.partition("orders", 1).log(1, broker=leader)) == len(stored) - 1


@with_kafka
async def test_records_that_do_not_come_fail_with_a_table(kafka: Any) -> None:
    await kafka.topic("orders").produce("tea", key="k", partition=0)
    with pytest.raises(AssertionError, match=r"holds 1 records, not 2 after 0.01 s\n.*\n.*b'tea'"):
        await kafka.expect_records("orders", 2, timeout_s=0.01)
    with pytest.raises(AssertionError, match="holds 1 records, not 0"):
        await kafka.expect_records("orders", 0)


@with_kafka
async def test_names_that_do_not_exist_get_the_nearest_one(kafka: Any) -> None:
    with pytest.raises(ApiError, match="did you mean 'orders'"):
        await kafka.topic("order").records()
    with pytest.raises(ActionError, match="there is no broker 9; there are: 1, 2, 3"):
        await kafka.broker(9).stop()
    with pytest.raises(ActionError, match="there is no broker 9"):
        await kafka.broker(9).state
    with pytest.raises(ValidationError, match="did you mean 'stop_broker'"):
        await kafka.act("stop_brokr", node=1)
    with pytest.raises(ValidationError, match=r"match\.apii: unknown field; did you mean 'api'"):
        await kafka.faults.add(match={"apii": 3}, do={"drop_reply": {}})
    with pytest.raises(TypeError, match="did you mean 'topic'"):
        await kafka.faults.drop_reply(topik="orders")
    with pytest.raises(ValidationError, match="did you mean 'append'"):
        await kafka.journal.events(kind="apend")
    with pytest.raises(ValidationError, match="did you mean 'topic'"):
        await kafka.journal.events(topik="orders")


@with_kafka
async def test_names_that_are_waited_for_get_the_nearest_one(kafka: Any) -> None:
    await kafka.faults.delay(1, api="Fetch", name="slow-fetch")
    with pytest.raises(UnknownNameError, match="did you mean 'slow-fetch'"):
        await kafka.faults.rule("slow-fech")
    with pytest.raises(ValidationError, match=r"state: .*did you mean 'Stable'"):
        await kafka.group("billing").wait_for("Stabel")
    with pytest.raises(ValidationError, match=r"only: .*did you mean 'retention'"):
        await kafka.clock.advance("1s", only="retenton")
    with pytest.raises(ValueError, match="did you mean 'python'"):
        await kafka.faults.export("pyton")
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "billing"})
    consumer.subscribe(["orders"])
    polling = trio.Event()

    async def poll() -> None:
        while not polling.is_set():
            await trio.to_thread.run_sync(consumer.poll, 0.05)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poll)
        await kafka.group("billing").wait_stable(members=1)
        with pytest.raises(TimeoutError, match="it does not exist; did you mean 'billing'"):
            await kafka.group("biling").wait_stable(timeout_s=0.01)
        polling.set()
    await trio.to_thread.run_sync(consumer.close)


@pytest.mark.parametrize("what", ["journal", "plan", "rule", "held", "group", "records"])
def test_a_wait_ends_with_the_thread_that_dies(what: str) -> None:
    """With the error that ended it."""
    kafka = Cluster(topics={"orders": 1}).start()
    plan = kafka.faults.delay(1, api="Fetch", name="slow")
    waits: dict[str, Callable[[], object]] = {
        "journal": lambda: kafka.journal.wait(kind="append", timeout_s=1000),
        "plan": lambda: plan.wait(timeout_s=1000),
        "rule": lambda: kafka.faults.rule("slow").wait(timeout_s=1000),
        "held": lambda: kafka.faults.wait_held(timeout_s=1000),
        "group": lambda: kafka.group("g").wait_stable(timeout_s=1000),
        "records": lambda: kafka.expect_records("orders", 1, timeout_s=1000),
    }

    def die() -> None:
        raise ZeroDivisionError("a bug of ours")

    def die_later(_: object) -> None:
        """Once the next request has arrived, which then waits."""
        token = trio.lowlevel.current_trio_token()

        async def when_at_rest() -> None:
            await trio.testing.wait_all_tasks_blocked(0.05)
            token.run_sync_soon(die)

        trio.lowlevel.spawn_system_task(when_at_rest)

    kafka.call(die_later)
    with pytest.raises(ClusterError, match="the cluster's thread has died") as raised:
        waits[what]()
    assert "a bug of ours" in "".join(traceback.format_exception(raised.value))
    with pytest.raises(trio.TrioInternalError):
        kafka.stop()


def test_an_unknown_anomaly_gets_the_nearest() -> None:
    """Also where nothing was found."""
    with Cluster() as kafka, pytest.raises(ValueError, match="did you mean 'duplicate'"):
        kafka.audit().of("duplicat")


@with_kafka
async def test_brokers_stop_and_start(kafka: Any) -> None:
    await kafka.topic("replicated").create(1, 3)
    await kafka.broker(2).stop()
    assert await kafka.broker(2).state == "stopped"
    await kafka.broker(2).start()
    await kafka.broker(3).kill()
    await kafka.broker(3).start()
    await kafka.broker(1).pause()
    assert [each.state for each in await kafka.brokers()] == ["paused", "running", "running"]
    await kafka.broker(1).resume()
    await kafka.settle()
    assert sorted(await kafka.partition("replicated", 0).isr) == [1, 2, 3]


@with_kafka
async def test_what_does_not_settle_is_told(kafka: Any) -> None:
    await kafka.topic("replicated").create(assignments={0: [1, 2]})
    await kafka.broker(2).stop()
    with pytest.raises(
        AssertionError, match=r"not at rest in 10 ms: .*replicated-0: broker 2 is not in sync"
    ):
        await kafka.settle(timeout_s=0.01)


@with_kafka
async def test_actions_return_what_they_did(kafka: Any) -> None:
    topic = kafka.topic("compacted")
    await topic.create(configs={"cleanup.policy": "compact"})
    await topic.produce_all([{"key": "k", "value": str(n)} for n in range(3)])
    [result] = await topic.run_compaction()
    assert (result.topic, result.records_removed) == ("compacted", 2)
    assert isinstance(await kafka.shuffle_leaders(), int)
    await kafka.topic("moved").create(assignments={0: [1, 2]})
    await kafka.partition("moved", 0).move_leader(2)
    assert await kafka.partition("moved", 0).leader == 2


@with_kafka
async def test_rules_are_added_by_keywords_and_seen_to_fire(kafka: Any) -> None:
    plan = await kafka.faults.drop_reply(
        api="Produce", topic="orders", times=1, then="reset", name="lost", until="1h"
    )
    assert await kafka.faults.plans() == [
        {
            "name": "lost",
            "seed": 0,
            "rules": [
                {
                    "name": "lost",
                    "match": {"api": "Produce", "topic": "orders"},
                    "when": {"times": 1, "until": 3_600_000},
                    "do": {"drop_reply": {"then": "reset"}},
                }
            ],
        }
    ]
    with pytest.raises(NameTakenError):
        await kafka.faults.observe(name="lost")
    with pytest.raises(TimeoutError, match="not 1 hits in 10 ms"):
        await plan.wait(timeout_s=0.01)
    await trio.to_thread.run_sync(produce, kafka, "orders", "tea")
    await plan.wait()
    assert (await plan.hits, await plan.left) == (1, 0)
    assert "fired 1 times" in str(await plan.why())
    await plan.remove()
    await plan.remove()
    assert await plan.hits == 1
    with pytest.raises(UnknownNameError):
        await kafka.faults.rule("lost")


@with_kafka
async def test_held_requests_are_released(kafka: Any) -> None:
    with pytest.raises(TimeoutError, match="nothing is held"):
        await kafka.faults.wait_held(timeout_s=0.01)
    await kafka.faults.hold(api="Produce", topic="orders", times=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, produce, kafka, "orders", "tea")
        held = await kafka.faults.wait_held()
        assert (held.api, held.request["acks"], held.response) == ("Produce", -1, None)
        assert await kafka.topic("orders").records() == []
        await held.release()
    assert len(await kafka.topic("orders").records()) == 1


@with_kafka
async def test_the_journal_is_read_awaited_and_asserted(kafka: Any) -> None:
    mark = await kafka.journal.last_seq
    await trio.to_thread.run_sync(produce, kafka, "orders", "tea")
    [event] = await kafka.journal.wait(kind="append", topic="orders")
    assert "append" in repr(event)
    assert "\n" not in repr(event)
    assert len(repr(event)) < 200
    assert (await kafka.journal.exactly(1, kind="append", after_seq=mark))[0].seq == event.seq
    await kafka.journal.in_order({"kind": "request", "api": "Produce"}, {"kind": "append"})
    await kafka.journal.never(kind="append", topic="payments")
    await kafka.journal.at_most(1, kind="append")
    assert await kafka.journal.events(kind="request", where={"acks": -1}, api="Produce")
    with pytest.raises(AssertionError, match="were expected"):
        await kafka.journal.at_least(2, kind="append")
    with pytest.raises(AssertionError, match=r"1 events match, at least 2 .* after 0.01 s"):
        await kafka.journal.wait(2, kind="append", timeout_s=0.01)
    seq = (await kafka.journal.events(kind="request", api="Produce"))[-1].seq
    assert (await kafka.journal.entry(seq)).frame.bytes > 0
    assert event.seq in [each.seq for each in (await kafka.journal.links(seq)).effects]
    state = await kafka.journal.state(seq, parts=["topics"], topic="orders")
    assert (state.partitions[0].log_end_offset, state.groups) == (0, None)
    assert (await kafka.journal.state(topic="orders")).partitions[0].log_end_offset == 1
    timeline = await kafka.journal.timeline(api="Produce", limit=1)
    assert (timeline.spans[0].seq, timeline.spans[0].state) == (seq, "answered")
    assert (await kafka.journal.timeline(seq, api="Produce")).next >= event.seq
    await kafka.journal.clear()
    left = await kafka.journal.events(kind="append")
    assert [each.kind for each in left if each.kind != "gap"] == []


@with_kafka
async def test_the_clock_is_frozen_and_advanced(kafka: Any) -> None:
    await kafka.clock.freeze()
    before_ms = await kafka.clock.now_ms
    await kafka.clock.advance("1h")
    assert await kafka.clock.now_ms == before_ms + 3_600_000
    assert await kafka.clock.rate == 0
    with pytest.raises(AssertionError, match="holds 0 records, not 1"):  # in real time
        await kafka.expect_records("orders", 1, timeout_s=0.01)
    await kafka.clock.thaw()
    with pytest.raises(ValidationError, match="a duration cannot be negative"):
        await kafka.clock.advance(-1)


@with_kafka
async def test_a_group_is_awaited_and_its_lag_seen(kafka: Any) -> None:
    await kafka.topic("orders").produce_all(["a", "b", "c"])
    with pytest.raises(TimeoutError, match="it does not exist"):
        await kafka.group("billing").wait_stable(timeout_s=0.01)

    def join() -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": "billing",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.subscribe(["orders"])
        message = None
        while message is None:
            message = consumer.poll(TIMEOUT_S)
        consumer.commit(message, asynchronous=False)
        return consumer

    consumer = await trio.to_thread.run_sync(join)
    group = kafka.group("billing")
    view = await group.wait_stable(members=1)
    assert view.group == "billing"
    assert len(await group.members) == 1
    assert list((await group.offsets).values()) == [1]
    assert await kafka.lag("billing") == await group.lag()
    assert (await group.coordinator()).coordinator in (1, 2, 3)
    [gone] = await group.expire_member()
    assert gone == view.members[0].member_id
    await trio.to_thread.run_sync(consumer.close)
    with pytest.raises(ActionError, match="did you mean 'billing'"):
        await kafka.group("biling").view()


@with_kafka
async def test_a_snapshot_brings_records_back(kafka: Any) -> None:
    await kafka.topic("orders").produce("kept")
    snapshot = await kafka.snapshot()
    await kafka.topic("orders").produce("lost")
    await kafka.restore(snapshot)
    assert [each.value for each in await kafka.records("orders")] == [b"kept"]
    await kafka.delete_snapshot(snapshot)
    with pytest.raises(UnknownNameError):
        await kafka.restore(snapshot)
    await kafka.reset()
    assert await kafka.records("orders") == []


@with_kafka
async def test_the_audit_sees_every_record(kafka: Any) -> None:
    pytest.importorskip("duckdb")
    await trio.to_thread.run_sync(produce, kafka, "orders", "tea")
    audit = await kafka.audit()
    audit.assert_clean()
    assert audit.report.source == "the journal of a running cluster"


def test_another_process_that_is_not_there_is_told() -> None:
    with pytest.raises(ClusterError, match=r"no admin API answers at http://127\.0\.0\.1:1"):
        Cluster.connect("http://127.0.0.1:1")


def test_a_cluster_elsewhere_has_no_core() -> None:
    with Cluster(brokers=1) as kafka, Cluster.connect(kafka.admin_url) as there:
        assert there.bootstrap_servers == kafka.bootstrap_servers
        assert there.endpoint(1) == kafka.endpoint(1)
        assert there.admin_url == kafka.admin_url
        with pytest.raises(RuntimeError, match="runs in another process"):
            there.call(lambda _: None)
        with pytest.raises(ValueError, match="there is no listener 'PLAIN'; did you mean"):
            there.bootstrap("PLAIN")


def test_a_cluster_that_was_not_started_says_so() -> None:
    assert repr(Cluster()) == "<cluster, not started>"
    with pytest.raises(RuntimeError, match="use it as a context manager"):
        Cluster().server  # noqa: B018


def test_a_call_that_blocks_is_refused_in_a_trio_run() -> None:
    """It would stop all tasks of the run; under asyncio it would do so as well."""

    async def main() -> None:
        with Cluster(brokers=1) as kafka:
            with pytest.raises(RuntimeError, match=r"await .*kafka.aio"):
                kafka.brokers()
            assert len(await kafka.aio.brokers()) == 1

    trio.run(main)


@pytest.mark.parametrize("library", ["asyncio", "trio"])
def test_other_tasks_run_while_a_twin_waits(library: str) -> None:
    """The records that `expect_records` waits for come from another task of the same loop."""
    with Cluster(brokers=1, topics={"orders": 1}) as kafka:

        async def wait() -> None:
            assert len(await kafka.aio.expect_records("orders", 1)) == 1

        async def write() -> None:
            await kafka.aio.topic("orders").produce("tea")

        async def in_trio() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                nursery.start_soon(write)

        async def in_asyncio() -> None:
            await asyncio.gather(wait(), write())

        if library == "trio":
            trio.run(in_trio)
        else:
            asyncio.run(in_asyncio())


def test_a_twin_that_is_cancelled_does_not_delay_the_end_of_the_loop() -> None:
    with Cluster(brokers=1, topics={"orders": 1}) as kafka:

        async def main() -> None:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(kafka.aio.expect_records("orders", 1), 0.01)

        asyncio.run(main())
        kafka.topic("orders").produce("tea")  # ends the wait in the cluster


def test_a_stopped_cluster_answers_with_an_error() -> None:
    with Cluster(brokers=1) as kafka:
        topic = kafka.topic("orders")
    with pytest.raises(ClusterError, match="has stopped"):
        topic.view()
