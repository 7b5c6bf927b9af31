"""The state of the cluster at the entry that is being converted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from mockbroker.core.events import LeaderChanged, TopicsChanged
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.entries import (
    AppendEntry,
    EventEntry,
    JournalEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.pipeline.convert.recent import Recent
from mockbroker.pipeline.spool.format import ClientIdentified, RunStarted
from mockbroker_protocol.headers import RequestHeader

if TYPE_CHECKING:
    from mockbroker.pipeline.convert.readers import FetchSenders

ZERO_ID = uuid_text(bytes(16))


class Place(NamedTuple):
    """A partition: its topic's name, its topic's id, its index."""

    topic: str | None
    topic_id: str | None
    partition: int

    def columns(self) -> dict[str, object]:
        return {"topic": self.topic, "topic_id": self.topic_id, "partition": self.partition}


class RunClient(NamedTuple):
    """A client, identified by client id and host."""

    client_id: str | None
    host: str | None


class Leading(NamedTuple):
    """The leader of a partition, its epoch, and its first entry."""

    leader: int
    epoch: int
    since_seq: int


class ConvertedExchange:
    """A request and its consequences. `message` is None if it could not be decoded."""

    __slots__ = (
        "answer",
        "appended",
        "client",
        "committed",
        "fetched",
        "header",
        "message",
        "rebalances",
        "request",
        "response",
    )

    def __init__(
        self,
        request: RequestEntry,
        header: RequestHeader,
        message: Any,
        client: RunClient,
        rebalances: int,
    ) -> None:
        self.request = request
        self.header = header
        self.message = message
        self.client = client
        # The appends and their partitions: a later topic may have the same name.
        self.appended: list[tuple[AppendEntry, Place]] = []
        # The partitions whose offsets the coordinator has written, by topic name.
        self.committed: set[tuple[str, int]] = set()
        self.answer: ResponseEntry | None = None
        self.response: Any = None  # the answer's message
        self.fetched: FetchSenders | None = None  # the connection and possible members of a Fetch
        self.rebalances = rebalances  # how many its client had seen when it sent the request

    @property
    def response_seq(self) -> int | None:
        """The number of the answer, if it was sent whole."""
        answer = self.answer
        if answer is None or answer.body is None or answer.outcome:
            return None
        return answer.seq

    @property
    def rules(self) -> tuple[str, ...] | None:
        return None if self.answer is None else self.answer.rules or None


class RunState:
    """Topics, leaders and clients."""

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}  # name -> id
        self.clients: dict[int, ClientIdentified] = {}  # by connection
        self.leading: dict[tuple[str, int], Leading] = {}  # by topic name and partition
        self.rebalances: Recent[RunClient, int] = Recent()  # assignments of each client, counted
        self._names: dict[str, str] = {}  # id -> name
        self._deleted_names: Recent[str, str] = Recent()  # id -> name
        self._texts: Recent[bytes, str] = Recent()  # of ids

    def begin(self, started: RunStarted) -> None:
        """The topics at the start of the run."""
        for topic in started.topics:
            self._add_topic(0, topic.name, topic.topic_id, topic.leaders)

    def _add_topic(
        self, seq: int, name: str, topic_id: str, leaders: Iterable[tuple[int, int]]
    ) -> None:
        self.topics[name] = topic_id
        self._names[topic_id] = name
        for partition, (leader, epoch) in enumerate(leaders):
            self.leading[name, partition] = Leading(leader, epoch, seq)

    def topics_changed(self, entry: EventEntry, event: TopicsChanged) -> None:
        """Topics were created or deleted."""
        for topic in event.deleted:
            if self._names.pop(topic.topic_id, None) is not None:
                self._deleted_names[topic.topic_id] = topic.topic
            if self.topics.get(topic.topic) == topic.topic_id:
                del self.topics[topic.topic]
                for partition in range(len(topic.assignment)):
                    self.leading.pop((topic.topic, partition), None)
        for topic in event.created:
            leaders = [(-1, 0)] * len(topic.assignment)
            self._add_topic(entry.seq, topic.topic, topic.topic_id, leaders)

    def leader_changed(self, entry: EventEntry, event: LeaderChanged) -> None:
        """A partition has another leader or leader epoch."""
        self.leading[event.topic, event.partition] = Leading(
            event.leader_id, event.leader_epoch, entry.seq
        )

    def place(self, name: str, topic_id: bytes, partition: int) -> Place:
        """A partition by its topic's name or id."""
        if name:
            return Place(name, self.topics.get(name), partition)
        text = self._text(topic_id)
        return Place(self.name_of(text), None if text == ZERO_ID else text, partition)

    def name_of(self, topic_id: str) -> str | None:
        """The name of a topic, also of one that was deleted lately."""
        return self._names.get(topic_id) or self._deleted_names.get(topic_id)

    def _text(self, topic_id: bytes) -> str:
        text = self._texts.get(topic_id)
        if text is None:
            text = self._texts[topic_id] = uuid_text(topic_id)
        return text

    def named(self, topic: str, partition: int) -> Place:
        """A partition of an existing topic, by name."""
        return Place(topic, self.topics.get(topic), partition)

    def appended_to(self, entry: AppendEntry) -> Place:
        """The partition whose log an append is in, even if the topic is deleted already and the
        broker has not received the deletion.
        """
        return Place(entry.topic, self._text(entry.topic_id), entry.partition)

    def exists(self, place: Place) -> bool:
        """Whether its topic exists, and has not been replaced by another of the name."""
        return place.topic is not None and self.topics.get(place.topic) == place.topic_id

    def leader_epoch(self, place: Place, broker: int, since_seq: int) -> int | None:
        """The epoch under which a broker has led since an entry; None if it has not."""
        if place.topic is None or not self.exists(place):
            return None
        leading = self.leading.get((place.topic, place.partition))
        if leading is None or leading.since_seq > since_seq:
            return None
        return leading.epoch if leading.leader in (broker, -1) else None

    def client(self, header: RequestHeader, connection_id: int) -> RunClient:
        """The client of a connection."""
        client = self.clients.get(connection_id)
        return RunClient(header.client_id, None if client is None else client.client_host)


def times(entry: JournalEntry) -> dict[str, object]:
    """The columns of an entry's number and times."""
    return {"seq": entry.seq, "virtual_ms": entry.virtual_ms, "real_ns": entry.real_ns}
