"""Requests for the engine without a connection: a cluster, a context, a message."""

from __future__ import annotations

from typing import Any

from mockbroker.core.cluster import Cluster
from mockbroker.core.faults.engine import ActiveRule, FaultEngine, engine_of
from mockbroker.core.faults.rules import parse_plan
from mockbroker.handlers.base import ConnectionInfo, RequestContext
from mockbroker_protocol import ApiKey
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch


class Asking:
    """A cluster with an engine, and how requests are put to it."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.cluster = Cluster(now_ms=lambda: self.now_ms, seed=1)
        self.cluster.create_topic("orders", 4, 1)
        self.engine: FaultEngine = engine_of(self.cluster)
        self.connection = ConnectionInfo(1, "127.0.0.1", 5000)

    def add(self, **rule: Any) -> ActiveRule:
        plan = parse_plan(rule, f"f{len(self.engine.plans) + 1}")
        return self.engine.add(plan)[0]

    def ask(
        self, key: ApiKey, request: Any, *, client_id: str = "c", version: int = 9
    ) -> list[str]:
        """The names of the rules that fire."""
        header = RequestHeader(key, version, 1, client_id)
        broker = self.cluster.brokers[1]
        context = RequestContext(
            self.cluster, broker, "PLAINTEXT", header, self.connection, self.now_ms
        )
        fired = self.engine.evaluate(context, request)
        return [] if fired is None else [decision.rule.name for decision in fired[1]]

    def produce(self, *partitions: int, topic: str = "orders", **how: Any) -> list[str]:
        return self.ask(ApiKey.PRODUCE, produce(*partitions or (0,), topic=topic), **how)


def produce(*partitions: int, topic: str = "orders") -> ProduceRequest:
    records = memoryview(build_batch([Record(timestamp=1, value=b"x")]))
    data = [PartitionProduceData(index, records) for index in partitions]
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=topic, partition_data=data)])
