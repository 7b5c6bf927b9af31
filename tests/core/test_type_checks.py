"""Wrong types of Python values are errors that name the part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest

from mockbroker.core.type_checks import check_type
from mockbroker.server.config import SeedRecord, TopicSpec

Topics = Mapping[str, int] | Sequence[TopicSpec] | None
Mode = Literal["block", "drop"]


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (3, int),
        (3, float),
        (3.5, float),
        (True, bool),
        (True, str | int | bool),
        ("x", str | Path | None),
        (Path("x"), str | Path | None),
        (None, str | Path | None),
        (Path("x"), str | PathLike[str]),
        ("drop", Mode),
        (range(3), Sequence[int]),
        ((1, "a"), tuple[int, str]),
        ({("orders", 0): 5}, Mapping[tuple[str, int], int]),
        ({"orders": 2}, Topics),
        ([TopicSpec("orders", 2, records=[SeedRecord(b"v", headers=[("a", None)])])], Topics),
        ((), Topics),
        (None, Topics),
    ],
)
def test_right_types_pass(value: object, type_: Any) -> None:
    check_type(value, type_, "value")


@pytest.mark.parametrize(
    ("value", "type_", "words"),
    [
        ("3", int, "value: expected int, not str"),
        (True, int, "value: expected int, not bool"),
        (1, bool, "value: expected bool, not int"),
        (True, float, "value: expected float, not bool"),
        (None, int, "value: expected int, not None"),
        (5, str | Path | None, "value: expected str | Path | None, not int"),
        (5, Mode, "value: expected 'block' or 'drop', not int"),
        ("abc", Sequence[str], "value: expected Sequence[str], not str"),
        ([1, "2"], Sequence[int], "value[1]: expected int, not str"),
        ((1,), tuple[int, str], "value: expected tuple[int, str], not a tuple of 1"),
        ((1, 2), tuple[int, str], "value[1]: expected str, not int"),
        (
            {"a": 1},
            Mapping[tuple[str, int], int],
            "value: a key: expected tuple[str, int], not str",
        ),
        ({("a", "0"): 1}, Mapping[tuple[str, int], int], "value: a key[1]: expected int, not str"),
        ({"a": None}, Topics, "value['a']: expected int, not None"),
        (["a"], Topics, "value[0]: expected TopicSpec, not str"),
        ("a", Topics, "value: expected Mapping[str, int] | Sequence[TopicSpec] | None, not str"),
        ([TopicSpec("a", "2")], Topics, "value[0].partitions: expected int, not str"),  # type: ignore[arg-type]
        (
            [TopicSpec("a", records=[SeedRecord(b"", headers=[("h", "v")])])],  # type: ignore[list-item]
            Topics,
            "value[0].records[0].headers[0][1]: expected bytes | None, not str",
        ),
    ],
)
def test_a_wrong_part_is_named(value: object, type_: Any, words: str) -> None:
    with pytest.raises(TypeError) as found:
        check_type(value, type_, "value")
    assert str(found.value) == words


class Point(TypedDict, total=False):
    x: int
    label: str


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"x": "1"}, "point.x: expected int, not str"),
        ({"y": 1}, "point: unknown field 'y'; known are: label, x"),
        ({"lable": 1}, "point: unknown field 'lable'; did you mean 'label'?"),
        ([1], "point: expected Point, not list"),
    ],
)
def test_a_dictionary_has_known_fields_only(value: object, words: str) -> None:
    check_type({}, Point, "point")
    check_type({"x": 1, "label": "a"}, Point, "point")
    with pytest.raises(TypeError) as found:
        check_type(value, Point, "point")
    assert str(found.value) == words


def test_the_arguments_of_a_function_are_named_without_a_path() -> None:
    with pytest.raises(TypeError, match=r"^label: expected str, not int"):
        check_type({"x": 1, "label": 2}, Point, "")


def test_a_text_that_is_none_of_the_choices_is_shown_with_them() -> None:
    with pytest.raises(
        ValueError, match=r"^mode: 'blok' is not allowed here; did you mean 'block'"
    ):
        check_type("blok", Mode, "mode")


def test_no_value_is_shown_as_it_may_be_a_password() -> None:
    with pytest.raises(TypeError) as found:
        check_type({"alice": b"alice-secret"}, Mapping[str, str], "users")
    assert str(found.value) == "users['alice']: expected str, not bytes"
    assert found.value.__cause__ is None
    assert found.value.__suppress_context__
