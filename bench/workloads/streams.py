"""Kafka Streams: how long an application takes until it runs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from bench.drivers import STREAMS
from bench.model import MILLISECONDS, Figures, Measure, Running, Scale

_numbers = itertools.count(1)


class StreamsStart:
    """Start an application of four stateful tasks in a streams group (KIP-1071), until RUNNING."""

    name = "streams-start"
    measures = (Measure("streams-start", "start of a Streams application, 4 tasks", MILLISECONDS),)
    fresh = False
    excluded: Mapping[str, str] = {
        "kfake": "has no streams groups",
        "librdkafka-mock": "has no streams groups",
    }

    def prepare(self) -> None:
        STREAMS.prepare()

    def run(self, running: Running, scale: Scale) -> Figures:
        name = f"bench-streams-{next(_numbers)}"
        return {self.name: STREAMS.start(running.bootstrap_servers, name)}
