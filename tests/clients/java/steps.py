"""What a test of the Java clients says: named clients, fresh topics, records in and out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.tour import Tour
from tests.support.waiting import wait_until

Json = dict[str, Any]

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Peer:
    """A cluster under test: ours or the real one."""

    name: str
    bootstrap_servers: str
    brokers: int

    @property
    def is_real(self) -> bool:
        return self.name == "kafka"


class Steps:
    """The Java clients of one version on one cluster; clients are closed when the test ends."""

    def __init__(self, tour: Tour, peer: Peer) -> None:
        self.tour = tour
        self.peer = peer
        self._open: list[tuple[str, str]] = []

    def unique(self, stem: str) -> str:
        """A name that no other test of this cluster uses."""
        return f"{stem}-{self.tour.version.replace('.', '')}-{next(_NUMBERS)}"

    # -- admin -------------------------------------------------------------------------------------

    def admin(self, op: str, /, **item: Any) -> Any:
        return self.tour(f"admin.{op}", bootstrap=self.peer.bootstrap_servers, **item)

    def topic(self, partitions: int = 1, replicas: int = 1, **configs: object) -> str:
        """Create a topic of a fresh name; `min_insync_replicas=2` sets min.insync.replicas."""
        name = self.unique("topic")
        spec = {
            "name": name,
            "partitions": partitions,
            "replicas": replicas,
            "configs": _dotted(configs),
        }
        self.create(spec)
        return name

    def create(self, *specs: Json) -> dict[str, Json]:
        """Create topics and wait until the brokers know and serve them.

        A real leader may be known before it serves. It then refuses the first batch of a producer
        and takes the second one, and the first is out of order until its delivery times out.
        """
        created: dict[str, Json] = self.admin("createTopics", topics=specs)
        assert not [each for each in created.values() if "error" in each], created
        self.until(lambda: not [each for each in self.described(*created) if "error" in each])
        if self.peer.is_real:
            for each in specs:
                numbers = range(each.get("partitions", 1))
                wanted = {f"{each['name']}-{number}": "latest" for number in numbers}
                self.admin("listOffsets", specs=wanted)
        return created

    def described(self, *topics: str) -> list[Json]:
        return list(self.admin("describeTopics", topics=topics).values())

    def until(self, check: Callable[[], bool]) -> None:
        """Ask until it holds: in a real cluster, what a controller did takes time to spread."""
        wait_until(check)

    # -- producers ---------------------------------------------------------------------------------

    def producer(self, **config: object) -> str:
        return self._client("producer", None, config)

    def close(self, client: str) -> Any:
        """Close a client; a share consumer says what its callback was told last."""
        kind = client.partition("-")[0]
        self._open.remove((kind, client))
        return self.tour(f"{kind}.close", name=client)

    def send(self, producer: str, *records: Json, topic: str | None = None) -> list[Json]:
        """Send, flush, and return what became of each record."""
        if topic is not None:
            records = tuple({"topic": topic, **record} for record in records)
        sent: list[Json] = self.tour("producer.send", name=producer, records=records)
        return sent

    def fill(self, topic: str, values: Sequence[object], **record: object) -> list[Json]:
        """Produce one record per value with a producer of its own."""
        producer = self.producer()
        sent = self.send(producer, *({"value": str(v), **record} for v in values), topic=topic)
        assert not [each for each in sent if "error" in each], sent
        self.close(producer)
        return sent

    # -- consumers ---------------------------------------------------------------------------------

    def consumer(self, group: str | None = None, **config: object) -> str:
        defaults: dict[str, object] = {
            "auto_offset_reset": "earliest",
            "enable_auto_commit": "false",
            "heartbeat_interval_ms": 200,  # by which members hear of a rebalance
        }
        return self._client("consumer", group, defaults | config)

    def __call__(self, op: str, client: str, /, **item: Any) -> Any:
        """A step of one client: `java("commit", consumer)`."""
        return self.tour(f"{client.partition('-')[0]}.{op}", name=client, **item)

    def poll(self, consumer: str, count: int, timeout_ms: int = 20_000) -> list[Json]:
        """Poll until `count` records have come; more may come along, fewer after the timeout."""
        polled: list[Json] = self("poll", consumer, count=count, timeoutMs=timeout_ms)
        return polled

    def settle(self, *consumers: str, partitions: int) -> dict[str, list[str]]:
        """Poll all in turn until together they own that many partitions, each of them once."""
        owned: dict[str, list[str]] = self.tour(
            "consumer.settle", names=consumers, partitions=partitions
        )
        return owned

    def read_all(self, topic: str, count: int, partitions: int = 1, **config: object) -> list[Json]:
        """Read a topic from its start with a consumer that belongs to no group."""
        consumer = self.consumer(**config)
        self("assign", consumer, partitions=[f"{topic}-{p}" for p in range(partitions)])
        records = self.poll(consumer, count)
        self.close(consumer)
        return records

    # -- share consumers ---------------------------------------------------------------------------

    def share_group(self, **configs: object) -> str:
        """Name a share group that begins with the first record; `isolation_level` and others are
        group configs that begin with `share.`.
        """
        name = self.unique("shared")
        settings = {"auto_offset_reset": "earliest", **configs}
        ops = [["SET", f"share.{key}", value] for key, value in _dotted(settings).items()]
        resource = {"type": "GROUP", "name": name}
        self.admin("incrementalAlterConfigs", resource=resource, ops=ops)
        return name

    def share_consumer(self, group: str, *topics: str, **config: object) -> str:
        """Open a member of a share group that has subscribed and not yet polled."""
        consumer = self._client("share", group, config)
        self("subscribe", consumer, topics=topics)
        return consumer

    def poll_all(
        self, *members: str, count: int, timeout_ms: int = 20_000, **item: object
    ) -> dict[str, list[Json]]:
        """Poll share consumers in turn until together they have `count` records."""
        polled: dict[str, list[Json]] = self.tour(
            "share.pollAll", names=members, count=count, timeoutMs=timeout_ms, **item
        )
        return polled

    def join_share_group(self, group: str, *members: str) -> None:
        """Poll share consumers until the coordinator has assigned partitions to all of them."""

        def are_assigned() -> bool:
            assert not any(self.poll_all(*members, count=1, timeout_ms=50).values())
            described = self.admin("describeShareGroups", groups=[group])[group]
            if described.get("error") == "GroupIdNotFoundException":
                return False  # no heartbeat has come yet
            joined = described["members"]
            return len(joined) == len(members) and all(each["assignment"] for each in joined)

        self.until(are_assigned)

    # -- life --------------------------------------------------------------------------------------

    def _client(self, kind: str, group: str | None, config: dict[str, object]) -> str:
        name = self.unique(kind)
        settings = {"bootstrap.servers": self.peer.bootstrap_servers, "client.id": name}
        if group is not None:
            settings["group.id"] = group
        self.tour(f"{kind}.open", name=name, config=settings | _dotted(config))
        self._open.append((kind, name))
        return name

    def close_clients(self) -> None:
        """Close all but the admin client, which others of the same cluster go on with."""
        while self._open:
            self.close(self._open[-1][1])

    def close_all(self) -> None:
        """Close all, because the cluster ends: another one may get its ports."""
        self.close_clients()
        self.admin("close")


def _dotted(options: dict[str, object]) -> dict[str, str]:
    return {name.replace("_", "."): str(value) for name, value in options.items()}
