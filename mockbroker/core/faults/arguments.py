"""The arguments of the actions on a cluster, as rules, HTTP and the command line give them."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from mockbroker.core.faults.convert import Count, Ms

Kind = Literal["group", "transaction"]


class StartBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that is stopped; with `new_port` its clients have to find it anew."""

    SHORT: ClassVar[str] = "node"

    node: int
    new_port: bool = False


class Node(msgspec.Struct, frozen=True):
    """One broker."""

    SHORT: ClassVar[str] = "node"

    node: int


class StopBroker(msgspec.Struct, frozen=True, kw_only=True):
    SHORT: ClassVar[str] = "node"

    node: int
    how: Literal["controlled", "unclean", "power_loss"] = "controlled"
    fence_after: Ms | None = None


class PauseBroker(msgspec.Struct, frozen=True, kw_only=True):
    SHORT: ClassVar[str] = "node"

    node: int
    fence_after: Ms | None = None


class AddBroker(msgspec.Struct, frozen=True, kw_only=True):
    SHORT: ClassVar[str] = "node"

    node: int
    rack: str | None = None


class Clients(msgspec.Struct, frozen=True, kw_only=True):
    """Which clients; all that are given must fit, as in a rule's `match`."""

    client_id: str | list[str] | None = None
    client_software: str | list[str] | None = None
    principal: str | list[str] | None = None
    source: str | list[str] | None = None
    group: str | list[str] | None = None
    transactional_id: str | list[str] | None = None


class HealNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """The links between some brokers and others; without `nodes` all, and those of clients."""

    SHORT: ClassVar[str] = "nodes"

    nodes: int | list[int] | None = None
    to: int | list[int] | None = None


class CutNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """The links between some brokers and others (or all others), or from given clients to them.

    One way: what `nodes` send is lost, to the others or to the clients. `delay` makes links between
    brokers slow in place of cutting them.
    """

    SHORT: ClassVar[str] = "nodes"

    nodes: int | list[int]
    to: int | list[int] | None = None
    clients: Clients | None = None
    both_ways: bool = True
    fence_after: Ms | None = None
    delay: Ms | None = None

    def __post_init__(self) -> None:
        if self.clients is not None and (self.to is not None or self.delay is not None):
            raise ValueError("clients go with neither to nor delay")


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """One partition."""

    topic: str
    partition: Count


class Partitions(msgspec.Struct, frozen=True, kw_only=True):
    """One partition, or all of the topic."""

    SHORT: ClassVar[str] = "topic"

    topic: str
    partition: Count | None = None


class Watermark(msgspec.Struct, frozen=True, kw_only=True):
    """One partition, or all of the topic; `release` lets the mark go again."""

    SHORT: ClassVar[str] = "topic"

    topic: str
    partition: Count | None = None
    release: bool = False


class DeleteRecords(msgspec.Struct, frozen=True, kw_only=True):
    """One partition, or all of the topic; up to an offset, or to the high watermark."""

    SHORT: ClassVar[str] = "topic"

    topic: str
    partition: Count | None = None
    before_offset: Count | None = None


class AnyPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """One partition, all of a topic, or all."""

    SHORT: ClassVar[str] = "topic"

    topic: str | None = None
    partition: Count | None = None


class PartitionNode(msgspec.Struct, frozen=True, kw_only=True):
    """A partition and one of its replicas."""

    topic: str
    partition: Count
    node: int


class LagFollower(msgspec.Struct, frozen=True, kw_only=True):
    """A follower that lags by some time, or (without `by`) fetches nothing at all, until released
    by the same action with `release`.
    """

    topic: str
    partition: Count | None = None
    node: int
    by: Ms | None = None
    release: bool = False


class ShrinkIsr(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    partition: Count | None = None
    nodes: list[int]


class PartitionOffset(msgspec.Struct, frozen=True, kw_only=True):
    """Where the mark of one partition goes and stays; a Produce with acks=all that waits for more
    ends with `REQUEST_TIMED_OUT`, its records in the log.
    """

    topic: str
    partition: Count
    offset: int


class AnyTopic(msgspec.Struct, frozen=True, kw_only=True):
    SHORT: ClassVar[str] = "topic"

    topic: str | None = None


class FailLogDir(msgspec.Struct, frozen=True, kw_only=True):
    SHORT: ClassVar[str] = "node"

    node: int
    path: str | None = None


class MoveCoordinator(msgspec.Struct, frozen=True, kw_only=True):
    """`key` is a group, or with kind "transaction" a transactional id."""

    key: str
    node: int
    kind: Kind = "group"


class UnloadCoordinator(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    load: Ms = 0
    kind: Kind = "group"


class Topic(msgspec.Struct, frozen=True):
    """One topic."""

    SHORT: ClassVar[str] = "topic"

    topic: str


class Group(msgspec.Struct, frozen=True):
    """One group."""

    SHORT: ClassVar[str] = "group"

    group: str


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """Members of a group: a glob on member id, client id or instance id; without it all."""

    SHORT: ClassVar[str] = "group"

    group: str
    member: str = "*"


class GroupInstance(msgspec.Struct, frozen=True, kw_only=True):
    """One static member of a group."""

    group: str
    instance_id: str


class AssignGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Who reads what: {member: {topic: [partition, …]}}; members as for `expire_member`."""

    group: str
    assignments: dict[str, dict[str, list[Count]]]


class Transaction(msgspec.Struct, frozen=True):
    """One transactional id."""

    SHORT: ClassVar[str] = "transactional_id"

    transactional_id: str


class AbortTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """The open transaction of an id; or what a producer has open in one partition."""

    SHORT: ClassVar[str] = "transactional_id"

    transactional_id: str | None = None
    producer_id: Count | None = None
    topic: str | None = None
    partition: Count | None = None

    def __post_init__(self) -> None:
        hanging = (self.producer_id, self.topic, self.partition)
        if (self.transactional_id is None) is any(each is None for each in hanging):
            raise ValueError("give transactional_id, or producer_id, topic and partition")


class HangTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """The markers of an id's ends are withheld; `release` sends them."""

    SHORT: ClassVar[str] = "transactional_id"

    transactional_id: str
    release: bool = False


class SetClock(msgspec.Struct, frozen=True, kw_only=True):
    """The clock stands still (`freeze`), or goes on again with false; runs at a `rate`; or is moved
    on by `advance`.
    """

    freeze: bool | None = None
    rate: float | None = None
    advance: Ms | None = None

    def __post_init__(self) -> None:
        if (self.freeze is None) is (self.rate is None) and self.advance is None:
            raise ValueError("give freeze or rate, or advance")


class RevokeAcl(msgspec.Struct, frozen=True, kw_only=True):
    """Bindings to be taken back; what is not given fits any."""

    principal: str | None = None
    host: str | None = None
    resource_type: str | None = None
    resource_name: str | None = None
    pattern_type: str | None = None
    operation: str | None = None
    permission: str | None = None


class SetQuota(msgspec.Struct, frozen=True, kw_only=True):
    """The quota of a user, a client id, both, or an address; "" is the default one, and a value of
    null takes it away.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
    key: str
    value: float | None = None
