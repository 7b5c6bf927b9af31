"""Converts a spool in a process of its own.

    python -m mockbroker.pipeline.convert DIRECTORY [RUN] [--follow] [--drop-spool]

With --follow the spool is converted while it is written, until its run ends or standard input is
closed, which means the end of the broker.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
from pathlib import Path

from mockbroker.pipeline.convert.run import convert_spool, follow_spool
from mockbroker.pipeline.store import RunManifest, StoreError


def main() -> int:
    """Exit code 0 if the run is complete, 1 if it is not, 2 if it cannot be converted."""
    parser = argparse.ArgumentParser(prog="mockbroker.pipeline.convert", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("run", nargs="?")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--drop-spool", action="store_true")
    options = parser.parse_args()
    try:
        done = _convert(options)
    except StoreError as error:
        sys.stderr.write(f"mockbroker: {error}\n")
        return 2
    if not done.complete:
        sys.stderr.write(f"mockbroker: run {done.run} is not complete: {done.reason}\n")
        return 1
    return 0


def _convert(options: argparse.Namespace) -> RunManifest:
    if not options.follow:
        keep = not options.drop_spool
        return convert_spool(options.directory, options.run, keep_spool=keep)
    # An interrupt is for the broker, which ends the run.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    run = options.run or options.directory.name
    return follow_spool(options.directory, run, _broker_lives, keep_spool=not options.drop_spool)


def _broker_lives() -> bool:
    """Whether the other end of standard input is open."""
    readable, _, _ = select.select([sys.stdin], [], [], 0)
    return not readable or bool(os.read(sys.stdin.fileno(), 1))


if __name__ == "__main__":
    sys.exit(main())
