"""Plans that a cluster of three real brokers can carry out, made from the simulator's.

A seed draws the same topics and clients as in the simulator. What only ours can do is left out:
other releases of the brokers, other numbers of them, rules, clocks that jump, holds. What stops or
pauses a broker does so to one at a time, so that two controllers are always left.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec

from mockbroker.simulation import ClientSettings, Plan, Settings, Step, TopicSettings, generate
from mockbroker.simulation.plan import CRASH_CLIENT

BROKERS = 3
RELEASE = "4.3"
CONFIGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
"""Of the real brokers and of ours alike."""

DURATION_MS = 6_000
OPERATIONS_MAX = 60  # of one client
REPEATABLE = ("move_leader", "delete_records", "fence_producer", CRASH_CLIENT)
"""Steps that need no other one to take them back."""

# The values that topics may have of what the simulator sets for all of them.
_TOPIC_CONFIGS = ("min.insync.replicas",)


def real_plan(seed: int) -> Plan:
    """The plan of a seed for three brokers, of a few seconds. Its names are its own, so that many
    plans can be run by one cluster.
    """
    return _adapted(generate(seed), random.Random(f"real {seed}"))


def _adapted(plan: Plan, rng: random.Random) -> Plan:
    prefix = f"s{plan.seed}-"
    share = DURATION_MS / plan.settings.duration_ms
    settings = Settings(
        brokers=BROKERS,
        kafka_version=RELEASE,
        configs=CONFIGS,
        topics=[_topic(each, plan.settings, prefix) for each in plan.settings.topics],
        duration_ms=DURATION_MS,
    )
    clients = [_client(each, prefix, share) for each in plan.clients]
    steps = [*_lives(rng), *_repeatable(settings, clients, rng)]
    return Plan(
        seed=plan.seed,
        settings=settings,
        clients=clients,
        steps=sorted(steps, key=lambda step: step.at_ms),
    )


def _topic(topic: TopicSettings, settings: Settings, prefix: str) -> TopicSettings:
    configs = {name: settings.configs[name] for name in _TOPIC_CONFIGS if name in settings.configs}
    return msgspec.structs.replace(
        topic,
        name=prefix + topic.name,
        replication_factor=min(topic.replication_factor, BROKERS),
        configs={**configs, **topic.configs},
    )


def _client(client: ClientSettings, prefix: str, share: float) -> ClientSettings:
    def own(name: str) -> str:
        return prefix + name if name else name

    operations = min(client.operations, OPERATIONS_MAX)
    longest_ms = 2 * DURATION_MS // operations
    return msgspec.structs.replace(
        client,
        name=own(client.name),
        topics=[own(topic) for topic in client.topics],
        input=own(client.input),
        group=own(client.group),
        transactional_id=own(client.transactional_id),
        operations=operations,
        pause_ms=(0, longest_ms),
        start_ms=int(client.start_ms * share),
    )


def _lives(rng: random.Random) -> Iterator[Step]:
    """What stops and starts brokers, one after the other."""
    at_ms = rng.randrange(500, 2_000)
    while at_ms < DURATION_MS:
        node = {"node": rng.randint(1, BROKERS)}
        lasts_ms = rng.choice((300, 1_000, 3_500))
        match rng.choice(("unclean", "controlled", "pause", "none")):
            case "pause":
                yield Step(at_ms=at_ms, do="pause_broker", arguments=node)
                yield Step(at_ms=at_ms + lasts_ms, do="resume_broker", arguments=node)
            case "none":
                pass
            case how:
                yield Step(at_ms=at_ms, do="stop_broker", arguments={**node, "how": how})
                yield Step(at_ms=at_ms + lasts_ms, do="start_broker", arguments=node)
        at_ms += lasts_ms + rng.randrange(500, 2_000)


def _repeatable(
    settings: Settings, clients: list[ClientSettings], rng: random.Random
) -> Iterator[Step]:
    ids = sorted({client.transactional_id for client in clients if client.transactional_id})
    for _ in range(rng.randint(2, 6)):
        topic = rng.choice(settings.topics)
        partition: dict[str, Any] = {
            "topic": topic.name,
            "partition": rng.randrange(topic.partitions),
        }
        arguments: dict[str, Any] = {}
        match do := rng.choice(REPEATABLE):
            case "move_leader":
                arguments = {**partition, "node": rng.randint(1, BROKERS)}
            case "delete_records":
                arguments = {**partition, "before_offset": rng.randrange(20)}
            case "fence_producer":
                if not ids:
                    continue
                arguments = {"transactional_id": rng.choice(ids)}
            case _:
                arguments = {"client": rng.choice(clients).name}
        yield Step(at_ms=rng.randrange(DURATION_MS), do=do, arguments=arguments)
