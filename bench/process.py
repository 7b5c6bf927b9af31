"""Child processes: start, the wait for an answer, resident memory, the end."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench import raw
from bench.model import UnavailableError

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0
CONNECT_PAUSE_S = 0.001


@contextlib.contextmanager
def child(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a command; yields it and the file that holds its output. SIGTERM at the end."""
    with tempfile.NamedTemporaryFile(prefix="bench-", suffix=".out") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        except OSError as error:
            raise UnavailableError(str(error)) from None
        try:
            yield process, Path(output.name)
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for_metadata(
    process: subprocess.Popen[bytes], output: Path, address: tuple[str, int]
) -> None:
    """Return as soon as the process answers Metadata. Raises UnavailableError if it will not."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while raw.brokers_seen(address) == 0:
        if process.poll() is not None or time.monotonic() > deadline:
            words = output.read_text(errors="replace").strip().splitlines()[-3:]
            raise UnavailableError("it did not start: " + " / ".join(words))
        time.sleep(CONNECT_PAUSE_S)


def wait_for_line(process: subprocess.Popen[bytes], output: Path, start: str) -> str:
    """The first line of the output that begins with `start`.

    Raises UnavailableError if none comes.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        text = output.read_text(errors="replace")
        for line in text.splitlines(keepends=True):
            if line.startswith(start) and line.endswith("\n"):
                return line.strip()
        if process.poll() is not None or time.monotonic() > deadline:
            raise UnavailableError(
                "it did not start: " + " / ".join(text.strip().splitlines()[-3:])
            )
        time.sleep(CONNECT_PAUSE_S)


def cpu_seconds(pids: Sequence[int]) -> float:
    """The CPU time that the processes have taken so far, to the nanosecond.

    Says what a load costs also on a machine that others use meanwhile. Raises UnavailableError
    where the operating system does not tell.
    """
    total_ns = 0
    for pid in pids:
        try:
            int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
            for task in Path(f"/proc/{pid}/task").iterdir():
                # A thread may end meanwhile.
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    total_ns += int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError) as error:
            raise UnavailableError(f"CPU time is not told here: {error}") from None
    return total_ns / 1e9


def core_wait_s(pid: int) -> float:
    """How long the threads of a process have been ready and without a core.

    That of a thread counts once it has one again. Raises UnavailableError where the operating
    system does not tell.
    """
    total_ns = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                total_ns += int((task / "schedstat").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError) as error:
        raise UnavailableError(f"waits for a core are not told here: {error}") from None
    return total_ns / 1e9


def resident_bytes(pids: Sequence[int]) -> int:
    """Resident memory of the processes together, as `ps` counts it."""
    words = subprocess.run(
        ["ps", "-o", "rss=", "-p", ",".join(map(str, pids))],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return sum(map(int, words)) * 1024
