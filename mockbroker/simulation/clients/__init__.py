"""The clients of a simulation: producers, consumers and administrators, written as scripts."""

from __future__ import annotations

from collections.abc import Sequence

from mockbroker.simulation.clients.admin import Admin
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.clients.classic import ClassicMember
from mockbroker.simulation.clients.consumer import ConsumerMember
from mockbroker.simulation.clients.drainer import ShareDrainer
from mockbroker.simulation.clients.producer import Producer
from mockbroker.simulation.clients.reader import Reader
from mockbroker.simulation.clients.share import ShareMember
from mockbroker.simulation.clients.streams import StreamsMember
from mockbroker.simulation.clients.transactional import TransactionalProducer
from mockbroker.simulation.history import History
from mockbroker.simulation.plan import ClientSettings

_KINDS: dict[str, type[SimulatedClient]] = {
    "producer": Producer,
    "transactional": TransactionalProducer,
    "classic": ClassicMember,
    "consumer": ConsumerMember,
    "share": ShareMember,
    "drainer": ShareDrainer,
    "streams": StreamsMember,
    "reader": Reader,
    "admin": Admin,
}


def client_of(
    settings: ClientSettings, cluster_release: str, nodes: Sequence[int], history: History
) -> SimulatedClient:
    """The client that these settings describe; `nodes` are the brokers it knows at first."""
    return _KINDS[settings.kind](settings, cluster_release, nodes, history)
