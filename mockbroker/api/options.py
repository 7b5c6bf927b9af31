"""The options of a cluster for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack, get_type_hints

from mockbroker.core.configs.texts import GivenConfig, config_texts
from mockbroker.core.journal.reader_positions import Overflow
from mockbroker.core.type_checks import check_type
from mockbroker.core.validation import nearest
from mockbroker.server.config import ListenerSpec, ServerConfig, TopicSpec


class ClusterOptions(TypedDict, total=False):
    """The options of a test's cluster: those of `ServerConfig` in a short form."""

    brokers: int
    node_ids: Sequence[int] | None
    racks: Sequence[str | None] | None
    topics: Mapping[str, int] | Sequence[TopicSpec] | None
    configs: Mapping[str, GivenConfig] | None
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
    data_dir: str | PathLike[str] | None


def server_config(**options: Unpack[ClusterOptions]) -> ServerConfig:
    """The options of a test's cluster as a `ServerConfig`; `topics` may be {name: partitions}.

    Raises TypeError, with the nearest name, for an unknown option, and TypeError or ValueError for
    a value of another type, with its path.
    """
    types = _option_types()
    for name, value in options.items():
        if name not in types:
            hint = nearest(name, [*types, "journal_dir", "trace"])
            raise TypeError(f"a cluster has no option {name!r}{hint}")
        check_type(value, types[name], name)
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
        configs=config_texts(configs),
        users=given.pop("users", None) or {},
        data_dir=None if data_dir is None else Path(data_dir),
        **given,
    )


@cache
def _option_types() -> dict[str, Any]:
    return get_type_hints(ClusterOptions)
