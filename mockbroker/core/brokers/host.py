"""A broker, as the coordinators and other parts that it hosts see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mockbroker.core.metadata.image import MetadataImage
    from mockbroker.core.services import Services


class HostBroker(Protocol):
    """The broker of a part; `state` is that of its process (see `broker_life`)."""

    @property
    def node_id(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def image(self) -> MetadataImage: ...
    @property
    def services(self) -> Services: ...
