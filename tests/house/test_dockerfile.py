"""The Dockerfile, as far as it can be checked without an engine that builds it."""

from __future__ import annotations

import json
import re
import shlex
from fnmatch import fnmatchcase

import pytest

from mockbroker.cli.admin_options import DEFAULT_ADMIN_PORT
from mockbroker.cli.serve import DEFAULT_PORT, serve
from tests.house.lint import ROOT

Instruction = tuple[str, str]


def instructions() -> list[Instruction]:
    """(instruction, arguments) of the Dockerfile, continued lines joined, comments left out."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    logical = "\n".join(lines).replace("\\\n", " ").splitlines()
    parsed = [line.split(None, 1) for line in logical if line.strip()]
    return [(word, arguments) for word, arguments in parsed]


def last_stage() -> list[Instruction]:
    found = instructions()
    start = max(index for index, (word, _) in enumerate(found) if word == "FROM")
    return found[start:]


def arguments_of(word: str) -> list[str]:
    return [arguments for name, arguments in last_stage() if name == word]


def test_it_is_built_in_two_stages_of_one_slim_base():
    bases = [arguments.split()[0] for word, arguments in instructions() if word == "FROM"]
    assert len(bases) == 2
    assert set(bases) == {"python:${PYTHON}-slim"}


def test_all_that_is_copied_from_the_tree_exists_and_is_not_ignored():
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    kept = [line[1:] for line in ignore if line.startswith("!")]
    for word, arguments in instructions():
        if word == "COPY" and not arguments.startswith("--from"):
            for source in shlex.split(arguments)[:-1]:
                assert (ROOT / source).exists(), source
                assert any(fnmatchcase(source, pattern) for pattern in kept), source


def test_what_the_wheel_is_made_of_is_copied():
    copied = " ".join(arguments for word, arguments in instructions() if word == "COPY").split()
    assert {"pyproject.toml", "README.md", "LICENSE", "mockbroker", "protocol", "fixtures"} <= set(
        copied
    )


def test_it_runs_as_a_user_that_is_not_root():
    [user] = arguments_of("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


def test_it_exposes_the_ports_of_three_brokers_and_the_admin_server():
    [exposed] = arguments_of("EXPOSE")
    assert exposed.split() == [
        *(str(DEFAULT_PORT + broker) for broker in range(3)),
        str(DEFAULT_ADMIN_PORT),
    ]


def test_the_health_check_asks_the_admin_port():
    [check] = arguments_of("HEALTHCHECK")
    command = json.loads(check.partition(" CMD ")[2])
    assert command[:2] == ["python", "-c"]
    compile(command[2], "HEALTHCHECK", "exec")
    assert f"http://127.0.0.1:{DEFAULT_ADMIN_PORT}/healthz" in command[2]


@pytest.mark.parametrize("word", ["ENTRYPOINT", "CMD"])
def test_its_flags_are_those_of_serve(word: str):
    [text] = arguments_of(word)
    command = json.loads(text)
    if word == "ENTRYPOINT":
        assert command[:2] == ["mockbroker", "serve"]
    known = {option for parameter in serve.params for option in parameter.opts}
    assert {part for part in command if part.startswith("--")} <= known
