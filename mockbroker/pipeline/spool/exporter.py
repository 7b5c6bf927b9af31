"""Exporting a running cluster's journal as tables: a spool, and a process that converts it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mockbroker.extras import missing
from mockbroker.pipeline.spool.writer import Overflow, SpoolWriter
from mockbroker.pipeline.store import StoreError

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

# The time limit of the converter after the end of the cluster.
CONVERT_TIMEOUT_S = 600.0


class JournalExporter:
    """Writes the journal as tables into a directory, as one run, until the cluster ends.

    Make and `stop` it in the cluster's thread; `close` waits for the tables, in any thread. Raises
    StoreError if the directory cannot be written, or without pyarrow.
    """

    def __init__(self, cluster: Cluster, directory: Path, overflow: Overflow = "gap") -> None:
        if importlib.util.find_spec("pyarrow") is None:
            raise StoreError(missing("tables need", "pyarrow"))
        self.directory = directory
        self.run = run_name(cluster.cluster_id)
        self._writer = SpoolWriter(cluster, directory, self.run, overflow=overflow)
        # In a session of its own, so that an interrupt of the broker does not reach it. The end of
        # a killed broker closes standard input, and the converter converts the rest of the spool.
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [
                sys.executable,
                "-m",
                "mockbroker.pipeline.convert",
                str(directory),
                self.run,
                "--follow",
                "--drop-spool",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def stop(self) -> None:
        """End the journal with the cluster: it is complete."""
        self._writer.stop()

    def close(self, timeout_s: float = CONVERT_TIMEOUT_S) -> None:
        """Wait until the tables are complete. Raises StoreError if they cannot be."""
        self._writer.close()
        try:
            _, errors = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise StoreError(
                f"converting run {self.run} took more than {timeout_s:.0f} s; its spool is kept: "
                f"`mockbroker journal export {self.directory} --from spool` converts it"
            ) from None
        if self._writer.error is not None:
            raise StoreError(
                f"run {self.run} could not be written into {self.directory}: "
                f"{self._writer.error.strerror or 'an error'}"
            )
        if self._process.returncode:
            reason = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise StoreError(f"run {self.run} could not be converted: {reason or 'no reason'}")


def run_name(cluster_id: str) -> str:
    """A name for a run that begins now."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{cluster_id[:6]}"
