"""The services that all parts of a broker use."""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.core.configs.values import ClusterConfigs
from mockbroker.core.metadata.features import Features
from mockbroker.core.metadata.metadata_cache import MetadataCache
from mockbroker.core.metadata.profiles import Profile
from mockbroker.core.replication.network import Network
from mockbroker.core.runtime import Runtime
from mockbroker.core.timing.domain_timers import ClockDomains


class Services(NamedTuple):
    """The process, the configs, the metadata and the network of one cluster.

    `withheld_markers` are the transactional ids whose markers no coordinator sends.
    """

    runtime: Runtime
    profile: Profile
    features: Features
    configs: ClusterConfigs
    clock_domains: ClockDomains
    metadata: MetadataCache
    network: Network
    withheld_markers: set[str]
