"""Make the corpus anew: `make fuzz-corpus`.

Inputs of a target are run under `sys.settrace`, which is too slow for every run. An input that
reaches a line, or comes to it from another one, where no kept input did, is kept. What the corpus
has so far comes first, shortest first, so that an input that is covered by others falls out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from tests.fuzz.corpus import CORPUS_BYTES_MAX, INPUT_BYTES_MAX, keep, kept
from tests.fuzz.engine import Target
from tests.fuzz.targets.all import TARGETS

INPUTS = 20_000
GROWN = ("batches", "compressed", "texts")
"""The targets that mutate kept inputs."""

Arc = tuple[str, int, int]


class Arcs:
    """The pairs of lines of some modules that a function runs one after the other."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._prefixes = tuple(modules)
        self._wanted: dict[str, bool] = {}
        self.found: set[Arc] = set()

    def of(self, function: Callable[[], object]) -> set[Arc]:
        """The arcs of one call. An exception of the function ends it."""
        self.found = set()
        sys.settrace(self._on_call)
        try:
            function()
        except Exception:  # a finding; `make fuzz` reports it
            return set()
        finally:
            sys.settrace(None)
        return self.found

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_globals.get("__name__", "")
        wanted = self._wanted.get(name)
        if wanted is None:
            wanted = self._wanted[name] = name.startswith(self._prefixes)
        if not wanted:
            return None
        file, former = frame.f_code.co_filename, frame.f_lineno

        def on_line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal former
            if event == "line":
                self.found.add((file, former, frame.f_lineno))
                former = frame.f_lineno
            return on_line

        return on_line


def grown(target: Target, inputs: int, seed: int) -> list[bytes]:
    """The inputs to keep, of those kept so far and `inputs` new ones."""
    arcs = Arcs(target.modules)
    seen: set[Arc] = set()
    chosen: list[bytes] = []
    size = 0
    for data in _candidates(target, inputs, seed):
        if len(data) > INPUT_BYTES_MAX:
            continue
        new = arcs.of(lambda data=data: target.check(data)) - seen  # type: ignore[misc]
        if new and size + len(data) * 4 // 3 <= CORPUS_BYTES_MAX // len(GROWN):
            seen |= new
            chosen.append(data)
            size += len(data) * 4 // 3
    return chosen


def _candidates(target: Target, inputs: int, seed: int) -> Iterator[bytes]:
    yield from sorted(kept(target.name), key=len)
    for number in range(seed, seed + inputs):
        yield target.draw(number)


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz-corpus", description=__doc__)
    parser.add_argument("--inputs", type=int, default=INPUTS, help="new inputs of each target")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first one")
    asked = parser.parse_args()
    for name in GROWN:
        chosen = grown(TARGETS[name], asked.inputs, asked.seed)
        keep(name, chosen)
        sys.stdout.write(f"{name}: {len(chosen)} inputs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
