"""Requests of any API whose fields name what exists, what does not, and what lies on a boundary.

A *profile* is what a request and its answer said together: a group with its member and generation,
a transactional id with its producer and epoch. A request mostly takes fields from one profile, by
their names, so that it gets behind the first checks of its handler.
"""

from __future__ import annotations

import random
from importlib import import_module
from types import ModuleType
from typing import Any

import msgspec

from mockbroker_protocol import ApiKey
from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from mockbroker_protocol.declarations import class_names, schema_module
from mockbroker_protocol.declare import Array, Field, FieldType, Scalar, Shape
from mockbroker_protocol.records import Record, build_batch
from tests.fuzz.mutate import mutated

CANARY = "canary"
TOPICS = ("orders", "compacted", "appended", "three", "missing", "__consumer_offsets", "new")
GROUPS = ("classic", "consumer", "static", "missing", "")
IDS = ("tx-1", "tx-2", "missing")
CONFIGS = (
    *("cleanup.policy", "retention.ms", "retention.bytes", "segment.bytes", "max.message.bytes"),
    *("compression.type", "min.insync.replicas", "message.timestamp.type", "delete.retention.ms"),
    *("min.cleanable.dirty.ratio", "segment.ms", "log.retention.ms", "message.max.bytes"),
    *("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "group.max.size"),
    *("consumer_byte_rate", "producer_byte_rate", "request_percentage", "metrics", "interval.ms"),
    *("match", "follower.replication.throttled.replicas", "nothing.such"),
)
CONFIG_VALUES = (
    *("", "0", "1", "-1", "1000", "2147483647", "9223372036854775807", "-9223372036854775809"),
    *("compact", "delete", "compact,delete", "zstd", "lz4", "producer", "LogAppendTime", "true"),
    *("0.5", "NaN", "1e400", "*", "client_id=.*", "(a{1000}){1000}", "x" * 3000, "\0"),
)
WORDS = (
    *("consumer", "range", "uniform", "roundrobin", "*", "User:ANONYMOUS", "User:*", "PLAINTEXT"),
    *("SCRAM-SHA-256", "PLAIN", "ip", "user", "client-id", "metadata.version", "kraft.version"),
    *("/dev/shm/mockbroker-1", "127.0.0.1", "Ongoing", "Stable", "a", "", "\0", "ü", "a/b", ".."),
    *("x" * 249, "x" * 250, "x" * 5000, "^o.*", "(", "(((((a+)+)+)+)+)b", "日本", "\ud7ff"),
)
DURATIONS_MS = (0, 1, 10, 100, 6_000, 30_000, 300_000, -1, 2**31 - 1, -(2**31))
NUMBERS = (0, 0, 1, 1, 2, 3, 4, 5, 8, 10, 16, 32, 64, 100, 127, -1, -2, -3, -5)
# Fields whose value decides whether a handler goes on, by their names.
TEXTS_OF = {
    "entity_type": ("user", "client-id", "ip"),
    "entity_name": ("ANONYMOUS", "fuzz", "127.0.0.1", "localhost", "::1", "x"),
    "key": (*GROUPS, *IDS, *CONFIGS[18:21], "a:b:1", "g:AAAAAAAAAAAAAAAAAAAAAA:" + "9" * 5_000),
    "resource_name": (*TOPICS, "1", "2", "", "classic", "9" * 5_000, "-1", "\u0661", "+1"),
    "feature": ("metadata.version", "group.version", "transaction.version", "share.version"),
    "principal": ("User:ANONYMOUS", "User:*", "User:x", "x", ""),
    "principal_filter": ("User:ANONYMOUS", "User:*"),
    "host": ("*", "127.0.0.1"),
    "protocol_type": ("consumer", "consumer", "connect", ""),
    "assignor": ("uniform", "range", "none"),
    "server_assignor": ("uniform", "range", "none"),
    "subscribed_topic_regex": ("o.*", "(", "^.*$", "(a{1000}){1000}", ""),
    "member_id": ("", "AAAAAAAAAAAAAAAAAAAAAA", "m-1", "m-2"),
    "protocol_name": ("range", "roundrobin"),
}
NUMBERS_OF = {
    "resource_type": (2, 2, 4, 8, 16, 32, 3, 5, 6, 7, 1),
    "config_operation": (0, 0, 1, 2, 3),
    "operation": (2, 3, 4, 8, 1),
    "permission_type": (2, 3, 1),
    "pattern_type": (3, 4, 1, 2),
    "resource_pattern_type": (3, 4),
    "acks": (-1, 0, 1),
    "mechanism": (1, 2, 0),
    "iterations": (4096, 8192, 4095, 16384, 16385),
    "election_type": (0, 1),
    "key_type": (0, 1, 2),
    "isolation_level": (0, 1),
    "member_epoch": (0, 0, 1, -1, -2, 5),
    "rebalance_timeout_ms": (5_000, 300_000, 1),
    "session_timeout_ms": (6_000, 30_000, 300_000),
    "partition_index": (0, 0, 1, 2),
    "partition": (0, 0, 1, 2),
    "partitions": (0, 0, 1, 2),
    "index": (0, 0, 1),
    "max_bytes": (1 << 20, 1, 0),
    "partition_max_bytes": (1 << 20, 1, 0),
    "timestamp": (-1, -2, -3, -4, -5, 0, 1_735_689_600_000),
    "num_partitions": (1, 2, 3, -1, 0, 2**31 - 1),
    "replication_factor": (1, 3, -1, 2, 4),
    "upgrade_type": (1, 2, 3),
}
FLOATS = (0.0, 1.0, -1.0, 1e300, 5e-324, 1e-7, float("nan"), float("inf"), 1024.0)
NAMED_SHARE = 0.7

BITS = {
    Scalar.INT8: 8,
    Scalar.INT16: 16,
    Scalar.INT32: 32,
    Scalar.INT64: 64,
    Scalar.UINT16: 16,
}
PROFILES_MAX = 60
PROFILE_SHARE = 0.75
UNKNOWN_UUID = b"\xab" * 16

Profile = dict[str, Any]


class RequestDrawer:
    """Draws requests, and learns from their answers."""

    def __init__(self, rng: random.Random, topic_ids: list[bytes], canary_id: bytes) -> None:
        self.rng = rng
        self._hidden = frozenset((CANARY, canary_id))
        self._topic_ids = topic_ids
        self._profiles: list[Profile] = []
        self._profile: Profile = {}
        self._version = 0

    def draw(self, key: ApiKey, version: int) -> Any:
        """A request of this API and version."""
        self._profile = self.rng.choice(self._profiles) if self._profiles else {}
        self._version = version
        schema = schema_module(key.name.lower())
        classes = import_module(schema.__name__.replace(".schemas.", ".messages."))
        return _Structs(self, schema, classes).struct(schema.REQUEST.shape)

    def learn(self, request: Any, response: Any) -> None:
        """Keep what an answer has told, with what was asked."""
        profile = {**_plain(request), **_plain(response)}
        profile.pop("throttle_time_ms", None)
        if not self._hidden.isdisjoint(profile.values()):
            return
        if "generation_id" in profile:
            profile["generation_id_or_member_epoch"] = profile["generation_id"]
        if "member_epoch" in profile:
            profile["generation_id_or_member_epoch"] = profile["member_epoch"]
        if getattr(response, "error_code", 0) in (0, 79) and profile:
            self._profiles.append(profile)
            if len(self._profiles) > PROFILES_MAX:
                del self._profiles[self.rng.randrange(PROFILES_MAX)]

    # -- values ------------------------------------------------------------------------------------

    def value(self, field: Field, type_: Scalar) -> Any:
        """A value for a field that is no struct."""
        name, rng = field.name, self.rng
        if name in self._profile and rng.random() < PROFILE_SHARE:
            return self._profile[name]
        match type_:
            case Scalar.BOOL:
                return rng.random() < 0.5
            case Scalar.STRING:
                return self._text(name)
            case Scalar.UUID:
                return rng.choice((*self._topic_ids, UNKNOWN_UUID, bytes(16), b"\0" * 15 + b"\1"))
            case Scalar.BYTES:
                return self._bytes(name)
            case Scalar.RECORDS:
                return self._records()
            case Scalar.FLOAT64:
                return rng.choice(FLOATS)
            case _:
                return self._number(name, type_)

    def _text(self, name: str) -> str:
        rng = self.rng
        if rng.random() < 0.15:
            return rng.choice(WORDS)
        if name in TEXTS_OF and rng.random() < NAMED_SHARE:
            return rng.choice(TEXTS_OF[name])
        if "topic" in name or name in ("name", "names", "resource_name"):
            return rng.choice((*TOPICS, *TOPICS, *CONFIGS[:4], "1", "2", "classic"))
        if "transactional" in name:
            return rng.choice(IDS)
        if "group" in name and "instance" not in name:
            return rng.choice(GROUPS)
        if name == "key":
            return rng.choice((*GROUPS, *IDS))
        if "config" in name:
            return rng.choice(CONFIGS)
        if name == "value":
            return rng.choice(CONFIG_VALUES)
        return rng.choice((*WORDS, *TOPICS, *GROUPS, *IDS, *CONFIGS))

    def _number(self, name: str, type_: Scalar) -> int:
        rng = self.rng
        low, high = -(1 << BITS[type_] - 1), (1 << BITS[type_] - 1) - 1
        if type_ is Scalar.UINT16:
            low, high = 0, 65535
        drawn = rng.random()
        if drawn < 0.1:
            return rng.choice((low, low + 1, high, high - 1))
        numbers = DURATIONS_MS if name.endswith("_ms") else NUMBERS
        if name in NUMBERS_OF and rng.random() < NAMED_SHARE:
            numbers = NUMBERS_OF[name]
        value = rng.choice(numbers)
        return min(max(value, low), high)

    def _bytes(self, name: str) -> bytes:
        rng = self.rng
        topic = rng.choice(TOPICS)
        lines = [TopicPartition(topic, [0, 1])]
        blob = rng.choice(
            (
                encode_subscription(ConsumerProtocolSubscription([topic], b"u", lines, 3, "r")),
                encode_assignment(ConsumerProtocolAssignment(lines, b"u")),
                b"",
                b"n,,n=alice,r=abcdef",
                b"\0alice\0secret",
            )
        )
        if rng.random() < 0.3:
            blob = mutated(rng, blob, (), 4096)
        return blob

    def _records(self) -> bytes | None:
        rng, profile = self.rng, self._profile
        known = rng.random() < 0.5 and "producer_epoch" in profile
        producer_id = profile.get("producer_id", -1) if known else -1
        batch = build_batch(
            [Record(0, rng.choice((-1, 1, 1_735_689_600_000)), b"k", b"v")] * rng.choice((1, 1, 3)),
            codec=rng.choice((0, 0, 0, 1, 2, 3, 4)),
            producer_id=producer_id if isinstance(producer_id, int) else -1,
            producer_epoch=profile.get("producer_epoch", -1) if known else -1,
            base_sequence=rng.choice((0, 0, 1, 2, 2**31 - 1)) if known else -1,
            transactional=known and rng.random() < 0.7,
        )
        if rng.random() < 0.1:
            return mutated(rng, batch, (), 4096)
        return None if rng.random() < 0.02 else bytes(batch)


class _Structs:
    """Structs of one module of declarations."""

    def __init__(self, drawer: RequestDrawer, schema: ModuleType, classes: ModuleType) -> None:
        self._drawer = drawer
        self._classes = classes
        self._names = class_names(schema)

    def struct(self, shape: Shape) -> Any:
        drawer = self._drawer
        given = {}
        for field in shape.fields:
            if drawer._version not in field.versions:
                continue
            if field.tag is not None and drawer.rng.random() < 0.4:
                continue
            if drawer._version in field.nullable and drawer.rng.random() < 0.15:
                given[field.name] = None
                continue
            given[field.name] = self._value(field, field.type)
        return getattr(self._classes, self._names[id(shape)])(**given)

    def _value(self, field: Field, type_: FieldType) -> Any:
        if isinstance(type_, Shape):
            return self.struct(type_)
        if isinstance(type_, Array):
            count = self._drawer.rng.choice((0, 1, 1, 1, 1, 2, 3))
            return [self._value(field, type_.element) for _ in range(count)]
        return self._drawer.value(field, type_)


def _plain(message: Any) -> Profile:
    """The fields of a struct that are numbers, text or bytes, those of a lone element too."""
    found: Profile = {}
    for name in message.__struct_fields__:
        value = getattr(message, name)
        while isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, msgspec.Struct):
            found.update(_plain(value))
        elif isinstance(value, int | str | bytes | float) and name != "error_code":
            found[name] = value
    return found
