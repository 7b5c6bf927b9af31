"""The image of a cluster, as data.

All but the logs are plain structs. A log in an image is a `ReplicaLog` that is never appended to;
it shares the memory of its batches with the captured log.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.security.acls import AclBinding
from mockbroker.core.security.delegation_tokens import DelegationToken

PRISTINE = 0  # the log id of a leader's log without any append


class BrokerImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One broker. `fence_at_ms` is the time of a scheduled fencing; `registered` is False for a
    broker without a registration.
    """

    node_id: int
    rack: str | None
    epoch: int
    fenced: bool
    shutting_down: bool
    state: str
    stopped_how: str
    logger_levels: dict[str, str]
    failed_dirs: list[str]
    fence_at_ms: int | None
    registered: bool = True


class CredentialImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A SCRAM credential."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes


class SettingsImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Everything but topics and logs: the brokers and all settings.

    `quotas` are entities, as pairs of type and name, with their quotas. `deleted_epoch` is the
    highest leader epoch of partitions of deleted topics, or -1. `former_epochs` are the last leader
    epochs of partitions that a restored snapshot took from a topic: by topic id and index.
    """

    cluster_id: str
    kafka_version: str
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    brokers: list[BrokerImage]
    static_configs: dict[str, str]
    default_configs: dict[str, str]
    broker_configs: dict[int, dict[str, str]]
    group_configs: dict[str, dict[str, str]]
    client_metrics: dict[str, dict[str, str]]
    features: dict[str, int]
    features_epoch: int
    quotas: list[tuple[list[tuple[str, str | None]], dict[str, float]]]
    credentials: list[CredentialImage]
    acls: list[AclBinding]
    tokens: list[DelegationToken]
    deleted_epoch: int
    former_epochs: dict[bytes, dict[int, int]]


class ReplicaImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A replica with a log of its own."""

    node_id: int
    log_id: int


class PartitionImage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The controller's and the leader's state of a partition. `log_id` is that of the leader's log.

    `dirs` are the directories of replicas, by broker, for brokers with several.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader_id: int
    leader_epoch: int
    partition_epoch: int
    leader_epoch_start_offset: int
    log_id: int
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    own: tuple[ReplicaImage, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    dirs: tuple[tuple[int, str], ...] = ()

    @property
    def log_ids(self) -> set[int]:
        """The logs of the leader and of the replicas with a log of their own."""
        return {self.log_id, *(replica.log_id for replica in self.own)} - {PRISTINE}


class TopicImage(NamedTuple):
    """A topic with its partitions by their index."""

    name: str
    topic_id: bytes
    overrides: dict[str, str]
    partitions: list[PartitionImage]


class LogImage(NamedTuple):
    """A log, and the high watermark of its replica."""

    log: ReplicaLog
    high_watermark: int


class IdsImage(NamedTuple):
    """The state of the source of ids."""

    state: int
    producer_block: int


class ClusterImage(NamedTuple):
    """A cluster at `at_ms`, in ms since the epoch. Logs are by log id, from 1 on."""

    at_ms: int
    ids: IdsImage
    settings: SettingsImage
    topics: list[TopicImage]
    logs: dict[int, LogImage]
