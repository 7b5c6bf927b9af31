"""What was found once, or reaches lines that nothing else reaches, is run with every change."""

from __future__ import annotations

import pytest

from tests.fuzz.corpus import CORPUS_BYTES_MAX, FOLDER, kept
from tests.fuzz.engine import judged
from tests.fuzz.targets.all import TARGETS
from tests.fuzz.work import WORK_MS_MAX, slowness

FEW = {"sessions": 3, "sasl": 2, "tls": 4, "http": 4, "arrays": 8}
SOME = 200


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.txt"))])
def test_all_laws_hold_for_what_is_kept(name: str) -> None:
    target = TARGETS[name]
    work_ms_max = WORK_MS_MAX * slowness()
    for data in kept(name):
        judged(target, data, memory=False, work_ms_max=work_ms_max)


@pytest.mark.parametrize("name", TARGETS)
def test_all_laws_hold_for_some_inputs_of_each_target(name: str) -> None:
    target = TARGETS[name]
    work_ms_max = WORK_MS_MAX * slowness()
    for number in range(FEW.get(name, SOME)):
        judged(target, target.draw(number), memory=number == 0, work_ms_max=work_ms_max)


def test_the_corpus_is_small_enough_to_be_committed() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*")) <= CORPUS_BYTES_MAX
