"""Members of share groups on the wire: each has connections of its own."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker_protocol.messages import share_acknowledge as acknowledging
from mockbroker_protocol.messages import share_fetch as fetching
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.waiting import wait_until

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


class ShareMember:
    """A member that reads partition 0 of one topic. It has joined and opened a share session."""

    def __init__(self, kafka: Cluster, group: str, topic: str, member_id: str) -> None:
        self.group = group
        self.member_id = member_id
        self._client = Client(kafka.bootstrap_servers)
        self._topic_id = self._client.metadata([topic]).topics[0].topic_id
        self._leader = self._client.leader(topic, 0)
        self._topic = topic
        self._session_epoch = 0
        wait_until(self._joins, what="the group coordinator")
        wait_until(self._reads, what="the share partition")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    def leave(self) -> None:
        """Leave the group; the session stays until the connection ends."""
        request = ShareGroupHeartbeatRequest(self.group, self.member_id, -1)
        answer: Any = self._client.coordinator(self.group).send(request)
        assert answer.error_code == 0

    def _joins(self) -> bool:
        request = ShareGroupHeartbeatRequest(
            self.group, self.member_id, 0, subscribed_topic_names=[self._topic]
        )
        answer: Any = self._client.coordinator(self.group).send(request)
        return not answer.error_code

    def _reads(self) -> bool:
        """Open the session; the share partition may not be initialized yet."""
        self._session_epoch = 0
        row = self.fetch()
        return row is None or not row.error_code

    def fetch(self, *acks: tuple[int, int, Sequence[int]]) -> Any:
        """The answer about the partition; None without a row. The topic is named at first only."""
        batches = [fetching.AcknowledgementBatch(*ack[:2], list(ack[2])) for ack in acks]
        partitions = [fetching.FetchPartition(0, batches)]
        named = acks or self._session_epoch == 0
        request = fetching.ShareFetchRequest(
            self.group,
            self.member_id,
            self._session_epoch,
            max_records=100,
            batch_size=100,
            topics=[fetching.FetchTopic(self._topic_id, partitions)] if named else [],
        )
        return self._row(self._sent(request))

    def acquired(self) -> list[tuple[int, int, int]]:
        """What a fetch acquires: first and last offset, and delivery count."""
        row = self.fetch()
        return [] if row is None else ranges(row)

    def acknowledge(self, *acks: tuple[int, int, Sequence[int]]) -> int:
        """Acknowledge ranges; returns the error of the partition."""
        batches = [acknowledging.AcknowledgementBatch(*ack[:2], list(ack[2])) for ack in acks]
        partitions = [acknowledging.AcknowledgePartition(0, batches)]
        topics = [acknowledging.AcknowledgeTopic(self._topic_id, partitions)]
        request = acknowledging.ShareAcknowledgeRequest(
            self.group, self.member_id, self._session_epoch, topics=topics
        )
        row = self._row(self._sent(request))
        assert row is not None
        code: int = row.error_code
        return code

    def _sent(self, request: Any) -> Any:
        answer = self._leader.send(request)
        assert answer.error_code == 0
        self._session_epoch += 1
        return answer

    @staticmethod
    def _row(answer: Any) -> Any:
        rows = [row for topic in answer.responses for row in topic.partitions]
        return rows[0] if rows else None


def ranges(row: Any) -> list[tuple[int, int, int]]:
    """The acquired ranges of a row of a ShareFetch."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count) for each in row.acquired_records
    ]
