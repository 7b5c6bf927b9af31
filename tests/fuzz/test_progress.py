"""A run that was stopped goes on where it was, and only if it is the same run."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz import progress
from tests.fuzz.engine import SEED_STRIDE, Finding
from tests.fuzz.processes import prepare
from tests.fuzz.progress import Progress, TargetRun
from tests.support.saved_runs import code_hash

SMALL = ["--inputs", "10_000", "--seed", "3", "--target", "compressed"]
TIMEOUT_S = 60.0
Batch = tuple[str, int, int]


class Pool:
    """In place of processes: nothing is run, and after some batches somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self.until: int | None = None
        self.done: list[Batch] = []

    def __call__(self, *_: object, **__: object) -> Pool:
        return self

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def shutdown(self, **_: object) -> None:
        pass

    def map(self, _: Callable[..., Any], batches: list[Batch]) -> Iterator[object]:
        for name, first, count in batches:
            if len(self.done) == self.until:
                raise KeyboardInterrupt
            self.done.append((name, first, count))
            yield name, count, 0.5, [Finding(name, first, b"x", "KeyError in x.py:1", "text")]


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pool:
    pool = Pool()
    monkeypatch.setattr(command, "ProcessPoolExecutor", pool)
    monkeypatch.setattr(command, "FINDINGS", tmp_path)
    monkeypatch.setattr(progress, "FILE", tmp_path / "run.json")
    return pool


def test_a_run_that_is_interrupted_goes_on(pool: Pool, capsys: pytest.CaptureFixture[str]) -> None:
    pool.until = 2
    assert command.main(SMALL) == 130
    assert "stopped after 4,000 inputs" in capsys.readouterr().out
    pool.until = None
    assert command.main([*SMALL, "--resume"]) == 1
    first = 3 * SEED_STRIDE
    assert pool.done == [("compressed", first + n, 2_000) for n in range(0, 10_000, 2_000)]
    told = capsys.readouterr().out
    assert told.startswith("4,000 inputs are done\n")
    assert "compressed: 10,000 inputs, 2.5 s of CPU time\n" in told
    assert "10,000 inputs of seed 3 in " in told
    assert "1 findings in" in told
    assert "and 4 more of the same kinds" in told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--inputs", "20_000"], "is a run of other inputs"),
        (["--seed", "4"], "is a run of other seed"),
        (["--target", "sasl"], "is a run of other targets"),
    ],
)
def test_another_run_does_not_go_on_with_it(
    pool: Pool, capsys: pytest.CaptureFixture[str], more: list[str], told: str
) -> None:
    command.main(SMALL)
    done = len(pool.done)
    assert command.main([*SMALL, *more, "--resume"]) == 2
    assert told in capsys.readouterr().out
    assert len(pool.done) == done


def test_other_code_does_not_go_on_with_it(
    pool: Pool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command.main(SMALL)
    monkeypatch.setattr(command, "code_hash", lambda *_: "another")
    assert command.main([*SMALL, "--resume"]) == 2
    assert "is a run of other code, which has changed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("saved", "told"), [(None, "no run to resume"), (b"{", "Input data was truncated")]
)
def test_a_file_that_cannot_be_read_is_told(
    pool: Pool, capsys: pytest.CaptureFixture[str], saved: bytes | None, told: str
) -> None:
    if saved is not None:
        progress.FILE.write_bytes(saved)
    assert command.main([*SMALL, "--resume"]) == 2
    assert told in capsys.readouterr().out
    assert pool.done == []


def test_what_is_saved_is_all_of_it(tmp_path: Path) -> None:
    run = Progress(names=["a"], inputs=5, seed=1, code="c", findings=[("a", "KeyError")])
    run.add("a", 3, 0.25)
    run.add("a", 1, 0.5)
    run.save(tmp_path / "run.json")
    again = Progress(names=["a"], inputs=5, seed=1, code="c").resumed(tmp_path / "run.json")
    assert again == run
    assert (again.total, again.batches) == (4, 2)
    assert again.targets == {"a": TargetRun(4, 0.75)}
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]


def test_the_hash_of_the_code_is_that_of_names_and_bytes(tmp_path: Path) -> None:
    def hashed(name: str, data: bytes) -> str:
        root = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        (root / "code" / "__pycache__").mkdir(parents=True)
        (root / "code" / name).write_bytes(data)
        (root / "code" / "__pycache__" / root.name).write_bytes(data)
        return code_hash(root, ("code",))

    first = hashed("a.py", b"1")
    assert hashed("a.py", b"1") == first
    assert len({first, hashed("a.py", b"2"), hashed("b.py", b"1")}) == 3


HELD: list[object] = []


def _prepare_and_hold(pipe: object) -> None:
    prepare()
    HELD.append(pipe)


def _end(pid: int) -> None:
    """Kill the run that has started this process."""
    os.kill(pid, signal.SIGKILL)


def _run_until_killed(pipe: object) -> None:
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, spawn, initializer=_prepare_and_hold, initargs=(pipe,)) as pool:
        pool.submit(_end, os.getpid()).result()


def test_the_processes_of_a_run_that_is_killed_end() -> None:
    """The pipe ends when nobody holds its other end."""
    spawn = get_context("spawn")
    end, held = spawn.Pipe(duplex=False)
    run = spawn.Process(target=_run_until_killed, args=(held,))
    run.start()
    held.close()
    run.join()
    assert run.exitcode == -signal.SIGKILL
    assert end.poll(TIMEOUT_S)
    with pytest.raises(EOFError):
        end.recv()
    run.close()
