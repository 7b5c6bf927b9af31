"""YAML: documents as data, and what is refused."""

from __future__ import annotations

import pytest

from mockbroker.core.yaml_documents import YamlError, read_yaml


def test_documents_are_plain_data():
    assert read_yaml("a: 1\n---\n- x\n- {b: null}\n") == [{"a": 1}, ["x", {"b": None}]]
    assert read_yaml("") == []


def test_an_alias_repeats_its_node():
    assert read_yaml("a: &x [1, 2]\nb: *x\n") == [{"a": [1, 2], "b": [1, 2]}]


def test_a_billion_nodes_in_nine_lines_are_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(YamlError, match="line 6: more than 1000000 nodes once its aliases"):
        read_yaml("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x [1, *x]", "line 1: a node contains itself"),
        ("[" * 50_000, "line 1: the document is nested too deeply"),
        ("a: 1\nb: " + "{a: [" * 60, "line 2: the document is nested too deeply"),
        ("".join(" " * n + "a:\n" for n in range(1_000)), "nested too deeply"),
        ("a: [1", "while parsing a flow sequence"),
        ("!!python/object:os.system {}", "could not determine a constructor"),
        ("x: !!int", "string index out of range"),
        ("x: !!bool maybe", "maybe"),
        ("x: !!timestamp now", "NoneType"),
        ('a: 1\nb: "\\ud800"', "line 2: half of a character"),
    ],
    ids=[
        "itself",
        "deep",
        "deep braces",
        "deep lines",
        "cut",
        "an object",
        "no number",
        "no boolean",
        "no time",
        "no text",
    ],
)
def test_what_is_no_plain_document_is_refused_in_one_line(text: str, message: str):
    with pytest.raises(YamlError, match=message) as caught:
        read_yaml(text)
    assert "\n" not in str(caught.value)
