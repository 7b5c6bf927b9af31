"""Jobs as programs: arguments, a session, and rows on standard output.

Every row is a line of JSON with the name of its job as `job`. An error is one line on standard
error, and exit code 2.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mockbroker.pipeline.spark.errors import JobError
from mockbroker.pipeline.spark.inputs import Inputs, read
from mockbroker.pipeline.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Job = Callable[[Inputs], "DataFrame"]

CANNOT_RUN = 2


def main(*jobs: Job, argv: Sequence[str] | None = None) -> None:
    """Run jobs over a directory of runs, with the arguments of the command line, and exit."""
    sys.exit(run(*jobs, argv=argv))


def run(*jobs: Job, argv: Sequence[str] | None = None) -> int:
    """As `main`, but returns the exit code."""
    parser = argparse.ArgumentParser(description=", ".join(job.__name__ for job in jobs))
    parser.add_argument("directory", help="with the tables of runs; a path or an URL of Spark's")
    parser.add_argument("--run", action="append", help="only this run; may be said again")
    parser.add_argument("--incomplete", action="store_true", help="also runs that did not end")
    parser.add_argument("--master", help="where no session is there: local[2] and the like")
    parser.add_argument("--memory", help="of the driver, where no session is there: 4g")
    parser.add_argument(
        "--conf", action="append", default=[], type=_setting, help="a setting of Spark's: a=b"
    )
    asked = parser.parse_args(argv)
    try:
        spark = session(master=asked.master, memory=asked.memory, settings=dict(asked.conf))
        inputs = read(spark, asked.directory, asked.run, incomplete=asked.incomplete)
        for job in jobs:
            for row in job(inputs).toLocalIterator():
                line = {"job": job.__name__, **row.asDict(recursive=True)}
                sys.stdout.write(json.dumps(line, default=str) + "\n")
    except JobError as error:
        sys.stderr.write(f"{error}\n")
        return CANNOT_RUN
    sys.stdout.flush()
    return 0


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value
