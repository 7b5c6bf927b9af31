"""`mockbroker consume`: the records of a topic, as lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

import click
import msgspec

from mockbroker.cli.common import client_command, json_option
from mockbroker.cli.output import counting, text_or_base64

if TYPE_CHECKING:
    from mockbroker.client import Client, ConsumedRecord

MS_PER_S = 1000


def _start(
    ctx: click.Context,  # noqa: ARG001
    param: click.Parameter,  # noqa: ARG001
    value: str | None,
) -> str | int | None:
    """earliest, latest, an offset, or -N for the last N records of each partition."""
    if value in (None, "earliest", "latest"):
        return value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither an offset nor earliest or latest") from None


class Columns(msgspec.Struct, frozen=True):
    """The columns before the value."""

    keys: bool
    headers: bool
    timestamps: bool
    offsets: bool
    separator: bytes


@click.command()
@click.argument("topic")
@click.option("--from-beginning", is_flag=True, help="Start at the earliest records.")
@click.option(
    "--offset",
    metavar="earliest|latest|OFFSET|-N",
    callback=_start,
    help="First offset; -N is N before the end.",
)
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    help="Read only this partition. May be repeated.",
)
@click.option(
    "--max-records",
    "--max-messages",
    "-n",
    type=click.IntRange(min=1),
    help="Stop after this number of records.",
)
@click.option("--follow", "-f", is_flag=True, help="Wait for further records at the end.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Wait for further records; stop after this time without one.",
)
@click.option("--group", "-g", metavar="ID", help="Read as a member of this group, and commit.")
@click.option("--read-committed", is_flag=True, help="Skip aborted and open transactions.")
@click.option("--keys", is_flag=True, help="Print keys.")
@click.option("--headers", is_flag=True, help="Print headers.")
@click.option("--timestamps", is_flag=True, help="Print timestamps (UTC).")
@click.option("--offsets", is_flag=True, help="Print PARTITION:OFFSET.")
@click.option(
    "--separator", default="\t", help="Separator between the parts of a line.  [default: a tab]"
)
@json_option
@client_command
def consume(
    client: Client,
    *,
    topic: str,
    from_beginning: bool,
    offset: str | int | None,
    partitions: tuple[int, ...],
    max_records: int | None,
    follow: bool,
    timeout_s: float | None,
    group: str | None,
    read_committed: bool,
    as_json: bool,
    keys: bool,
    headers: bool,
    timestamps: bool,
    offsets: bool,
    separator: str,
) -> None:
    """Print the records of TOPIC, one per line; a null value prints as an empty line.

    Without --from-beginning or --offset it waits for new records. With one of them it stops at the
    end of the topic, unless --follow or --timeout is given. Nothing is committed.

    With --group it begins at the group's committed offsets, and waits for further records. Where
    there is no offset it begins at the end, or with --from-beginning at the earliest record. It
    commits what it has printed every few seconds and at its end.
    """
    if from_beginning and offset is not None:
        raise click.UsageError("--from-beginning and --offset exclude each other.")
    if group is not None and (offset is not None or partitions):
        raise click.UsageError("--group excludes --offset and --partition.")
    if from_beginning:
        offset = "earliest"
    waits = follow or timeout_s is not None or offset in (None, "latest")
    if group is None:
        found = _records(
            client,
            topic,
            partitions=list(partitions) or None,
            offset=offset,
            waits=waits,
            timeout_s=timeout_s,
            read_committed=read_committed,
        )
    else:
        found = _as_member(client, group, topic, offset, timeout_s, read_committed)
    layout = Columns(keys, headers, timestamps, offsets, os.fsencode(separator))
    show = not sys.stdout.isatty()
    with closing(found), counting("records read", shown=show, total=max_records) as counter:
        try:
            for record in islice(found, max_records):
                line = _json_line(record) if as_json else _text_line(record, layout)
                click.echo(line + b"\n", nl=False)
                counter.add(1)
        except KeyboardInterrupt:
            pass  # ends --follow


def _records(
    client: Client,
    topic: str,
    *,
    partitions: list[int] | None,
    offset: str | int | None,
    waits: bool,
    timeout_s: float | None,
    read_committed: bool,
) -> Generator[ConsumedRecord, None, None]:
    from mockbroker.client import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED

    start: int | dict[int, int]
    if isinstance(offset, int):
        start = offset if offset >= 0 else _before_the_end(client, topic, partitions, -offset)
    else:
        start = EARLIEST if offset == "earliest" else LATEST
    return client.consume(
        topic,
        partitions=partitions,
        start=start,
        follow=waits,
        idle_timeout_s=timeout_s,
        isolation_level=READ_COMMITTED if read_committed else READ_UNCOMMITTED,
    )


def _as_member(
    client: Client,
    group: str,
    topic: str,
    offset: str | int | None,
    timeout_s: float | None,
    read_committed: bool,
) -> Generator[ConsumedRecord, None, None]:
    from mockbroker.client import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED

    client.topics.describe(topic)  # it exists
    return client.consume_as_member(
        group,
        topic,
        start=EARLIEST if offset == "earliest" else LATEST,
        idle_timeout_s=timeout_s,
        isolation_level=READ_COMMITTED if read_committed else READ_UNCOMMITTED,
    )


def _before_the_end(
    client: Client, topic: str, partitions: list[int] | None, count: int
) -> dict[int, int]:
    from mockbroker.client import EARLIEST

    starts = client.list_offsets(topic, EARLIEST, partitions)
    ends = client.list_offsets(topic, partitions=partitions)
    return {index: max(end.offset - count, starts[index].offset) for index, end in ends.items()}


def _text_line(found: ConsumedRecord, columns: Columns) -> bytes:
    record = found.record
    parts: list[bytes] = []
    if columns.timestamps:
        parts.append(_time_text(record.timestamp).encode())
    if columns.offsets:
        parts.append(b"%d:%d" % (found.partition, record.offset))
    if columns.headers:
        parts.append(
            b",".join(
                name.encode("utf-8", "surrogateescape") + b"=" + (value or b"")
                for name, value in record.headers
            )
        )
    if columns.keys:
        parts.append(record.key or b"")
    parts.append(record.value or b"")
    return columns.separator.join(parts)


def _json_line(found: ConsumedRecord) -> bytes:
    record = found.record
    return msgspec.json.encode(
        {
            "topic": found.topic,
            "partition": found.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": text_or_base64(record.key),
            "value": text_or_base64(record.value),
            "headers": [
                [
                    name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
                    text_or_base64(value),
                ]
                for name, value in record.headers
            ],
        }
    )


def _time_text(timestamp_ms: int) -> str:
    """ISO 8601 with milliseconds, in UTC; a timestamp that no calendar holds, as the number."""
    try:
        seconds, ms = divmod(timestamp_ms, MS_PER_S)
        day = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return f"{day:%Y-%m-%dT%H:%M:%S}.{ms:03}Z"
