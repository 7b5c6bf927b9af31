"""The Java clients, step by step, over a pipe (`tests/java/src/tour`, `tour-share`)."""

from __future__ import annotations

from typing import Any

from tests.support.java_pipe import JavaPipe

# Kafka's command-line classes bring the 4.3.1 client along, so one JVM serves both.
POMS = {"4.3.1": "kafka-server", "3.9.1": "kafka-clients-3.9.1"}


class Tour:
    """One JVM with the Java clients of one version. Raises JavaError with what a client threw."""

    def __init__(self, version: str) -> None:
        self.version = version
        has_share_consumers = not version.startswith("3.")
        folders = ["tour", "tour-share"] if has_share_consumers else ["tour"]
        main = "ShareTour" if has_share_consumers else "Tour"
        self._pipe = JavaPipe(f"mockbroker.tour.{main}", folders, POMS[version])

    def __call__(self, op: str, /, **item: Any) -> Any:
        """Run one step and return its result: None where there is nothing to say."""
        answer = self._pipe.ask_one(op, **item)
        return answer.get("result", answer or None)

    def ask(self, op: str, /, **item: Any) -> Any:
        """Run one step and return its answer as it came, `{"error": …}` included."""
        return self._pipe.ask(op, [item])

    def close(self) -> None:
        self._pipe.close()
