"""`mockbroker produce`: lines of standard input as records."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from mockbroker.cli.common import client_command, json_option, name_value_pairs
from mockbroker.cli.output import counting, print_json

if TYPE_CHECKING:
    from mockbroker.client import Client, Produced
    from mockbroker_protocol.records import Record

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = {"0": 0, "1": 1, "all": -1}
CHUNK_BYTES = 1024 * 1024
LINE_BYTES_MAX = 64 * 1024 * 1024


@click.command()
@click.argument("topic")
@click.option("--key", help="Key of all records.")
@click.option("--key-separator", metavar="TEXT", help="Separator between key and value in a line.")
@click.option("--null-value", metavar="TEXT", help="Send null for this value.")
@click.option(
    "--header",
    "headers",
    metavar="NAME=VALUE",
    multiple=True,
    callback=name_value_pairs,
    help="Add a header. May be repeated.",
)
@click.option(
    "--partition",
    type=click.IntRange(min=0),
    help="Partition of all records.  [default: by key, as Java's producer]",
)
@click.option(
    "--compression",
    type=click.Choice(CODECS),
    default="none",
    show_default=True,
    help="Compression codec.",
)
@click.option(
    "--acks",
    type=click.Choice(tuple(ACKS)),
    default="all",
    show_default=True,
    help="Required acknowledgements.",
)
@json_option
@client_command
def produce(
    client: Client,
    *,
    topic: str,
    key: str | None,
    key_separator: str | None,
    null_value: str | None,
    headers: list[tuple[str, str]],
    partition: int | None,
    compression: str,
    acks: str,
    as_json: bool,
) -> None:
    """Send each line of standard input as a record to TOPIC.

    Each line is sent at once, so the command works interactively and in a pipe. The lines before
    one that is wrong are sent.
    """
    if key is not None and key_separator is not None:
        raise click.UsageError("--key and --key-separator exclude each other.")
    if key_separator == "":
        raise click.BadParameter("it must not be empty", param_hint="--key-separator")
    parser = LineParser(key, key_separator, null_value, headers)
    sent = 0
    results: list[Produced] = []
    with counting("records sent", shown=not sys.stdin.isatty()) as counter:
        for records in parser.batches():
            batches = client.produce(
                topic,
                records,
                partition=partition,
                acks=ACKS[acks],
                codec=CODECS.index(compression),
            )
            sent += len(records)
            counter.add(len(records))
            if as_json:
                results += batches
    if as_json:
        print_json({"topic": topic, "records": sent, "batches": results})
    else:
        click.echo(f"{sent} record{'s' if sent != 1 else ''} sent to {topic}", err=True)


class LineParser:
    """Makes records of lines. Keys, values and headers are the bytes of the command line."""

    def __init__(
        self,
        key: str | None,
        separator: str | None,
        null_value: str | None,
        headers: list[tuple[str, str]],
    ) -> None:
        self._key = None if key is None else os.fsencode(key)
        self._separator = None if separator is None else os.fsencode(separator)
        self._null_value = None if null_value is None else os.fsencode(null_value)
        self._headers = tuple((name, os.fsencode(value)) for name, value in headers)

    def batches(self) -> Iterator[list[Record]]:
        """The lines of standard input, in as many batches as reads.

        Raises UsageError, after the lines before it, at one that is wrong.
        """
        numbers = itertools.count(1)
        for lines in _chunks_of_lines():
            records: list[Record] = []
            for line, number in zip(lines, numbers, strict=False):
                try:
                    records.append(self.record(line))
                except ValueError as error:
                    if records:
                        yield records
                    raise click.UsageError(f"line {number}: {error}") from None
            yield records

    def record(self, line: bytes) -> Record:
        """One line, without its end, as a record. Raises ValueError if its key is missing."""
        from mockbroker_protocol.records import Record

        key = self._key
        value: bytes | None = line
        if self._separator is not None:
            key, found, value = line.partition(self._separator)
            if not found:
                raise ValueError(
                    f"no key separator {_shown(self._separator)} in {_shown(line[:100])}"
                )
        if value == self._null_value:
            value = None
        return Record(key=key, value=value, headers=self._headers)


def _shown(raw: bytes) -> str:
    return repr(raw.decode(errors="replace"))


def _chunks_of_lines() -> Iterator[list[bytes]]:
    """Lines as they become available; a last one without an end counts too."""
    rest = b""
    while chunk := _read_stdin():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            raise click.UsageError(f"a line of more than {LINE_BYTES_MAX} bytes")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]


def _read_stdin() -> bytes:
    """The bytes that can be read now, at least one; empty at the end."""
    try:
        descriptor = sys.stdin.fileno()
    except OSError:  # without a descriptor, as in tests
        return sys.stdin.buffer.read(CHUNK_BYTES)
    return os.read(descriptor, CHUNK_BYTES)
