"""Extras: what they bring, and how one that is missing is installed."""

from __future__ import annotations

import json
import re

import pytest

from mockbroker import extras
from mockbroker.extras import extra_of, install_command, missing
from tests.house.lint import ROOT, our_files


class Installed:
    """A distribution that was installed from somewhere."""

    def __init__(self, url: str | None) -> None:
        self._text = None if url is None else json.dumps({"url": url})

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._text

    @property
    def requires(self) -> list[str]:
        return ["click>=8", "duckdb>=1.2 ; extra == 'pipeline'", 'numpy; extra == "pipeline"']


@pytest.mark.parametrize(
    ("url", "command"),
    [
        (None, "pip install 'duckdb>=1.2' 'numpy'"),
        (
            "file:///srv/our%20tests/mb",
            "pip install '/srv/our tests/mb[pipeline]'",
        ),
        ("https://example.com/mockbroker.whl", "pip install 'duckdb>=1.2' 'numpy'"),
    ],
)
def test_an_extra_comes_from_the_directory_of_the_package_or_by_its_parts(
    url: str | None, command: str
) -> None:
    """An index is never asked for the package itself."""
    assert install_command(Installed(url), "pipeline") == command  # type: ignore[arg-type]


def test_without_an_extra_the_command_installs_what_is_always_needed() -> None:
    assert install_command(Installed(None)) == "pip install 'click>=8'"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("module", "extra"),
    [("cryptography", "tls"), ("confluent_kafka", "clients"), ("duckdb", "pipeline"), ("re", None)],
)
def test_a_module_is_of_an_extra_or_of_none(module: str, extra: str | None) -> None:
    assert extra_of(module) == extra


def test_sources_alone_have_no_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a worker of Spark: the message names the package."""
    monkeypatch.setattr(extras, "PACKAGE", "no-such-distribution")
    assert missing("tables need", "pyarrow") == "tables need pyarrow: pip install pyarrow"


def test_no_message_or_page_installs_the_package_from_an_index() -> None:
    asks = re.compile(r"pip install '?mockbroker\b")
    found = [
        path.relative_to(ROOT).as_posix()
        for path in our_files()
        if path.suffix in {".py", ".md", ".toml"} and path.name != "test_extras.py"
        if asks.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []
