"""The last member of a share group, which fetches until nothing is left."""

from __future__ import annotations

from mockbroker.simulation.clients.base import CallSequence
from mockbroker.simulation.clients.share import ACCEPT, REJECT, ShareMember
from mockbroker.simulation.history import Drained
from mockbroker.simulation.script import Script, Sleep

# Without records for longer than any acquisition lock (`swarm_queues`), all of them are decided.
_QUIET_MS = 20_000
_SHORT_PAUSE_MS, _PAUSE_MS = 200, 2_000
# So long may a whole group go on to get records.
_PATIENCE_MS = 90_000


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
        yield from self.start()
        self._begun_ms = quiet_ms = self.history.now_ms()
        while self.history.now_ms() - quiet_ms < _QUIET_MS:
            if self.history.now_ms() - self._begun_ms > _PATIENCE_MS:
                break
            if (yield from self._finds_any()):
                quiet_ms = self.history.now_ms()
                yield Sleep(_SHORT_PAUSE_MS)
            else:
                yield Sleep(_PAUSE_MS)
        else:
            yield from self.leave()
            self.history.counts["share groups drained"] += 1
            drained = Drained(self.settings.group, tuple(self.assigned))
            self.history.drained.append(drained)
            return
        self.history.drained.append(Drained(self.settings.group, None))

    def _finds_any(self) -> CallSequence:
        """Whether a round brought records, or left a partition out."""
        acquired = self.history.counts["share records acquired"]
        failed = self.failures
        yield from self.round()
        every = {
            (topic_id, index)
            for topic in self.settings.topics
            for index in self.partitions_of(topic)
            if (topic_id := self.topic_id(topic, index)) is not None
        }
        if self.failures != failed or set(self.assigned) != every:
            self._begun_ms = self.history.now_ms()  # the group is not whole yet
            return True
        return self.history.counts["share records acquired"] != acquired

    def topic_id(self, topic: str, index: int) -> bytes | None:
        """The id of a topic by the client's metadata."""
        leader = self.leader(topic, index)
        return None if leader is None else leader.topic_id
