"""The command line's own help, page by page."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.testing import CliRunner
from markdown import page as join

from mockbroker.cli import main

PROGRAM = "mockbroker"
WIDTH = 88

INTRO = """
# Command line

What `--help` prints, command by command. With `--json` a command prints one JSON document, or
one on each line if the output may have no end (`consume`, `journal`).

## Shell completion

The shell completes commands and options after one line in its configuration:

| shell | file | line |
|---|---|---|
| bash | `~/.bashrc` | `eval "$(_MOCKBROKER_COMPLETE=bash_source mockbroker)"` |
| zsh | `~/.zshrc` | `eval "$(_MOCKBROKER_COMPLETE=zsh_source mockbroker)"` |
| fish | `~/.config/fish/config.fish` | `_MOCKBROKER_COMPLETE=fish_source mockbroker \\| source` |
"""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names that lead to the command and to all below it."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from commands(child, (*path, name))


def help_text(path: tuple[str, ...]) -> str:
    result = CliRunner().invoke(
        main, [*path, "--help"], prog_name=PROGRAM, terminal_width=WIDTH, max_content_width=WIDTH
    )
    if result.exit_code != 0:
        raise SystemExit(f"{PROGRAM} {' '.join(path)} --help failed: {result.output}")
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


def page() -> str:
    sections = [
        f"## {' '.join((PROGRAM, *path))}\n\n```text\n{help_text(path)}\n```"
        for path in commands(main)
    ]
    return join(INTRO, *sections)
