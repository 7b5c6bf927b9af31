"""What several parts have to know of the cluster, as of the note that is being read."""

from __future__ import annotations

from typing import Any, NamedTuple

from mockbroker.core.ids import uuid_text
from mockbroker.pipeline.spool.notes import Answered, Appended, Asked, Begin, Fact, KnownTopic, Peer
from mockbroker_protocol.headers import RequestHeader

ZERO_ID = uuid_text(bytes(16))


class Place(NamedTuple):
    """A partition: the name of its topic, the topic's id, the number."""

    topic: str | None
    topic_id: str | None
    partition: int

    def columns(self) -> dict[str, object]:
        return {"topic": self.topic, "topic_id": self.topic_id, "partition": self.partition}


class Client(NamedTuple):
    """Who asks, as far as that can be told apart: its client id and its host."""

    client_id: str | None
    host: str | None


class Leading(NamedTuple):
    """Who leads a partition, under which epoch, since which entry."""

    leader: int
    epoch: int
    since_seq: int


class Exchange:
    """A request and what followed. `message` is None where it could not be read or is hidden."""

    __slots__ = (
        "answer",
        "appended",
        "asked",
        "asked_offsets",
        "client",
        "header",
        "message",
        "rebalances",
        "response",
    )

    def __init__(
        self, asked: Asked, header: RequestHeader, message: Any, client: Client, rebalances: int
    ) -> None:
        self.asked = asked
        self.header = header
        self.message = message
        self.client = client
        self.appended: list[Appended] = []
        self.answer: Answered | None = None
        self.response: Any = None  # the answer's message
        # Of a Fetch: what is asked of each partition, also of those that it does not name.
        self.asked_offsets: dict[Place, int] | None = None
        self.rebalances = rebalances  # how many its client had seen when it asked

    @property
    def response_seq(self) -> int | None:
        """The answer that left the broker whole, if one did."""
        answer = self.answer
        if answer is None or answer.body is None or answer.outcome:
            return None
        return answer.seq

    @property
    def rules(self) -> list[str] | None:
        answer = self.answer
        return None if answer is None or not answer.rules else answer.rules


class World:
    """Topics, leaders and clients."""

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}  # name -> id
        self.names: dict[str, str] = {}  # id -> name, also of those that are gone
        self.peers: dict[int, Peer] = {}
        self.leading: dict[tuple[str, int], Leading] = {}  # by topic name and partition
        self.rebalances: dict[Client, int] = {}  # how many assignments a client has been given
        self._texts: dict[bytes, str] = {}

    def begin(self, begin: Begin) -> None:
        """What the cluster was like."""
        for topic in begin.topics:
            self.add_topic(topic)

    def add_topic(self, topic: KnownTopic) -> None:
        """A topic is there."""
        self.topics[topic.name] = topic.topic_id
        self.names[topic.topic_id] = topic.name
        for partition, (leader, epoch) in enumerate(topic.leaders):
            self.leading[topic.name, partition] = Leading(leader, epoch, 0)

    def fact(self, fact: Fact) -> None:
        """Take in what changes topics and leaders."""
        told = fact.fact
        if fact.name == "TopicChanged":
            self._topic_changed(fact)
        elif fact.name == "LeaderChanged":
            place = (told["topic"], told["partition"])
            self.leading[place] = Leading(told["leader_id"], told["leader_epoch"], fact.seq)

    def _topic_changed(self, fact: Fact) -> None:
        name, topic_id = fact.fact["topic"], fact.fact["topic_id"]
        if fact.fact["change"] == "created":
            self.topics[name] = topic_id
            self.names[topic_id] = name
            for partition in range(fact.fact["partition_count"]):
                self.leading[name, partition] = Leading(-1, 0, fact.seq)
        elif self.topics.get(name) == topic_id:
            del self.topics[name]

    def place(self, name: str, topic_id: bytes, partition: int) -> Place:
        """The partition that a message means by a name or by an id."""
        if name:
            return Place(name, self.topics.get(name), partition)
        text = self._texts.get(topic_id)
        if text is None:
            text = self._texts[topic_id] = uuid_text(topic_id)
        return Place(self.names.get(text), None if text == ZERO_ID else text, partition)

    def named(self, topic: str, partition: int) -> Place:
        """The partition of a topic that is there, by name."""
        return Place(topic, self.topics.get(topic), partition)

    def leader_epoch(self, place: Place, broker: int, since_seq: int) -> int | None:
        """The epoch under which a broker leads, if it has led since an entry; None otherwise."""
        if place.topic is None:
            return None
        leading = self.leading.get((place.topic, place.partition))
        if leading is None or leading.since_seq > since_seq:
            return None
        return leading.epoch if leading.leader in (broker, -1) else None

    def client(self, header: RequestHeader, connection_id: int) -> Client:
        """Who asks on a connection."""
        peer = self.peers.get(connection_id)
        return Client(header.client_id, None if peer is None else peer.host)
