"""`mockbroker topics`: list, describe, create, alter and delete topics."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import click

from mockbroker.cli.common import client_command, json_option, name_values
from mockbroker.cli.output import print_json, print_table

if TYPE_CHECKING:
    from mockbroker.client import Client
    from mockbroker_protocol.messages.metadata import MetadataResponseTopic

SPECIAL_TIMES = {"latest": -1, "earliest": -2, "max-timestamp": -3}


@click.group()
def topics() -> None:
    """List, describe, create, alter and delete topics."""


@topics.command("list")
@click.option("--internal", is_flag=True, help="Include Kafka's own topics.")
@json_option
@client_command
def list_topics(client: Client, *, internal: bool, as_json: bool) -> None:
    """List all topics."""
    found = [_summary(topic) for topic in client.topics.all(internal=internal)]
    if as_json:
        print_json(found)
        return
    columns = ("TOPIC", "PARTITIONS", "REPLICAS", "ID")
    keys = ("name", "partitions", "replication_factor", "topic_id")
    print_table(columns, [[row[key] for key in keys] for row in found])


@topics.command("describe")
@click.argument("name")
@click.option("--all-configs", is_flag=True, help="Show defaults too.")
@json_option
@client_command
def describe_topic(client: Client, *, name: str, all_configs: bool, as_json: bool) -> None:
    """Show a topic's partitions, offsets and configs."""
    from mockbroker.client import EARLIEST, LATEST, Resource

    topic = client.topics.describe(name)
    configs = {
        config.name: config.value
        for config in client.configs.describe(Resource.TOPIC, name)
        if config.is_set or all_configs
    }
    led = [p.partition_index for p in topic.partitions if p.leader_id >= 0]
    starts = client.list_offsets(name, EARLIEST, led)
    ends = client.list_offsets(name, LATEST, led)
    partitions = [
        {
            "partition": p.partition_index,
            "leader": p.leader_id,
            "leader_epoch": p.leader_epoch,
            "replicas": p.replica_nodes,
            "isr": p.isr_nodes,
            "start": starts[p.partition_index].offset if p.partition_index in starts else None,
            "end": ends[p.partition_index].offset if p.partition_index in ends else None,
        }
        for p in topic.partitions
    ]
    if as_json:
        print_json({**_summary(topic), "configs": configs, "partitions": partitions})
        return
    columns = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END")
    rows = [[_cell(value) for value in partition.values()] for partition in partitions]
    print_table(columns, rows, title=f"{name}  {_uuid_text(topic.topic_id)}")
    if configs:
        click.echo()
        print_table(("CONFIG", "VALUE"), sorted(configs.items()))


@topics.command("create")
@click.argument("name")
@click.option(
    "--partitions", "-p", type=click.IntRange(min=1), help="Default: the broker's num.partitions."
)
@click.option(
    "--replication-factor",
    "-r",
    type=click.IntRange(1, 32767),
    help="Default: the broker's default.replication.factor.",
)
@click.option(
    "--config",
    "configs",
    metavar="NAME=VALUE",
    multiple=True,
    callback=name_values,
    help="Set a topic config.",
)
@click.option("--if-not-exists", is_flag=True, help="Succeed if the topic exists.")
@json_option
@client_command
def create_topic(
    client: Client,
    *,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    configs: dict[str, str],
    if_not_exists: bool,
    as_json: bool,
) -> None:
    """Create a topic."""
    from mockbroker.client import BrokerError
    from mockbroker.client.topics import BROKER_DEFAULT
    from mockbroker_protocol import ErrorCode

    created = True
    try:
        client.topics.create(
            name,
            partitions=partitions or BROKER_DEFAULT,
            replication_factor=replication_factor or BROKER_DEFAULT,
            configs=configs,
        )
    except BrokerError as error:
        if not if_not_exists or error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
        created = False
    if as_json:
        print_json({"name": name, "created": created})
    else:
        click.echo(f"created topic {name}" if created else f"topic {name} exists already")


@topics.command("alter")
@click.argument("name")
@click.option("--partitions", "-p", type=click.IntRange(min=1), help="New number of partitions.")
@click.option(
    "--config",
    "configs",
    metavar="NAME=VALUE",
    multiple=True,
    callback=name_values,
    help="Set a topic config. May be repeated.",
)
@click.option(
    "--delete-config",
    "deleted",
    metavar="NAME",
    multiple=True,
    help="Delete a topic config, so that the default applies. May be repeated.",
)
@json_option
@client_command
def alter_topic(
    client: Client,
    *,
    name: str,
    partitions: int | None,
    configs: dict[str, str],
    deleted: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add partitions to a topic, and change its configs."""
    from mockbroker.client import Resource

    if partitions is None and not configs and not deleted:
        raise click.UsageError("nothing to alter: give --partitions, --config or --delete-config")
    client.topics.describe(name)  # it exists
    if configs or deleted:
        client.configs.alter(Resource.TOPIC, name, configs, deleted)
    if partitions is not None:
        client.topics.add_partitions(name, partitions)
    if as_json:
        print_json(
            {"name": name, "partitions": partitions, "set": configs, "deleted": list(deleted)}
        )
    else:
        click.echo(f"altered topic {name}")


@topics.command("delete")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@json_option
@client_command
def delete_topics(client: Client, *, names: tuple[str, ...], as_json: bool) -> None:
    """Delete topics with all their records."""
    for name in names:
        client.topics.delete(name)
        if not as_json:
            click.echo(f"deleted topic {name}")
    if as_json:
        print_json({"deleted": names})


@topics.command("offsets")
@click.argument("name")
@click.option(
    "--time",
    default="latest",
    show_default=True,
    metavar="latest|earliest|max-timestamp|MS",
    help="First offset at or after this time (ms since the epoch), or a special offset.",
)
@json_option
@client_command
def topic_offsets(client: Client, *, name: str, time: str, as_json: bool) -> None:
    """Print TOPIC:PARTITION:OFFSET of each partition, as kafka-get-offsets does."""
    timestamp = SPECIAL_TIMES.get(time)
    if timestamp is None:
        try:
            timestamp = int(time)
        except ValueError:
            raise click.BadParameter(
                f"{time!r} is neither a time in ms nor one of {', '.join(SPECIAL_TIMES)}",
                param_hint="--time",
            ) from None
    listed = client.list_offsets(name, timestamp)
    if as_json:
        print_json({str(index): offset.offset for index, offset in listed.items()})
        return
    for index, offset in listed.items():
        click.echo(f"{name}:{index}:{offset.offset if offset.offset >= 0 else ''}")


def _summary(topic: MetadataResponseTopic) -> dict[str, str | int | None]:
    return {
        "name": topic.name,
        "topic_id": _uuid_text(topic.topic_id),
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": max((len(p.replica_nodes) for p in topic.partitions), default=0),
    }


def _uuid_text(topic_id: bytes) -> str:
    """As Kafka writes it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def _cell(value: int | list[int] | None) -> str | int | None:
    return ",".join(map(str, value)) if isinstance(value, list) else value
