"""The state machines of one cluster, put together on one runtime and one image.

`topics`, `topics_by_id` and `brokers` are those of the newest metadata image, which the controller
changes. A broker that cannot hear the controller has an older one (see `image`); what a broker
tells its clients comes from its own.

Nothing that is put together here imports this module. Actions, rules and snapshots work on the
whole; `cluster` has them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mockbroker.core.brokers.broker import Broker, BrokerSpec
from mockbroker.core.brokers.controller import Controller
from mockbroker.core.configs.values import ClusterConfigs, static_configs
from mockbroker.core.groups.member_connections import MemberConnections
from mockbroker.core.ids import uuid_text
from mockbroker.core.log.manager import LogManager
from mockbroker.core.metadata.features import Features
from mockbroker.core.metadata.image import Image
from mockbroker.core.metadata.metadata_cache import MetadataCache
from mockbroker.core.metadata.metadata_publisher import MetadataPublisher
from mockbroker.core.metadata.profiles import profile_of
from mockbroker.core.metadata.topic import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    Topic,
)
from mockbroker.core.quotas.client_quotas import ClientQuotas
from mockbroker.core.replication.elections import alter_partition
from mockbroker.core.replication.network import Network
from mockbroker.core.replication.partition import NO_LEADER, Partition
from mockbroker.core.replication.replica_manager import ReplicaManager
from mockbroker.core.replication.replication_control import ReplicationControl
from mockbroker.core.replication.states import StateLog
from mockbroker.core.replication.topic_control import TopicControl
from mockbroker.core.runtime import Runtime
from mockbroker.core.security.acls import AclStore
from mockbroker.core.security.authorizer import configured
from mockbroker.core.security.delegation_tokens import DelegationTokens
from mockbroker.core.services import Services
from mockbroker.core.telemetry.telemetry import Telemetry
from mockbroker.core.timing.domain_timers import ClockDomains

if TYPE_CHECKING:
    from mockbroker.core.security.sasl.scram_credential import ScramCredential

DEFAULT_BROKERS = tuple(BrokerSpec(node_id) for node_id in (1, 2, 3))


class ClientLinks(Protocol):
    """The ways from clients to brokers, which an action can cut."""

    def cut(
        self, nodes: int | list[int], clients: Mapping[str, object], *, both_ways: bool
    ) -> None:
        """Let nothing through from `clients`, as a rule's `match` names them, to the brokers; with
        `both_ways` nor back.
        """
        ...

    def heal(self) -> None:
        """Let everything through again."""
        ...


class ChangeRecorder(Protocol):
    """Whoever writes down what changes in the cluster, for a snapshot on disk."""

    def partition_changed(self, partition: Partition) -> None:
        """The metadata, the log, a watermark or a replica of the partition changed."""
        ...

    def topic_changed(self, topic: Topic) -> None:
        """The topic, its configs, a leader or an ISR changed."""
        ...

    def begin_anew(self) -> None:
        """What was written down before does not count any more."""
        ...


class ClusterState:
    """One Kafka cluster. Its state machines are pure: time, ids and randomness come from `runtime`.

    `now_ms` gives the cluster's time in ms since the epoch; equal seeds and equal requests give
    equal ids (see `Runtime`). Raises ConfigError when `configs` (static broker configs, as text)
    do not fit.
    """

    def __init__(
        self,
        brokers: Sequence[BrokerSpec] = DEFAULT_BROKERS,
        configs: Mapping[str, str] | None = None,
        seed: int | None = None,
        now_ms: Callable[[], int] = lambda: 0,
        kafka_version: str = "4.3",
    ) -> None:
        self.profile = profile_of(kafka_version)
        self.features = Features(self.profile.features)
        self.runtime = Runtime(now_ms, seed)
        self.clock_domains = ClockDomains(self.runtime.timers, self.runtime.now_ms)
        self.member_connections = MemberConnections()
        self.cluster_id = uuid_text(self.runtime.ids.uuid())
        self.configs = ClusterConfigs(static_configs(configs or {}, len(brokers)))
        # The typed value of a broker config; its type is that of the config's definition.
        self.config: Callable[[str], Any] = self.configs.get
        self.config_int = self.configs.get_int
        if self.profile.feature_level("eligible.leader.replicas.version") > 0:
            # With KIP-966 the controller writes this one down, to see the same value on every
            # broker.
            min_isr = str(self.configs.get("min.insync.replicas"))
            self.configs.dynamic_default["min.insync.replicas"] = min_isr
        # Every broker's process, and those of them that are registered with the controller.
        self.processes: dict[int, Broker] = {}
        self.brokers: dict[int, Broker] = {}
        self.image = Image({}, self.brokers, NO_LEADER)
        self.topics = self.image.topics
        self.topics_by_id = self.image.topics_by_id
        self.metadata = MetadataCache(self.image, self.processes)
        # Called with the topic after it was created, after it was dropped, or after its configs
        # changed.
        self.on_topic_created = self.metadata.on_topic_created
        self.on_topic_deleted = self.metadata.on_topic_deleted
        self.on_configs_changed = self.metadata.on_configs_changed
        self.services = Services(
            self.runtime,
            self.profile,
            self.features,
            self.configs,
            self.clock_domains,
            self.metadata,
            Network(self.runtime.timers, self.runtime.now_ms, self.processes),
            withheld_markers=set(),
        )
        self.log_manager = LogManager(self.services)
        self.replication = ReplicaManager(self.services, self.log_manager)
        self.replication_control = ReplicationControl(self.services, self.replication)
        self.replication.on_alter_partition = partial(alter_partition, self.replication_control)
        self.reassignments = self.replication_control.reassignments
        self.publisher = MetadataPublisher(
            self.metadata, self.processes, self.replication, self.leader_changed
        )
        self.controller = Controller(
            self.services, self.replication_control, self.publisher, self.processes, self.brokers
        )
        self.replication_control.on_leader_elected.append(self.leader_changed)
        for spec in sorted(brokers):
            broker = self.new_broker(spec, self.controller.next_broker_epoch())
            self.processes[spec.node_id] = self.brokers[spec.node_id] = broker
        self.image.controller_id = next(iter(self.brokers))
        self.quotas = ClientQuotas(self.config_int)
        self.telemetry = Telemetry(self.runtime, self.configs)
        self.acls = AclStore()
        # None, as without `authorizer.class.name`, lets everyone do everything.
        self.authorizer = configured(self.configs.static, self.acls)
        self.delegation_tokens = DelegationTokens(self.runtime, self.configs)
        # SCRAM credentials: user -> mechanism code -> credential.
        self.scram_credentials: dict[str, dict[int, ScramCredential]] = {}
        # Called with a broker whose process starts, stops, is paused, resumed or removed.
        self.on_broker_state = self.controller.on_broker_state
        self.on_broker_state.append(self.services.network.broker_changed)
        self.on_broker_state.append(self.quotas.broker_changed)
        self.states = StateLog(self.replication_control)
        self.runtime.after_event.append(self.states.follow)
        self.topic_control = TopicControl(
            self.replication_control, self.states, self.publisher.topic_deleted
        )
        self.create_topic = self.topic_control.create
        self.delete_topic = self.topic_control.delete
        self.ensure_internal_topic = self.topic_control.ensure_internal
        self.find_coordinator_partition = self.topic_control.coordinator_partition
        # Who writes down what changes, if anybody does.
        self.recorder: ChangeRecorder | None = None

    # -- reading -----------------------------------------------------------------------------------

    def partition(self, topic: str, index: int) -> Partition | None:
        """The partition in the newest image, or None when the topic or the index is unknown."""
        return self.image.partition(topic, index)

    def serves(self, api_key: int, api_version: int) -> bool:
        """Whether the release this cluster plays knows this version of the API."""
        return api_version <= self.profile.max_versions.get(api_key, -1)

    @property
    def controller_id(self) -> int:
        """The broker that is the active controller, or -1 while none is alive.

        Clients are told to send controller requests there, though any live broker would do: each
        forwards what is for the controller (KIP-590).
        """
        return self.image.controller_id

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are kept (KIP-966)."""
        return self.replication_control.elr_enabled

    # -- brokers -----------------------------------------------------------------------------------

    def new_broker(self, spec: BrokerSpec, epoch: int) -> Broker:
        """A broker for this cluster, which the controller has not registered yet."""
        return Broker(spec, epoch, self.services, self.processes)

    @property
    def client_links(self) -> ClientLinks:
        """The ways from clients to brokers; the subclass that has rules has them."""
        raise NotImplementedError

    # -- changing ----------------------------------------------------------------------------------

    def configs_changed(self) -> None:
        """Call after an edit of the brokers' configs: topics take their defaults anew."""
        self.configs.changed()
        for topic in self.topics.values():
            topic.configs.resolve()
            self._topic_configs_changed(topic)
        self.metadata.changed()

    def replace_topic_configs(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        """Give `topic` this set of overrides, already checked."""
        topic.configs.replace(overrides)
        self._topic_configs_changed(topic)
        self.metadata.changed(topic)

    def _topic_configs_changed(self, topic: Topic) -> None:
        for observer in self.on_configs_changed:
            observer(topic)

    def record_with(self, recorder: ChangeRecorder) -> None:
        """From now on `recorder` writes down what changes, and no other."""
        self.recorder = self.metadata.recorder = self.replication.recorder = recorder

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id, or None where there is none."""
        topic = self.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def leader_changed(self, partition: Partition) -> None:
        """A partition has another leader or epoch: coordinators on it move."""
        leader = self.processes.get(partition.leader_id)
        if (
            leader is None
            or not partition.topic.is_internal
            or not self.metadata.is_led_here(partition)
        ):
            return
        if partition.topic.name == TRANSACTION_STATE_TOPIC:
            leader.transactions.on_leadership_change(partition)
        elif partition.topic.name == GROUP_METADATA_TOPIC:
            leader.groups.on_leadership_change(partition)

    def spare_connected_members(self, by_ms: int) -> None:
        """Before the clock is moved on: clients that are there would have sent heartbeats."""
        self.member_connections.forget_the_gone()
        for broker in self.brokers.values():
            if broker.has_groups:
                broker.groups.spare_connected(self.member_connections, by_ms)
