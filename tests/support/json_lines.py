"""A client program of ours behind a pipe of JSON lines: one step a line, one answer a line."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

ANSWER_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 10.0


class StepError(Exception):
    """What the client said instead of a result; it begins with Kafka's name of the error."""


class JsonLines:
    """A running program; calling it runs one step. A context manager.

    A step is `{"op": NAME, …}` and its answer `{"result": …}` or `{"error": TEXT}`.
    """

    def __init__(self, command: Sequence[str], **popen: Any) -> None:
        self._name = command[-1]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **popen
        )

    def __call__(self, op: str, /, **fields: Any) -> Any:
        """Run one step and return its result.

        Raises StepError with what the client said, RuntimeError if it ended or says nothing.
        """
        self.send(op, **fields)
        return self.receive()

    def send(self, op: str, /, **fields: Any) -> None:
        """Begin a step; `receive` waits for its end."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, **fields}).encode() + b"\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        stdout = self._process.stdout
        assert stdout is not None
        ready, _, _ = select.select([stdout], [], [], ANSWER_TIMEOUT_S)
        if not ready:
            raise RuntimeError(f"{self._name} says nothing for {ANSWER_TIMEOUT_S:.0f} s")
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise StepError(answer["error"])
        return answer.get("result")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
