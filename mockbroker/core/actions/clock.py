"""The action on the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.validation import Ms

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState


class SetClock(msgspec.Struct, frozen=True, kw_only=True):
    """`freeze` the clock, or unfreeze it with false; set its `rate`; or `advance` it."""

    freeze: bool | None = None
    rate: float | None = None
    advance_ms: Ms | None = msgspec.field(default=None, name="advance")

    def __post_init__(self) -> None:
        if (self.freeze is None) is (self.rate is None) and self.advance_ms is None:
            raise ValueError("give freeze or rate, or advance")


class ClockActions:
    """The action on the clock."""

    @action(SetClock)
    @staticmethod
    def set_clock(cluster: ClusterState, wanted: SetClock) -> None:
        """Freeze the cluster's clock, change its rate, or advance it."""
        control = cluster.runtime.clock_control
        if control is None:
            raise ActionError("this cluster has no clock that could be steered")
        rate = wanted.rate if wanted.freeze is None else 1.0 - wanted.freeze
        if rate is not None:
            control.set_rate(rate)
        if wanted.advance_ms is not None:
            control.advance(wanted.advance_ms)
