"""Effects that falsify the versions of a broker or the metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from mockbroker.core.faults.effects.answers import error_code
from mockbroker.core.faults.effects.wire_values import check_int32s, check_text
from mockbroker.core.faults.partial import Selection, fresh, selected_partitions
from mockbroker.core.faults.rows import RowArray
from mockbroker.core.metadata.profiles import RELEASES, profile_of
from mockbroker.core.validation import Count, Range

NO_NODE = -1


class FalsifyApiVersions(msgspec.Struct, frozen=True, kw_only=True):
    """ApiVersions shows an older broker (`as`: "2.8", "3.9"), lacks APIs (`hide`), or has lower
    maxima (`max`: {"Fetch": 11}). The broker goes on to serve all of them.
    """

    as_: str | None = msgspec.field(default=None, name="as")
    hide: list[str | int] = []
    max: dict[str, Count] = {}

    def __post_init__(self) -> None:
        if not (self.as_ or self.hide or self.max):
            raise ValueError("give as, hide or max")
        if self.as_ is not None and ".".join(self.as_.split(".")[:2]) not in RELEASES:
            raise ValueError(f"{self.as_!r} is not a release from {RELEASES[0]} to {RELEASES[-1]}")


Port = Annotated[int, Range(1, 65535)]


class BrokerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A false address of a broker."""

    node: int
    host: str | None = None
    port: Port | None = None

    def __post_init__(self) -> None:
        check_text("host", self.host)


class FalsifyMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata is false about the topics and partitions in the match, or about all.

    `leader` and `leader_epoch` replace those of partitions (`stale_epochs` counts down from the
    true one), `address` moves a broker elsewhere, `hide_broker` leaves one out, `error` stands for
    partitions (LISTENER_NOT_FOUND, LEADER_NOT_AVAILABLE), `controller` names another one.
    """

    leader: int | None = None
    leader_epoch: int | None = None
    stale_epochs: Count | None = None
    address: BrokerAddress | None = None
    hide_broker: int | None = None
    error: str | int | None = None
    controller: int | None = None

    def __post_init__(self) -> None:
        if all(getattr(self, name) is None for name in self.__struct_fields__):
            raise ValueError("say what is false")
        if self.error is not None:
            error_code(self.error)
        check_int32s(leader=self.leader, leader_epoch=self.leader_epoch, controller=self.controller)


def api_versions(
    response: Any, effect: FalsifyApiVersions, hidden: Sequence[int], caps: Any
) -> Any:
    """A copy of an ApiVersions answer without the hidden keys, and with the caps by key."""
    changed = fresh(response)
    profile = profile_of(effect.as_) if effect.as_ is not None else None
    shown = []
    for api in changed.api_keys:
        if api.api_key in hidden:
            continue
        cap = caps.get(api.api_key, api.max_version)
        if profile is not None:
            cap = min(cap, profile.max_versions.get(api.api_key, -1))
        if cap < api.min_version:
            continue
        api.max_version = min(api.max_version, cap)
        shown.append(api)
    changed.api_keys = shown
    if profile is not None:
        features = profile.features
        changed.supported_features = [f for f in changed.supported_features if f.name in features]
        changed.finalized_features = [
            f for f in changed.finalized_features if profile.feature_level(f.name) > 0
        ]
    return changed


def metadata(
    response: Any, layout: Sequence[RowArray], selection: Selection, effect: FalsifyMetadata
) -> Any:
    """A copy of a Metadata answer with the false values."""
    changed = fresh(response)
    for _, partition in selected_partitions(changed, layout, selection):
        if effect.leader is not None:
            partition.leader_id = effect.leader
        if effect.leader_epoch is not None:
            partition.leader_epoch = effect.leader_epoch
        if effect.stale_epochs is not None:
            partition.leader_epoch = max(0, partition.leader_epoch - effect.stale_epochs)
        if effect.error is not None:
            partition.error_code = int(error_code(effect.error))
            partition.leader_id = NO_NODE
    if effect.controller is not None:
        changed.controller_id = effect.controller
    if effect.hide_broker is not None:
        changed.brokers = [b for b in changed.brokers if b.node_id != effect.hide_broker]
    if effect.address is not None:
        for broker in changed.brokers:
            if broker.node_id == effect.address.node:
                broker.host = effect.address.host or broker.host
                broker.port = effect.address.port or broker.port
    return changed
