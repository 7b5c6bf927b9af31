"""`mockbroker groups`: groups, their members and their lag."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mockbroker.cli.admin_client import AdminClient, admin_command
from mockbroker.cli.common import client_command, json_option
from mockbroker.cli.output import print_json, print_table

if TYPE_CHECKING:
    from mockbroker.client import Client
    from mockbroker.client.groups import PartitionLag
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
        columns = ("GROUP", "STATE", "PROTOCOL TYPE", "TYPE")
        print_table(columns, [list(row.values()) for row in found])


@groups.command("describe")
@click.argument("group")
@json_option
@client_command
def describe_group(client: Client, *, group: str, as_json: bool) -> None:
    """Show a group's members, committed offsets and lag.

    The lag counts from the committed offset to the log end (the high watermark). A share group has
    the start offsets of its share partitions, a streams group its tasks.
    """
    group_type = client.groups.type_of(group)
    if group_type == "share":
        _describe_share(client, group, as_json=as_json)
        return
    if group_type == "streams":
        _describe_streams(client, group, as_json=as_json)
        return
    described = client.groups.describe(group)
    lags = client.groups.lag(group)
    if described.group_state == DEAD and not lags:
        raise click.ClickException(f"unknown group {group}")
    if as_json:
        print_json(
            {
                "group": group,
                "state": described.group_state,
                "protocol_type": described.protocol_type,
                "protocol": described.protocol_data,
                "members": [_member(member) for member in described.members],
                "partitions": [_partition(lag) for lag in lags],
                "lag": sum(lag.lag for lag in lags),
            }
        )
        return
    columns = ("TOPIC", "PARTITION", "COMMITTED", "LOG END", "LAG")
    rows = [list(_partition(lag).values()) for lag in lags]
    print_table(columns, rows, title=f"{group}  {described.group_state}")
    if described.members:
        click.echo()
        print_table(
            ("MEMBER", "CLIENT", "HOST", "ASSIGNED"),
            [
                (m.member_id, m.client_id, m.client_host, _assigned(m.member_assignment))
                for m in described.members
            ],
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
    columns = ("group", "topic", "partition", "committed", "last_stable_offset", "high_watermark",
               "log_end_offset", "lag", "lag_read_committed")  # fmt: skip
    print_table(
        [name.upper().replace("_", " ") for name in columns],
        [[lag[name] for name in columns] for lag in lags],
    )


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
    rows = [(name, index, offset) for (name, index), offset in offsets.items()]
    if as_json:
        keys = ("topic", "partition", "committed")
        partitions = [dict(zip(keys, row, strict=True)) for row in rows]
        print_json({"group": group, "partitions": partitions})
    else:
        print_table(("TOPIC", "PARTITION", "COMMITTED"), rows)


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


def _describe_share(client: Client, group: str, *, as_json: bool) -> None:
    described = client.groups.describe_share(group)
    offsets = client.groups.share_offsets(group)
    assigned = {
        member.member_id: {
            line.topic_name: sorted(line.partitions) for line in member.assignment.topic_partitions
        }
        for member in described.members
    }
    if as_json:
        print_json(
            {
                "group": group,
                "state": described.group_state,
                "type": "share",
                "protocol": described.assignor_name,
                "members": [
                    {
                        "member_id": member.member_id,
                        "client_id": member.client_id,
                        "host": member.client_host,
                        "assigned": assigned[member.member_id],
                    }
                    for member in described.members
                ],
                "partitions": [each._asdict() for each in offsets],
            }
        )
        return
    columns = ("TOPIC", "PARTITION", "START OFFSET", "LAG")
    print_table(columns, offsets, title=f"{group}  {described.group_state}")
    if described.members:
        click.echo()
        print_table(
            ("MEMBER", "CLIENT", "HOST", "ASSIGNED"),
            [
                (m.member_id, m.client_id, m.client_host, _listed(assigned[m.member_id]))
                for m in described.members
            ],
        )


def _describe_streams(client: Client, group: str, *, as_json: bool) -> None:
    described = client.groups.describe_streams(group)
    lags = client.groups.lag(group)
    members = [
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
    if as_json:
        print_json(
            {
                "group": group,
                "state": described.group_state,
                "type": "streams",
                "members": members,
                "partitions": [_partition(lag) for lag in lags],
                "lag": sum(lag.lag for lag in lags),
            }
        )
        return
    columns = ("TOPIC", "PARTITION", "COMMITTED", "LOG END", "LAG")
    rows = [list(_partition(lag).values()) for lag in lags]
    print_table(columns, rows, title=f"{group}  {described.group_state}")
    if members:
        click.echo()
        print_table(
            ("MEMBER", "PROCESS", "CLIENT", "ACTIVE", "STANDBY", "WARMUP"),
            [
                (
                    m.member_id,
                    m.process_id,
                    m.client_id,
                    *(
                        _listed(_tasks(lines))
                        for lines in (
                            m.assignment.active_tasks,
                            m.assignment.standby_tasks,
                            m.assignment.warmup_tasks,
                        )
                    ),
                )
                for m in described.members
            ],
        )


def _tasks(lines: list[TaskIds]) -> dict[str, list[int]]:
    return {line.subtopology_id: line.partitions for line in lines}


def _listed(partitions: dict[str, list[int]]) -> str:
    """Partitions of topics, or of subtopologies, on one line."""
    return " ".join(f"{name}:{','.join(map(str, each))}" for name, each in partitions.items())


def _partition(lag: PartitionLag) -> dict[str, str | int]:
    return {
        "topic": lag.topic,
        "partition": lag.partition,
        "committed": lag.committed,
        "log_end": lag.log_end,
        "lag": lag.lag,
    }


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


def _assigned(blob: bytes) -> str:
    assigned = _assignment(blob)
    if assigned is None:
        return "?"
    return _listed(assigned)
