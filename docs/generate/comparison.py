"""What else can stand in for a Kafka cluster in tests, from `docs/_data/comparison.toml`.

The committed page has no figures. `python docs/generate/comparison.py build/bench.json` prints it
with those of a run of `make bench`, in the format of `bench.report.write_json`.
"""

from __future__ import annotations

import json
import statistics
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markdown import page as join
from markdown import table

DATA = Path(__file__).resolve().parents[1] / "_data" / "comparison.toml"
OURS = "mockbroker"

INTRO = """
# Comparison

What else can stand in for a Kafka cluster in tests. A real broker is the measure: if a test depends
on what [limits](limits.md) lists, run it against one. A number names the source of a cell. A dash
means that the source says nothing of it, not that it cannot be done.
"""
FIGURES = """
## Figures

`make bench` measures mockbroker beside a real broker, kfake and librdkafka's mock on your machine,
and `make comparison` writes the comparison with the figures into `build/comparison.md`. The medians
depend on the machine, so none are here.
"""
MEASURED = """
## Figures

Medians of one run on one machine ({scale}), in seconds, bytes, and bytes or things per second.
"""

Json = Mapping[str, Any]


def data() -> dict[str, Any]:
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def page(results: Json | None = None) -> str:
    """The page; with the `results` of a bench, their figures too."""
    found = data()
    numbers = {each["id"]: number for number, each in enumerate(found["sources"], 1)}
    others = found["others"]
    rows = [
        (row["feature"], row["ours"], *(cell(row[each["id"]], numbers) for each in others))
        for row in found["rows"]
    ]
    return join(
        INTRO,
        table(("", OURS, *(each["title"] for each in others)), rows),
        FIGURES if results is None else figures(results, others),
        "## Evidence",
        "Each row is shown for mockbroker by tests:",
        table(
            ("", "tests"),
            [
                (row["feature"], ", ".join(f"`{each}`" for each in row["tests"]))
                for row in found["rows"]
            ],
        ),
        "Sources:",
        "\n".join(
            f"{number}. [{each['title']}]({each['url']})"
            for number, each in enumerate(found["sources"], 1)
        ),
    )


def cell(told: list[str], numbers: Mapping[str, int]) -> str:
    text, source = told
    return f"{text} ({numbers[source]})" if text else "–"


def figures(results: Json, others: list[dict[str, str]]) -> str:
    """The medians of each measure that ours has."""
    peers = list(dict.fromkeys([OURS, *(each["bench"] for each in others)]))
    rows = [
        (each["title"], *(median(each["figures"].get(peer)) for peer in peers))
        for each in results["measures"].values()
        if each["figures"].get(OURS)
    ]
    return join(MEASURED.format(scale=results["scale"]), table(("", *peers), rows))


def median(values: list[float] | None) -> str:
    """Three digits, in the unit of the bench (seconds, bytes, times)."""
    return f"{statistics.median(values):.3g}" if values else "–"


if __name__ == "__main__":
    sys.stdout.write(page(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
