from __future__ import annotations

import sys

import pytest

from mockbroker.cli.output import counting, print_table, text_or_base64


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, None),
        (b"", ""),
        ("größe".encode(), "größe"),
        (b"\xff\x00", {"base64": "/wA="}),
    ],
)
def test_bytes_become_text_where_they_are_text(data, shown):
    assert text_or_base64(data) == shown


def test_piped_tables_cut_nothing_and_align_numbers(capsys: pytest.CaptureFixture[str]):
    print_table(("NAME", "COUNT"), [("x" * 300, 5), ("y", 1000), ("z", None)])
    head, first, second, third = capsys.readouterr().out.splitlines()
    assert head.split() == ["NAME", "COUNT"]
    assert first == "x" * 300 + "      5"
    assert second.endswith("   1000")
    assert third.split() == ["z", "-"]


def test_markup_in_a_cell_is_only_text(capsys: pytest.CaptureFixture[str]):
    print_table(("NAME",), [("[bold]x[/bold]",)])
    assert "[bold]x[/bold]" in capsys.readouterr().out


def test_nobody_watching_nothing_is_counted_on_stderr(capsys: pytest.CaptureFixture[str]):
    with counting("records", shown=True) as counter:
        counter.add(5)
    assert capsys.readouterr().err == ""


def test_a_terminal_sees_the_count(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("rich", reason="rich is a dependency of the command line")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with counting("records", shown=True, total=10) as counter:
        counter.add(5)
        assert counter._progress is not None
        assert counter._progress.tasks[0].completed == 5
