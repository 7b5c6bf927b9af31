"""The services that all parts of a broker use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mockbroker.core.configs.values import ClusterConfigs
from mockbroker.core.groups.member_connections import MemberConnections
from mockbroker.core.limits import FETCH_SESSION_PARTITIONS_MAX, REQUEST_ELEMENTS_MAX, SessionRoom
from mockbroker.core.metadata.features import Features
from mockbroker.core.metadata.metadata_cache import MetadataCache
from mockbroker.core.metadata.profiles import Profile
from mockbroker.core.metadata.topic import Topic
from mockbroker.core.replication.network import Network
from mockbroker.core.runtime import Runtime
from mockbroker.core.timing.domain_timers import ClockDomains


class Services(NamedTuple):
    """The process, the configs, the metadata and the network of one cluster.

    `withheld_markers` are the transactional ids whose markers no coordinator sends.
    `member_connections` are the connections of all groups' members.
    `ensure_internal_topic` returns the internal topic of a name; the controller creates it on first
    use. It raises ApiError as for CreateTopics.
    """

    runtime: Runtime
    profile: Profile
    features: Features
    configs: ClusterConfigs
    clock_domains: ClockDomains
    metadata: MetadataCache
    network: Network
    withheld_markers: set[str]
    member_connections: MemberConnections
    ensure_internal_topic: Callable[[str], Topic]

    def session_room(self) -> SessionRoom:
        """The room for the partitions of a broker's fetch sessions, or share sessions."""
        return SessionRoom(
            self.configs.get_int(FETCH_SESSION_PARTITIONS_MAX),
            self.configs.get_int(REQUEST_ELEMENTS_MAX),
            self.runtime.limits_exceeded,
        )
