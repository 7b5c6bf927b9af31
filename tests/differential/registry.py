"""The cases, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tests.differential.session import Session

Play = Callable[[Session], None]


@dataclass(frozen=True)
class Case:
    """One case: its name, what it plays, the cluster it wants ("one" or "three" brokers), and
    whether it takes seconds because time has to pass.
    """

    name: str
    play: Play
    cluster: str
    slow: bool = False


CASES: dict[str, Case] = {}


def case(*, cluster: str = "one", slow: bool = False) -> Callable[[Play], Play]:
    """Register a function as a case under its own name."""

    def register(play: Play) -> Play:
        name = play.__name__
        if name in CASES:
            raise ValueError(f"two cases are called {name}")
        CASES[name] = Case(name, play, cluster, slow)
        return play

    return register


def load_cases() -> dict[str, Case]:
    """Every case of the folder `cases`."""
    for path in sorted(Path(__file__).with_name("cases").glob("*.py")):
        if path.stem != "__init__":
            import_module(f"tests.differential.cases.{path.stem}")
    return CASES
