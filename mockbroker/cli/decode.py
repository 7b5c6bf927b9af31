"""`mockbroker decode`: explain bytes of the protocol."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click

from mockbroker.cli.common import json_option
from mockbroker.cli.output import print_json

STDIN = "-"
_HEX = re.compile(rb"(0x|[0-9a-fA-F\s:,])*")
_BETWEEN_DIGITS = re.compile(rb"0x|[\s:,]")


@click.command()
@click.argument("source", metavar="HEX|FILE|-")
@click.option(
    "--as",
    "hint",
    metavar="WHAT",
    help="request, records, 'response NAME VERSION', or 'body NAME VERSION' for a message "
    "without its header, as in 'body FetchResponse 12'.",
)
@json_option
def decode(source: str, hint: str | None, as_json: bool) -> None:
    """Explain bytes field by field: a request, a response, record batches.

    The bytes are hexadecimal digits, or a file that holds such digits or the bytes themselves, or
    - for standard input. Without --as, the command guesses the message.
    """
    from mockbroker_protocol.exceptions import UnknownVersionError
    from mockbroker_protocol.explain import explanation

    data = _bytes_of(source)
    if not data:
        raise click.UsageError("no bytes to decode")
    try:
        found = explanation(data, hint)
    except (UnknownVersionError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--as") from None
    if as_json:
        print_json(
            {
                "title": found.title,
                "whole": found.whole,
                "fields": [
                    {
                        "start": span.start,
                        "end": span.end,
                        "path": span.path,
                        "text": span.text,
                        "wrong": span.wrong,
                    }
                    for span in found.spans
                ],
            }
        )
    else:
        click.echo(found.render(), nl=False)


def _bytes_of(source: str) -> bytes:
    if source == STDIN:
        return _digits_or_raw(sys.stdin.buffer.read())
    path = Path(source)
    try:
        if path.is_file():
            return _digits_or_raw(path.read_bytes())
    except OSError as error:
        # Digits can be too long for a file name; any other error is the file's.
        if _HEX.fullmatch(os.fsencode(source)) is None:
            raise click.UsageError(f"cannot read {source}: {error.strerror}") from None
    digits = os.fsencode(source)
    if _HEX.fullmatch(digits) is None:
        raise click.UsageError(f"{source!r} is neither hexadecimal nor a file")
    return _from_digits(digits)


def _digits_or_raw(content: bytes) -> bytes:
    """A file's content, or the bytes of its hexadecimal digits."""
    return _from_digits(content) if _HEX.fullmatch(content) else content


def _from_digits(digits: bytes) -> bytes:
    plain = _BETWEEN_DIGITS.sub(b"", digits).decode()
    if len(plain) % 2:
        raise click.UsageError(f"odd number of hexadecimal digits: {len(plain)}")
    return bytes.fromhex(plain)
