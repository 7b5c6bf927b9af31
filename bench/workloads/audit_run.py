"""Audit one directory of runs with one engine, and print how long that took, and what was found.

A process of its own for each audit, so that the memory and the warm code of one are not another's.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

MASTER, MEMORY = "local[2]", "4g"

Found = tuple[float, Counter[str]]


def by_spark(directory: Path) -> Found:
    """Seconds from the tables to the findings, and how many of each anomaly."""
    from mockbroker.pipeline.spark.audit import audit
    from mockbroker.pipeline.spark.inputs import read
    from mockbroker.pipeline.spark.session import session

    spark = session(master=MASTER, memory=MEMORY, settings={"spark.log.level": "OFF"})
    begun = time.perf_counter()
    found = Counter(row["anomaly"] for row in audit(read(spark, directory)).collect())
    seconds = time.perf_counter() - begun
    spark.stop()
    return seconds, found


def by_duckdb(directory: Path) -> Found:
    """The same by DuckDB."""
    from mockbroker.pipeline.duck import audit

    begun = time.perf_counter()
    found = Counter(finding.anomaly for finding in audit(directory))
    return time.perf_counter() - begun, found


ENGINES: Mapping[str, Callable[[Path], Found]] = {"spark": by_spark, "duckdb": by_duckdb}


if __name__ == "__main__":
    seconds, found = ENGINES[sys.argv[1]](Path(sys.argv[2]))
    print(json.dumps({"seconds": seconds, "found": found}))
