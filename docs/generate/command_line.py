"""The command line's own help, page by page."""

from __future__ import annotations

from collections.abc import Iterator

import click
from markdown import page as join

from mockbroker.cli import main

WIDTH = 88

INTRO = """
# Command line

What `--help` prints, command by command.
"""


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """The command and all below it, with their full names."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for child_name in command.list_commands(context):
            child = command.get_command(context, child_name)
            if child is not None and not child.hidden:
                yield from commands(child, f"{name} {child_name}")


def help_text(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


def page() -> str:
    sections = [
        f"## {name}\n\n```text\n{help_text(name, command)}\n```"
        for name, command in commands(main, "mockbroker")
    ]
    return join(INTRO, *sections)
