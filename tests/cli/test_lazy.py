from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mockbroker.cli import main
from tests.cli.conftest import Run


def imported_by(*arguments: str) -> set[str]:
    """The modules in a fresh process after it ran the command line."""
    code = (
        "import sys, mockbroker.cli\n"
        f"try: mockbroker.cli.main({list(arguments)!r})\n"
        "except SystemExit: pass\n"
        "print('\\n'.join(sys.modules))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return set(process.stdout.decode().splitlines())


def test_help_lists_every_command_without_importing_any():
    modules = imported_by("--help")
    commands = {f"mockbroker.cli.{name}" for name in main.list_commands(None)}
    assert len(commands) >= 13
    assert not commands & modules
    assert not {"rich", "trio", "msgspec", "mockbroker.client"} & modules


def test_serve_pays_for_no_other_command():
    modules = imported_by("serve", "--help")
    assert "mockbroker.cli.serve" in modules
    assert not {"rich", "mockbroker.client", "mockbroker.cli.common"} & modules


@pytest.mark.parametrize("command", main.list_commands(None))
def test_every_command_exists_and_explains_itself(run: Run, command: str):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: mockbroker {command}")


def test_the_version_is_printed(run: Run):
    result = run("--version")
    assert result.stdout == "mockbroker, version 0.1.0\n"


def test_without_a_command_the_help_is_shown(run: Run):
    result = run()
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nosuch"], "mockbroker: No such command 'nosuch'."),
        (["act"], "mockbroker: No such command 'act'; did you mean 'action'?"),
        (["audit"], "mockbroker: No such command 'audit'; did you mean 'pipeline audit'?"),
        (
            ["describe"],
            "mockbroker: No such command 'describe'; did you mean 'topics describe' or 'groups "
            "describe' or 'configs describe'?",
        ),
        (["topics", "nosuch"], "mockbroker topics: No such command 'nosuch'."),
        (["topics", "list", "--nosuch"], "mockbroker topics list: No such option '--nosuch'."),
        (
            ["topics", "list", "--admin", "http://localhost:9191"],
            "mockbroker topics list: No such option '--admin'. This command finds the cluster by "
            "--bootstrap-server.",
        ),
        (
            ["fault", "list", "-b", "localhost:9092"],
            "mockbroker fault list: No such option '-b'. This command finds the cluster by "
            "--admin.",
        ),
        (
            ["serve", "--bootstrap-server", "localhost:9092"],
            "mockbroker serve: No such option '--bootstrap-server'.",
        ),
        (
            ["journal", "expor", "tables"],
            "mockbroker journal: 'expor' is neither a command nor NAME=VALUE; did you mean "
            "'export'?",
        ),
        (
            ["journal", "wait"],
            "mockbroker journal: 'wait' is neither a command nor NAME=VALUE; the commands are "
            "show, export, save",
        ),
        (["consume"], "mockbroker consume: Missing argument 'TOPIC'."),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(run: Run, arguments: list[str], line: str):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == line + "\n"


def test_as_a_library_it_raises_instead_of_ending_the_process():
    import click

    with pytest.raises(click.UsageError, match="No such command"):
        main(["nosuch"], standalone_mode=False)


def test_a_reader_that_went_away_is_no_traceback():
    code = "import sys, mockbroker.cli; mockbroker.cli.main(['codec', 'list', '--json'])"
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", code]
    with os.fdopen(writer) as output:
        done = subprocess.run(
            command, stdout=output, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.stderr == b""
    assert done.returncode == 1


def test_the_collector_does_not_look_for_garbage_while_a_command_is_imported():
    """What is imported stays, so it is set aside; afterwards the collector runs as before."""
    code = (
        "import gc, mockbroker.cli\n"
        "try: mockbroker.cli.main(['serve', '--help'])\n"
        "except SystemExit: pass\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert process.stdout.decode().splitlines()[-1] == "True True"


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    """A module of no extra is a fault of ours, and keeps its traceback."""

    def fails(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'numpy.linalg'", name="numpy.linalg")

    monkeypatch.setattr(main, "invoke", fails)
    result = run("topics", "list")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("mockbroker: this needs numpy: pip install '")
    assert result.stderr.endswith("[pipeline]'\n")
    monkeypatch.setattr(main, "invoke", lambda *_: __import__("no_such_module_anywhere"))
    assert isinstance(run("topics", "list").exception, ModuleNotFoundError)
