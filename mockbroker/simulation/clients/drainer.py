"""The last member of a share group, which fetches until nothing is left."""

from __future__ import annotations

from mockbroker.simulation.clients.base import CallSequence
from mockbroker.simulation.clients.share import ACCEPT, REJECT, ShareMember
from mockbroker.simulation.history import Drained
from mockbroker.simulation.script import Script, Sleep

# Without records for longer than any acquisition lock (`swarm_queues`), and longer than a persister
# may wait until it reads a state once more, all of them are decided.
QUIET_MS = 40_000
# A pause and a round take less than half a session timeout.
_SHORT_PAUSE_MS, _PAUSE_MS = 200, 1_000


class ShareDrainer(ShareMember):
    """Waits until all other clients have ended. It then fetches from all partitions of its topics,
    until they have had no record for longer than any acquisition lock.
    """

    is_awaited = False
    records_max = (50,)
    types = (ACCEPT, REJECT)

    def live(self) -> Script:
        while self.history.running:
            yield Sleep(_PAUSE_MS)
        group = self.settings.group
        self.history.draining.add(group)
        yield from self.start()
        quiet_ms = self.history.now_ms()
        while self.history.now_ms() - quiet_ms < QUIET_MS:
            if (yield from self._finds_any()):
                quiet_ms = self.history.now_ms()
                yield Sleep(_SHORT_PAUSE_MS)
            else:
                yield Sleep(_PAUSE_MS)
        yield from self.leave()
        self.history.counts["share groups drained"] += 1
        self.history.drained.append(Drained(group, tuple(self.assigned)))
        self.history.draining.discard(group)

    def _finds_any(self) -> CallSequence:
        """Whether a round brought records, or left a partition out."""
        acquired = self.history.counts["share records acquired"]
        failed = self.failures
        self._interval_ms = 0  # a heartbeat comes with each round
        yield from self.round()
        every = {
            (topic_id, index)
            for topic in self.settings.topics
            for index in self.partitions_of(topic)
            if (topic_id := self.topic_id(topic, index)) is not None
        }
        return (
            self.history.counts["share records acquired"] != acquired
            or self.failures != failed
            or not every <= set(self.assigned)
        )

    def topic_id(self, topic: str, index: int) -> bytes | None:
        """The id of a topic by the client's metadata."""
        leader = self.leader(topic, index)
        return None if leader is None else leader.topic_id
