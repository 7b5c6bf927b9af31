"""The options of a cluster for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from mockbroker.core.journal.reader_positions import Overflow
from mockbroker.core.validation import nearest
from mockbroker.server.config import ListenerSpec, ServerConfig, TopicSpec


class ClusterOptions(TypedDict, total=False):
    """The options of a test's cluster: those of `ServerConfig` in a short form."""

    brokers: int
    node_ids: Sequence[int] | None
    racks: Sequence[str | None] | None
    topics: Mapping[str, int] | Sequence[TopicSpec] | None
    configs: Mapping[str, str | int] | None
    listeners: Sequence[ListenerSpec] | None
    kafka_version: str
    strict: bool
    seed: int | None
    security_protocol: str
    users: Mapping[str, str] | None
    allow_unsigned_tokens: bool
    journal_bytes: int
    journal_overflow: Overflow
    journal_hops: bool
    data_dir: str | Path | None


def server_config(**options: Unpack[ClusterOptions]) -> ServerConfig:
    """The options of a test's cluster as a `ServerConfig`; `topics` may be {name: partitions}.

    Raises TypeError, with the nearest name, for an unknown option.
    """
    for name in options:
        if name not in ClusterOptions.__annotations__:
            hint = nearest(name, [*ClusterOptions.__annotations__, "journal_dir", "trace"])
            raise TypeError(f"a cluster has no option {name!r}{hint}")
    given: dict[str, Any] = {"journal_overflow": "block", **options}
    protocol = given.pop("security_protocol", "PLAINTEXT")
    listeners = given.pop("listeners", None) or [ListenerSpec(protocol, security_protocol=protocol)]
    topics, data_dir = given.pop("topics", None) or (), given.pop("data_dir", None)
    if isinstance(topics, Mapping):
        topics = [TopicSpec(name, partitions) for name, partitions in topics.items()]
    configs = given.pop("configs", None) or {}
    return ServerConfig(
        listeners=tuple(listeners),
        topics=list(topics),
        configs={name: str(value) for name, value in configs.items()},
        users=given.pop("users", None) or {},
        data_dir=None if data_dir is None else Path(data_dir),
        **given,
    )
