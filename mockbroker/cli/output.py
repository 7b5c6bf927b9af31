"""Output: tables for people, JSON for scripts, progress on stderr."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Wide enough that a file or another program gets uncut lines.
PIPED_WIDTH = 1000
Cell = str | int | None


def print_json(value: object) -> None:
    """One JSON document, encoded by msgspec."""
    import msgspec

    document = msgspec.json.encode(value)
    if sys.stdout.isatty():
        document = msgspec.json.format(document, indent=2)
    click.echo(document)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, title: str = "") -> None:
    """A table; columns whose cells are all numbers are right-aligned."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=PIPED_WIDTH, highlight=False)
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="bold cyan",
    )
    for index, column in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[index], int | None) for row in rows)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("-" if cell is None else str(cell)) for cell in row))
    console.print(table)


def print_rows(rows: Sequence[Mapping[str, object]], *columns: str, title: str = "") -> None:
    """A table of rows by column; `member_id` has the heading MEMBER, `log_end` LOG END."""
    headings = [name.removesuffix("_id").upper().replace("_", " ") for name in columns]
    print_table(headings, [[_cell(row[name]) for name in columns] for row in rows], title=title)


def _cell(value: object) -> Cell:
    """Numbers in a list are joined; a dict has such a list for each name."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}:{_cell(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return value if isinstance(value, int | None) else str(value)


def text_or_base64(data: bytes | None) -> object:
    """Bytes for JSON: a string if they are UTF-8, else {"base64": …}; null stays null."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


class ProgressCounter:
    """A counter on stderr; silent unless that is a terminal."""

    def __init__(self, progress: Progress | None, task: TaskID | None) -> None:
        self._progress = progress
        self._task = task

    def add(self, count: int) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, count)


@contextmanager
def counting(what: str, *, shown: bool, total: int | None = None) -> Iterator[ProgressCounter]:
    """Count records on stderr, if `shown` and stderr is a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield ProgressCounter(None, None)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    with Progress(
        SpinnerColumn(),
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        yield ProgressCounter(progress, progress.add_task(what, total=total))
