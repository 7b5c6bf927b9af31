"""No request keeps the others waiting for long, however many elements it has."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import trio

from mockbroker.core.configs.resources import ConfigResourceType
from mockbroker.core.ids import uuid_text
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
from mockbroker.server.config import ServerConfig, TopicSpec
from mockbroker.simulation.streams import SimulatedCluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.framing import request_frame
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from mockbroker_protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from tests.fuzz.targets.virtual_cluster import with_cluster
from tests.fuzz.targets.wire import Client
from tests.fuzz.work import quick_ms, slowness
from tests.support.wide_requests import (
    GROUP,
    TRANSACTION,
    WIDE,
    Numbering,
    Path,
    WideRequest,
    array_paths,
    elements_each,
)
from tests.support.wide_values import (
    CLASSIC_GROUP,
    CONSUMER_GROUP,
    INSTANCE,
    SHARE_GROUP,
    STATE_GROUP,
    STREAMS_GROUP,
    Known,
)

ELEMENTS_MAX = 20_000  # mockbroker.request.elements.max
TOPICS = 2_000
TOPICS_AT_ONCE = 1_000
PARTS = 2  # the tests that share the APIs
REPEATS = 3
NOT_ASKED = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
STEP_MS_MAX = 500.0  # of the reference machine
SESSION = 2_000  # partitions of a share session
ONCE = (ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS, ApiKey.DELETE_ACLS)
GROUPS = 500  # that have offsets
# As many as there are of a kind, where equal ones are refused, or as fit into a record.
MOST = {
    "CREATE_TOPICS topics.assignments": 9_000,
    "CREATE_TOPICS topics.configs": 9_000,
    "CREATE_PARTITIONS topics.assignments": 5_000,
    "LIST_OFFSETS topics": TOPICS,
    "CREATE_PARTITIONS topics": TOPICS,
    "DELETE_TOPICS topics": TOPICS,
    "SHARE_FETCH topics": TOPICS,
    "OFFSET_COMMIT topics.partitions": 9_000,
    "TXN_OFFSET_COMMIT topics.partitions": 9_000,
    "CREATE_ACLS creations": 9_999,
}
# What is refused for another reason than an element, so that elements cost nothing more.
REFUSED = {
    "CREATE_TOPICS topics.assignments.broker_ids": "a partition has one replica on a broker",
    "CREATE_PARTITIONS topics.assignments.broker_ids": "a partition has one replica on a broker",
    "ALTER_CONFIGS resources.configs": "a topic has few configs",
    "INCREMENTAL_ALTER_CONFIGS resources.configs": "a topic has few configs",
    "ALTER_REPLICA_LOG_DIRS dirs": "a broker has one log directory",
    "CREATE_DELEGATION_TOKEN renewers": "only authenticated users have tokens",
    "DESCRIBE_DELEGATION_TOKEN owners": "only authenticated users have tokens",
    "DESCRIBE_CLIENT_QUOTAS components": "there are three types of entities",
    "ALTER_CLIENT_QUOTAS entries.entity": "there are three types of entities",
    "ALTER_CLIENT_QUOTAS entries.ops": "there are five quotas",
    "ALTER_USER_SCRAM_CREDENTIALS deletions": "nobody has a credential",
    "UPDATE_FEATURES feature_updates": "there are few features",
    "ADD_RAFT_VOTER listeners": "the quorum is static",
    "CONSUMER_GROUP_DESCRIBE group_ids": "no group has the type",
    "SHARE_GROUP_DESCRIBE group_ids": "no group has the type",
    "STREAMS_GROUP_DESCRIBE group_ids": "no group has the type",
    **{
        f"STREAMS_GROUP_HEARTBEAT {path}": "Kafka does not support it yet"
        for path in (
            *("topology.subtopologies.source_topic_regex", "warmup_tasks"),
            *("warmup_tasks.partitions", "task_offsets", "task_end_offsets"),
        )
    },
    **{
        f"STREAMS_GROUP_HEARTBEAT topology.subtopologies.{path}": "nobody writes to the topics"
        for path in (
            "repartition_source_topics",
            "repartition_source_topics.topic_configs",
            "copartition_groups.repartition_source_topics",
        )
    },
}

load_all()
# Those that delete come last: what they delete is not there for others.
DELETING = (ApiKey.DELETE_RECORDS, ApiKey.DELETE_GROUPS, ApiKey.DELETE_TOPICS)
ASKED = [ApiKey(key) for key in sorted(APIS) if key not in (*NOT_ASKED, *DELETING)]
ASKED += DELETING


class LongestStep(trio.abc.Instrument):
    """The longest time, in ms, for which a task has kept the others waiting."""

    def __init__(self) -> None:
        self.ms = 0.0
        self._started = time.thread_time()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._started = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.ms = max(self.ms, (time.thread_time() - self._started) * 1000)


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.parametrize("numbering", Numbering)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_request_of_the_most_elements_does_not_keep_others_waiting(
    part: int, numbering: Numbering
) -> None:
    """Each array of each API, as long as a request may have it."""
    config = ServerConfig(
        brokers=1,
        topics=(TopicSpec(WIDE, ELEMENTS_MAX, 1),),
        seed=1,
        configs={
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS",
        },
    )

    async def session(sim: SimulatedCluster, errors: list[str]) -> None:
        facts = await _prepare(sim)
        gc.disable()  # a look at all that was made takes longer than most requests
        too_long: dict[str, str] = {}
        unexpected: dict[str, str] = {}
        for key in ASKED[part::PARTS]:
            for path in array_paths(key, APIS[key].max_version):
                took_ms, answer = await _least_ms(sim, key, path, numbering, facts)
                name, found = f"{key.name} {'.'.join(path)}", _errors(answer)
                if took_ms > STEP_MS_MAX:
                    too_long[name] = f"{took_ms:.0f} ms, errors {dict(found)}"
                if (0 not in found) is not (name in REFUSED):
                    unexpected[name] = f"errors {dict(found)}"
        assert not too_long
        assert numbering is not Numbering.DISTINCT or not unexpected
        assert not errors

    try:
        with_cluster(config, session)
    finally:
        gc.enable()


def _member(sim: SimulatedCluster) -> str:
    return uuid_text(sim.cluster.runtime.ids.uuid())


async def _prepare(sim: SimulatedCluster) -> Known:
    """Topics, groups with a member each, a producer and records in each partition of `WIDE`."""
    client = Client(await sim.connect(1))
    for first in range(0, TOPICS, TOPICS_AT_ONCE):
        topics = [CreatableTopic(_name(first + n), 1, 1) for n in range(TOPICS_AT_ONCE)]
        request = CreateTopicsRequest(topics, timeout_ms=60_000)
        await client.answer_to(ApiKey.CREATE_TOPICS, 7, request)
    for kind, key in enumerate((GROUP, TRANSACTION)):
        coordinator = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        await client.answer_to(ApiKey.FIND_COORDINATOR, 6, coordinator)
    state_key = f"{STATE_GROUP}:{uuid_text(sim.cluster.topics[WIDE].topic_id)}:0"
    coordinator = FindCoordinatorRequest(key_type=2, coordinator_keys=[state_key])
    await client.answer_to(ApiKey.FIND_COORDINATOR, 6, coordinator)
    join = JoinGroupRequest(
        CLASSIC_GROUP,
        30_000,
        60_000,
        group_instance_id=INSTANCE,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
    )
    classic = await client.answer_to(ApiKey.JOIN_GROUP, 9, join)
    consumer = _member(sim)
    heartbeat = ConsumerGroupHeartbeatRequest(
        CONSUMER_GROUP,
        consumer,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[WIDE],
        topic_partitions=[],
    )
    member = await client.answer_to(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat)
    init = InitProducerIdRequest(TRANSACTION, 60_000)
    producer = await client.answer_to(ApiKey.INIT_PRODUCER_ID, 5, init)
    add = AddOffsetsToTxnRequest(TRANSACTION, producer.producer_id, producer.producer_epoch, GROUP)
    assert (await client.answer_to(ApiKey.ADD_OFFSETS_TO_TXN, 4, add)).error_code == 0
    earliest = AlterableConfig("share.auto.offset.reset", 0, "earliest")
    resource = AlterConfigsResource(ConfigResourceType.GROUP, SHARE_GROUP, [earliest])
    configs = IncrementalAlterConfigsRequest([resource])
    (altered,) = (await client.answer_to(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, configs)).responses
    assert altered.error_code == 0
    await _ask_wide(sim, client, ApiKey.PRODUCE, ("topic_data", "partition_data"))
    for path in (("topics",), ("topics", "partitions")):
        await _ask_wide(sim, client, ApiKey.INITIALIZE_SHARE_GROUP_STATE, path)
    for group in (GROUP, *(f"{GROUP}-{number}" for number in range(GROUPS))):
        offset = OffsetCommitRequestPartition(0, 1)
        topic = OffsetCommitRequestTopic(_name(0), partitions=[offset])
        commit = OffsetCommitRequest(group, topics=[topic])
        await client.answer_to(ApiKey.OFFSET_COMMIT, 9, commit)
    for epoch in (0, -1):
        share = ShareGroupHeartbeatRequest(SHARE_GROUP, consumer, epoch, None, [WIDE])
        answer = await client.answer_to(ApiKey.SHARE_GROUP_HEARTBEAT, 1, share)
        assert answer.error_code == 0, answer
    streams = StreamsGroupHeartbeatRequest(
        STREAMS_GROUP,
        consumer,
        rebalance_timeout_ms=60_000,
        topology=Topology(1, [Subtopology("0", [WIDE])]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
    )
    reader = await client.answer_to(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, streams)
    assert reader.error_code == 0, reader
    dirs = await client.answer_to(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=[]))
    client.close()
    return Known(
        classic.member_id,
        classic.generation_id,
        member.member_epoch,
        producer.producer_id,
        producer.producer_epoch,
        consumer,
        streams_member=consumer,
        streams_epoch=reader.member_epoch,
        log_dir=dirs.results[0].log_dir,
    )


async def _ask_wide(sim: SimulatedCluster, client: Client, key: ApiKey, path: Path) -> None:
    frame = _frame(sim, key, path, Numbering.DISTINCT, Known())
    await client.ask(key, APIS[key].max_version, frame)
    assert await client.wait(60.0)
    assert 0 in _errors(client.answer)


async def _share_session(sim: SimulatedCluster, client: Client) -> str:
    """A new member of the share group, with a session of `SESSION` partitions."""
    member = _member(sim)
    partitions = [FetchPartition(index) for index in range(SESSION)]
    topic = FetchTopic(sim.cluster.topics[WIDE].topic_id, partitions)
    fetch = ShareFetchRequest(
        SHARE_GROUP, member, max_records=500, batch_size=500, topics=[topic], max_bytes=1 << 20
    )
    answer = await client.answer_to(ApiKey.SHARE_FETCH, 2, fetch)
    assert answer.error_code == 0
    return member


def _name(number: int) -> str:
    return f"topic-{number % TOPICS if number < ELEMENTS_MAX else number}"


def _frame(
    sim: SimulatedCluster, key: ApiKey, path: Path, numbering: Numbering, known: Known
) -> bytes:
    """A request with as many elements as it may have."""
    version = APIS[key].max_version
    outer = len(path) - 1
    most = ELEMENTS_MAX if numbering is Numbering.DISTINCT else ELEMENTS_MAX // 2
    count = (most - outer - len(array_paths(key, version))) // elements_each(key, version, path)
    count = min(count, MOST.get(f"{key.name} {'.'.join(path)}", count))
    ids = {name: topic.topic_id for name, topic in sim.cluster.topics.items()}
    request = WideRequest(key, version, path, count, numbering, ids, _name, known)
    return b"".join(request_frame(RequestHeader(key, version, 0, "wide"), request.message()))


async def _least_ms(
    sim: SimulatedCluster, key: ApiKey, path: Path, numbering: Numbering, known: Known
) -> tuple[float, Any]:
    """The longest step of a request in ms, and the answer.

    If it is not quick, it is the least of some attempts, as a machine has other work, in ms of the
    reference machine.
    """
    least, answer = float("inf"), None
    once_scale = slowness() if key in ONCE else 0.0
    for _ in range(1 if key in ONCE else REPEATS):
        client = Client(await sim.connect(1))
        known = known._replace(new_member=_member(sim))
        if key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE):
            known = known._replace(share_member=await _share_session(sim, client))
        frame = _frame(sim, key, path, numbering, known)
        longest = LongestStep()
        trio.lowlevel.add_instrument(longest)
        await client.ask(key, APIS[key].max_version, frame)
        await client.wait(60.0)
        trio.lowlevel.remove_instrument(longest)
        answer = client.answer
        client.close()
        if longest.ms <= quick_ms():
            return longest.ms, answer
        least = min(least, longest.ms / max(once_scale, slowness()))
        if least <= STEP_MS_MAX:
            break
    return least, answer


def _errors(message: Any) -> Counter[int]:
    found: Counter[int] = Counter()
    for value in _structs(message):
        error = getattr(value, "error_code", None)
        if error is not None:
            found[int(error)] += 1
    return found


def _structs(value: Any) -> Iterator[Any]:
    if isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from _structs(getattr(value, name))
    elif isinstance(value, list):
        for element in value:
            yield from _structs(element)
