"""A click group that imports a command when it is called, and prints errors as one line."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from mockbroker.core.garbage import no_collections

BAD_USAGE = 2
INTERRUPTED = 130
# The options by which commands find a cluster: through its admin API, or through its brokers.
ADMIN_OPTIONS = ("--admin", "--admin-token-file")
CLIENT_OPTIONS = ("--bootstrap-server", "--bootstrap-servers", "-b")


class LazyGroup(click.Group):
    """A group of commands given as name -> ("module:attribute", one sentence of help)."""

    def __init__(
        self,
        name: str,
        *,
        commands: Mapping[str, tuple[str, str]],
        help: str,  # noqa: A002 - click's own name for it
        version_of: str,
    ) -> None:
        super().__init__(
            name,
            help=help,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )
        self._lazy = dict(commands)
        click.version_option(package_name=version_of, prog_name=name)(self)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._lazy:
            return None
        module, _, attribute = self._lazy[cmd_name][0].partition(":")
        with no_collections():
            command: click.Command = getattr(import_module(module), attribute)
            gc.freeze()  # what is imported stays to the end
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with. Raises UsageError, with the commands that may be
        meant: those of groups that have this name, or the one with the nearest name.
        """
        name = args[0]
        if name not in self._lazy and name[:1].isalpha() and not ctx.resilient_parsing:
            from mockbroker.core.validation import nearest

            meant = self._of_groups(ctx, name)
            hint = f"; did you mean {meant}?" if meant else nearest(name, self._lazy, listed=False)
            raise click.UsageError(f"No such command {name!r}{hint or '.'}", ctx)
        return super().resolve_command(ctx, args)

    def _of_groups(self, ctx: click.Context, name: str) -> str:
        """`'topics list' or 'groups list'`: the commands of groups that have the name."""
        groups = [
            group
            for group in self._lazy
            if isinstance(found := self.get_command(ctx, group), click.Group)
            and name in found.commands
        ]
        return " or ".join(repr(f"{group} {name}") for group in groups)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in `--help`, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._lazy.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line. In standalone mode, an error ends the process with one line."""
        run = functools.partial(super().main, args, prog_name, complete_var)
        if not standalone_mode:
            return run(standalone_mode=False, **extra)
        try:
            status: object = run(standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(BAD_USAGE)
        except click.UsageError as error:
            _fail(_where(error.ctx), f"{error.format_message()}{_other_api(error)}", BAD_USAGE)
        except click.ClickException as error:
            _fail(self.name, error.format_message(), error.exit_code)
        except ModuleNotFoundError as error:
            remedy = _remedy(error)
            if remedy is None:
                raise
            _fail(self.name, remedy, 1)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            discard_output()
            sys.exit(1)
        sys.exit(status if isinstance(status, int) else 0)


def _other_api(error: click.UsageError) -> str:
    """The option that finds the cluster, after one that commands of the other API have."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    has = {name for option in error.ctx.command.params for name in option.opts}
    for given, taken in ((ADMIN_OPTIONS, CLIENT_OPTIONS), (CLIENT_OPTIONS, ADMIN_OPTIONS)):
        if error.option_name in given and taken[0] in has:
            return f" This command finds the cluster by {taken[0]}."
    return ""


def _remedy(error: ModuleNotFoundError) -> str | None:
    """The package to install for a module of an extra; None for other modules."""
    from mockbroker.extras import extra_of, missing

    module = (error.name or "").partition(".")[0]
    return None if extra_of(module) is None else missing("this needs", module)


def discard_output() -> None:
    """Discard further standard output after its reader, such as `head`, has closed it.

    Python flushes at exit, and needs an open descriptor for that.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _where(ctx: click.Context | None) -> str:
    return ctx.command_path if ctx is not None else "mockbroker"


def _fail(where: str | None, message: str, status: int) -> NoReturn:
    line = " ".join(message.split())
    click.echo(f"{where}: {line}", err=True)
    sys.exit(status)
