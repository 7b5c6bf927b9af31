"""The processes of a soak's clients: one for each client library.

A library may crash: librdkafka 2.16 had a segmentation fault under faults of brokers. The process
is then started anew, and the soak says so. A process that ends otherwise is a problem, and so is
one that crashes too often: nobody would have used the cluster.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Self

CRASHES_MAX = 5


class ClientProcesses:
    """Starts a command for each library and keeps it running; `deaths` are those that ended.

    A process ends when its standard input does, and prints a JSON object of two counts.
    """

    def __init__(self, commands: Mapping[str, Sequence[str]]) -> None:
        self._commands = commands
        self._running: dict[str, subprocess.Popen[str]] = {}
        self.deaths: list[tuple[str, int]] = []  # library, return code
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def __enter__(self) -> Self:
        for library in self._commands:
            self._start(library)
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, and add up what they did."""
        for each in self._running.values():
            assert each.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                each.stdin.close()
        for library, each in self._running.items():
            assert each.stdout is not None
            with each.stdout:
                output = each.stdout.read()
            if each.wait():
                self.deaths.append((library, each.returncode))
                continue
            counts = json.loads(output)
            self.done.update(counts["done"])
            self.failed.update(counts["failed"])
        self._running.clear()

    def look(self) -> None:
        """Start the processes anew that have ended."""
        for library, each in list(self._running.items()):
            if each.poll() is not None:
                each.communicate()
                self.deaths.append((library, each.returncode))
                self._start(library)

    def _start(self, library: str) -> None:
        self._running[library] = subprocess.Popen(
            self._commands[library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    @property
    def crashes(self) -> list[str]:
        """The processes that a signal ended."""
        return [
            f"{library}: {signal.Signals(-code).name}" for library, code in self.deaths if code < 0
        ]

    @property
    def problems(self) -> list[str]:
        found = [
            f"the clients of {library} ended with code {code}"
            for library, code in self.deaths
            if code >= 0
        ]
        if len(self.crashes) > CRASHES_MAX:
            found.append(f"clients crashed {len(self.crashes)} times: {', '.join(self.crashes)}")
        return found
