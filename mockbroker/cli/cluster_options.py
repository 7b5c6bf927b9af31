"""The options of commands that start a cluster, and the `ServerConfig` that they describe."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from mockbroker.server.config import (
    BROKERS_MAX,
    PORT_MAX,
    ListenerSpec,
    ServerConfig,
    ServerError,
    TopicSpec,
)

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_PORT = 9092
EXAMPLES = Path(__file__).parent / "examples"


def cluster_options(command: F) -> F:
    """Give a command the options that `build_config` reads, and `journal_dir`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--brokers", type=click.IntRange(1, BROKERS_MAX), help="Number of brokers.  [default: 3]"
    ),
    click.option("--node-ids", metavar="ID,ID,…", help="Node ids instead of 1, 2, 3, …"),
    click.option("--rack", multiple=True, help="Rack of the next broker. May be repeated."),
    click.option("--host", help="Address to listen on.  [default: 127.0.0.1]"),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        help=f"Broker i listens on PORT+i; 0 takes free ports.  [default: {DEFAULT_PORT}; "
        "`exec`: 0]",
    ),
    click.option(
        "--advertised-host",
        metavar="HOST",
        envvar="MOCKBROKER_ADVERTISED_HOST",
        show_envvar=True,
        help="Host that brokers advertise to clients.  [default: --host]",
    ),
    click.option(
        "--listener",
        "listeners",
        multiple=True,
        metavar="NAME:PROTOCOL:PORT[:ADVERTISED_HOST[:ADVERTISED_PORT]]",
        help="Add a listener. PROTOCOL is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. Broker i "
        "listens on PORT+i and advertises ADVERTISED_PORT+i. May be repeated.",
    ),
    click.option(
        "--user",
        "users",
        multiple=True,
        metavar="NAME:PASSWORD",
        help="Add a SASL user. May be repeated.",
    ),
    click.option(
        "--security-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory for the certificates and keys of clients.  [default: a temporary one]",
    ),
    click.option(
        "--allow-unsigned-tokens", is_flag=True, help="Accept unsigned OAUTHBEARER tokens."
    ),
    click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="NAME:PARTITIONS[:RF]",
        help="Create a topic. May be repeated.",
    ),
    click.option(
        "--config",
        "configs",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a broker config. May be repeated.",
    ),
    click.option(
        "--kafka-version", metavar="VERSION", help="Behave as this Kafka release (2.8 … 4.3)."
    ),
    click.option(
        "--strict", is_flag=True, help="Behave as Kafka where mockbroker differs on purpose."
    ),
    click.option("--seed", type=int, help="Seed of generated ids, for repeatable runs."),
    click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Keep the cluster in this directory and continue from its content.",
    ),
    click.option(
        "--sync", is_flag=True, help="With --data-dir: acknowledge only what is flushed to disk."
    ),
    click.option(
        "--load",
        type=click.Path(path_type=Path, file_okay=False),
        help="Start with the cluster in this directory, without changing the directory.",
    ),
    click.option("--recover", is_flag=True, help="Load damaged files up to the damage."),
    click.option(
        "--journal-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Write the journal as Parquet tables into this directory, as a new run.",
    ),
    click.option(
        "--journal-hops",
        is_flag=True,
        help="Record requests between brokers in the journal.",
    ),
    click.option(
        "--config-file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Read the cluster from a TOML file. Flags override it.",
    ),
    click.option(
        "--example",
        type=click.Choice(["trading"]),
        help="Read the cluster from an included file: topics of a trading system.",
    ),
)


def _topic(text: str) -> TopicSpec:
    """NAME:PARTITIONS[:RF]. Raises ServerError for other text."""
    parts = text.split(":")
    if len(parts) not in (1, 2, 3) or not parts[0]:
        raise ServerError(f"--topic {text}: expected NAME:PARTITIONS[:REPLICATION_FACTOR]")
    try:
        counts = [int(part) for part in parts[1:]]
    except ValueError:
        raise ServerError(
            f"--topic {text}: expected numbers after the name, NAME:PARTITIONS[:REPLICATION_FACTOR]"
        ) from None
    partitions, replication_factor = (*counts, *(1, 1)[len(counts) :])
    return TopicSpec(parts[0], partitions, replication_factor)


