"""A reader without a group: it reads all partitions of its topics from the start."""

from __future__ import annotations

from mockbroker.simulation.clients.reading import Reading
from mockbroker.simulation.script import Script


class Reader(Reading):
    """One reader."""

    def live(self) -> Script:
        yield from self.refresh()
        self.start_reading([])
        for _ in range(self.settings.operations):
            for topic in self.settings.topics:
                for index in self.partitions_of(topic):
                    self.positions.setdefault((topic, index), -1)
            yield from self.poll()
            yield self.pause()
