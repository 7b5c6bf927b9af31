"""`serve --journal-dir`: its errors are those of a server that cannot be as it should."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mockbroker.actors.config import ServerError
from mockbroker.pipeline.spool.keeping import JournalKeeper
from mockbroker.pipeline.store import StoreError

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


def keep_journal(cluster: Cluster, directory: Path) -> JournalKeeper:
    """Have what happens written into tables. Raises ServerError."""
    try:
        return JournalKeeper(cluster, directory)
    except StoreError as error:
        raise ServerError(f"--journal-dir: {error}") from None


def close_journal(keeper: JournalKeeper) -> None:
    """Wait for the tables. Raises ServerError when they did not come about."""
    try:
        keeper.close()
    except StoreError as error:
        raise ServerError(f"--journal-dir: {error}") from None
