"""How far a run is, in a file: a run of hours that was stopped goes on from there."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.fuzz.engine import FINDINGS
from tests.support.saved_runs import save

FILE = FINDINGS / "run.json"
CODE = ("mockbroker", "protocol", "tests/fuzz", "tests/support")
"""What an input and its verdict depend on."""


class TargetRun(msgspec.Struct):
    """Inputs so far, and seconds of CPU time."""

    inputs: int = 0
    cpu_s: float = 0.0


class Progress(msgspec.Struct, kw_only=True):
    """The finished part of a run. `findings` are pairs of a target and the kind of a finding."""

    names: list[str]
    inputs: int
    seed: int
    code: str
    batches: int = 0
    took_s: float = 0.0
    targets: dict[str, TargetRun] = msgspec.field(default_factory=dict)
    findings: list[tuple[str, str]] = msgspec.field(default_factory=list)
    more_findings: int = 0

    @property
    def total(self) -> int:
        return sum(each.inputs for each in self.targets.values())

    def add(self, name: str, inputs: int, cpu_s: float) -> None:
        """Count one more finished batch."""
        target = self.targets.setdefault(name, TargetRun())
        target.inputs += inputs
        target.cpu_s += cpu_s
        self.batches += 1

    def save(self, path: Path | None = None) -> None:
        """Replace the file."""
        save(self, path or FILE)

    def resumed(self, path: Path | None = None) -> Progress:
        """The progress of this run in the file. Raises ValueError if that is another run."""
        path = path or FILE
        try:
            saved = msgspec.json.decode(path.read_bytes(), type=Progress)
        except FileNotFoundError:
            raise ValueError(f"no run to resume: {path} does not exist") from None
        except msgspec.DecodeError as error:
            raise ValueError(f"{path}: {error}") from None
        for name in ("names", "inputs", "seed", "code"):
            if getattr(saved, name) != getattr(self, name):
                what = {"names": "targets", "code": "code, which has changed"}.get(name, name)
                raise ValueError(f"{path} is a run of other {what}")
        return saved