def _config(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ServerError(f"--config {text}: expected NAME=VALUE")
    return name.strip(), value.strip()


def _listener(text: str) -> ListenerSpec:
    """NAME:PROTOCOL:PORT[:ADVERTISED_HOST[:ADVERTISED_PORT]], or PROTOCOL:PORT… for a listener with
    the name of its protocol. An IPv6 address stands in brackets.
    """
    parts = re.findall(r"\[[^\]]*\]|[^:\[\]]+|(?<=:)(?=:|$)", text)
    if len(parts) > 1 and parts[1].isdecimal():
        parts = [parts[0], *parts]
    name, protocol, port, host, advertised_port = (*parts, *[""] * 5)[:5]
    if not (3 <= len(parts) <= 5 and name and _is_port(port) and _is_port(advertised_port or "0")):
        raise ServerError(
            f"--listener {text}: expected NAME:PROTOCOL:PORT[:ADVERTISED_HOST[:ADVERTISED_PORT]]"
        )
    return ListenerSpec(
        name,
        port=int(port),
        security_protocol=protocol.upper(),
        advertised_host=host.strip("[]") or None,
        advertised_port=int(advertised_port) if advertised_port else None,
    )


def _is_port(text: str) -> bool:
    from mockbroker_protocol.types import parse_integer

    return parse_integer(text, 0, PORT_MAX) is not None


def _user(text: str) -> tuple[str, str]:
    """NAME:PASSWORD. The error message has no text of the argument: it may hold a password."""
    name, colon, password = text.partition(":")
    if not (name and colon and password):
        raise ServerError("--user: expected NAME:PASSWORD")
    return name, password


def _node_ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ServerError(f"--node-ids {text}: expected numbers separated by commas") from None


def _broker_ids(
    brokers: int | None, node_ids: str | None, base: ServerConfig, *, stored: bool
) -> list[int] | None:
    """The node ids, None for 1, 2, 3, …; --brokers outranks the node ids of the file.

    A `stored` cluster has its brokers, so --brokers is checked against these.
    """
    if node_ids is None:
        if stored and brokers is not None:
            return list(range(1, brokers + 1))
        return None if brokers is not None or base.node_ids is None else list(base.node_ids)
    ids = _node_ids(node_ids)
    if brokers not in (None, len(ids)):
        raise ServerError(f"--brokers {brokers}, but --node-ids names {len(ids)}")
    return ids


def build_config(
    *,
    brokers: int | None,
    node_ids: str | None,
    rack: tuple[str, ...],
    host: str | None,
    port: int | None,
    advertised_host: str | None,
    listeners: tuple[str, ...] = (),
    users: tuple[str, ...] = (),
    security_dir: Path | None = None,
    allow_unsigned_tokens: bool = False,
    data_dir: Path | None = None,
    sync: bool = False,
    load: Path | None = None,
    recover: bool = False,
    journal_hops: bool = False,
    topics: tuple[str, ...],
    configs: tuple[str, ...],
    kafka_version: str | None,
    strict: bool = False,
    seed: int | None,
    config_file: Path | None,
    example: str | None = None,
    default_port: int = DEFAULT_PORT,
) -> ServerConfig:
    """The config of flags and config file; a flag outranks the file.

    Raises ServerError naming the flag or the field.
    """
    if example is not None:
        if config_file is not None:
            raise ServerError("--example and --config-file exclude each other")
        config_file = EXAMPLES / f"{example}.toml"
    if config_file is not None:
        from mockbroker.cli import config_file as files

        base = files.server_config(files.load(config_file))
    else:
        base = ServerConfig(listeners=())
    data_dir = data_dir or base.data_dir
    if recover and data_dir is None and load is None:
        raise ServerError("--recover needs --data-dir or --load")
    if sync and data_dir is None:
        raise ServerError("--sync needs --data-dir")
    if listeners and port is not None:
        raise ServerError("--port and --listener exclude each other: a listener names its port")
    specs = [_listener(text) for text in listeners]
    specs = specs or list(base.listeners) or [ListenerSpec(port=default_port)]
    for index, spec in enumerate(specs if listeners else specs[:1]):
        # A host that --listener names outranks --advertised-host, which an image may have set.
        named = spec.advertised_host if listeners or advertised_host is None else None
        specs[index] = dataclasses.replace(
            spec,
            host=spec.host if host is None else host,
            port=spec.port if port is None else port,
            advertised_host=advertised_host if named is None else named,
        )
    return dataclasses.replace(
        base,
        brokers=base.brokers if brokers is None else brokers,
        node_ids=_broker_ids(brokers, node_ids, base, stored=bool(data_dir or load)),
        racks=list(rack) or base.racks,
        listeners=tuple(specs),
        topics=[*base.topics, *(_topic(text) for text in topics)],
        configs={**base.configs, **dict(_config(text) for text in configs)},
        kafka_version=base.kafka_version if kafka_version is None else kafka_version,
        strict=strict or base.strict,
        seed=base.seed if seed is None else seed,
        users={**base.users, **dict(_user(text) for text in users)},
        security_directory=security_dir or base.security_directory,
        allow_unsigned_tokens=allow_unsigned_tokens or base.allow_unsigned_tokens,
        data_dir=data_dir,
        sync=sync or base.sync,
        load=load,
        recover=recover,
        journal_hops=journal_hops,
    )
