"""`serve --journal-dir`: errors of the export as ServerError."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mockbroker.pipeline.spool.exporter import JournalExporter
from mockbroker.pipeline.store import StoreError
from mockbroker.server.config import ServerError

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


def export_journal(cluster: Cluster, directory: Path) -> JournalExporter:
    """Write the journal into tables. Raises ServerError."""
    try:
        return JournalExporter(cluster, directory)
    except StoreError as error:
        raise ServerError(f"--journal-dir: {error}") from None


def finish_export(exporter: JournalExporter) -> None:
    """Wait for the tables. Raises ServerError if they are not complete."""
    try:
        exporter.close()
    except StoreError as error:
        raise ServerError(f"--journal-dir: {error}") from None
