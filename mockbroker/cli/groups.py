"""`mockbroker groups`: groups, their members and their lag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from mockbroker.cli.admin_client import AdminClient, admin_command
from mockbroker.cli.common import client_command, json_option
from mockbroker.cli.output import print_json, print_rows

if TYPE_CHECKING:
    from mockbroker.client import Client
    from mockbroker_protocol.messages.describe_groups import DescribedGroupMember
    from mockbroker_protocol.messages.streams_group_describe import TaskIds

DEAD = "Dead"


@click.group()
def groups() -> None:
    """List, describe, reset and delete groups."""


@groups.command("list")
@json_option
@client_command
def list_groups(client: Client, *, as_json: bool) -> None:
    """List all groups."""
    found = [
        {
            "group": group.group_id,
            "state": group.group_state,
            "protocol_type": group.protocol_type,
            "type": group.group_type,
        }
        for group in client.groups.all()
    ]
    if as_json:
        print_json(found)
    else:
        print_rows(found, "group", "state", "protocol_type", "type")


@groups.command("describe")
@click.argument("group")
@json_option
@client_command
def describe_group(client: Client, *, group: str, as_json: bool) -> None:
    """Show a group's members, committed offsets and lag.

    The lag counts from the committed offset to the log end (the high watermark). A share group has
    the start offsets of its share partitions, a streams group its tasks.
    """
    describe = {"share": _share, "streams": _streams}.get(client.groups.type_of(group), _classic)
    described = describe(client, group)
    if as_json:
        print_json({"group": group, **described.document()})
        return
    title = f"{group}  {described.state}"
    print_rows(described.partitions, *described.partition_columns, title=title)
    if described.members:
        click.echo()
        print_rows(described.members, *described.member_columns)


@dataclass
class _Described:
    """A group as JSON, and the columns of its tables. A lag is the sum of its partitions."""

    state: str
    details: dict[str, object]
    members: list[dict[str, object]]
    partitions: list[dict[str, Any]]
    has_lag: bool = True
    partition_columns: tuple[str, ...] = ("topic", "partition", "committed", "log_end", "lag")
    member_columns: tuple[str, ...] = ("member_id", "client_id", "host", "assigned")

    def document(self) -> dict[str, object]:
        lag = {"lag": sum(each["lag"] for each in self.partitions)} if self.has_lag else {}
        return {
            "state": self.state,
            **self.details,
            "members": self.members,
            "partitions": self.partitions,
            **lag,
        }


def _classic(client: Client, group: str) -> _Described:
    """A classic or a consumer group."""
    described = client.groups.describe(group)
    partitions = _partitions(client, group)
    if described.group_state == DEAD and not partitions:
        raise click.ClickException(f"unknown group {group}")
    details: dict[str, object] = {
        "protocol_type": described.protocol_type,
        "protocol": described.protocol_data,
    }
    members = [_member(member) for member in described.members]
    return _Described(described.group_state, details, members, partitions)


def _share(client: Client, group: str) -> _Described:
    described = client.groups.describe_share(group)
    members: list[dict[str, object]] = [
        {
            "member_id": member.member_id,
            "client_id": member.client_id,
            "host": member.client_host,
            "assigned": {
                line.topic_name: sorted(line.partitions)
                for line in member.assignment.topic_partitions
            },
        }
        for member in described.members
    ]
    partitions = [each._asdict() for each in client.groups.share_offsets(group)]
    return _Described(
        described.group_state,
        {"type": "share", "protocol": described.assignor_name},
        members,
        partitions,
        has_lag=False,
        partition_columns=("topic", "partition", "start_offset", "lag"),
    )


def _streams(client: Client, group: str) -> _Described:
    described = client.groups.describe_streams(group)
    members: list[dict[str, object]] = [
        {
            "member_id": member.member_id,
            "process_id": member.process_id,
            "client_id": member.client_id,
            "host": member.client_host,
            "active": _tasks(member.assignment.active_tasks),
            "standby": _tasks(member.assignment.standby_tasks),
            "warmup": _tasks(member.assignment.warmup_tasks),
        }
        for member in described.members
    ]
    return _Described(
        described.group_state,
        {"type": "streams"},
        members,
        _partitions(client, group),
        member_columns=("member_id", "process_id", "client_id", "active", "standby", "warmup"),
    )


@groups.command("lag")
@click.argument("group", required=False)
@json_option
@admin_command
def show_lag(api: AdminClient, group: str | None, as_json: bool) -> None:
    """Show the lag of groups, or of one, in each partition.

    LAG counts to the high watermark, LAG READ COMMITTED to the last stable offset, where
    read_committed consumers end. Uses the admin API: the protocol has no log end offset.
    """
    lags = api.get("/v1/lag", {} if group is None else {"group": group})
    if as_json:
        print_json(lags)
        return
    print_rows(lags, "group", "topic", "partition", "committed", "last_stable_offset",
               "high_watermark", "log_end_offset", "lag", "lag_read_committed")  # fmt: skip


@groups.command("reset")
@click.argument("group")
@click.argument("topic")
@click.option(
    "--to",
    required=True,
    metavar="earliest|latest|OFFSET",
    help="New committed offset of all partitions.",
)
@json_option
@client_command
def reset_group(client: Client, *, group: str, topic: str, to: str, as_json: bool) -> None:
    """Set a group's committed offsets of a topic; the group must have no members."""
    from mockbroker.client import EARLIEST, LATEST
    from mockbroker.core.validation import INT_MAX
    from mockbroker_protocol.types import parse_integer

    target = {"earliest": EARLIEST, "latest": LATEST}.get(to)
    if target is None:
        target = parse_integer(to, 0, INT_MAX)
        if target is None:
            raise click.BadParameter(
                f"{to!r} is neither an offset nor earliest or latest", param_hint="--to"
            )
    offsets = client.groups.reset(group, topic, target)
    partitions = [
        {"topic": name, "partition": index, "committed": offset}
        for (name, index), offset in offsets.items()
    ]
    if as_json:
        print_json({"group": group, "partitions": partitions})
    else:
        print_rows(partitions, "topic", "partition", "committed")


@groups.command("delete")
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@json_option
@client_command
def delete_groups(client: Client, *, names: tuple[str, ...], as_json: bool) -> None:
    """Delete groups that have no members, with their offsets."""
    for name in names:
        client.groups.delete(name)
        if not as_json:
            click.echo(f"deleted group {name}")
    if as_json:
        print_json({"deleted": names})


def _tasks(lines: list[TaskIds]) -> dict[str, list[int]]:
    return {line.subtopology_id: line.partitions for line in lines}


def _partitions(client: Client, group: str) -> list[dict[str, Any]]:
    return [
        {
            "topic": lag.topic,
            "partition": lag.partition,
            "committed": lag.committed,
            "log_end": lag.log_end,
            "lag": lag.lag,
        }
        for lag in client.groups.lag(group)
    ]


def _member(member: DescribedGroupMember) -> dict[str, object]:
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "host": member.client_host,
        "assigned": _assignment(member.member_assignment),
    }


def _assignment(blob: bytes) -> dict[str, list[int]] | None:
    """The partitions in a member's assignment; None if it is not the consumer protocol's."""
    from mockbroker_protocol.consumer_protocol import decode_assignment
    from mockbroker_protocol.exceptions import DecodeError

    if not blob:
        return {}
    try:
        assignment = decode_assignment(blob)
    except DecodeError:
        return None
    return {topic.topic: topic.partitions for topic in assignment.assigned_partitions}
