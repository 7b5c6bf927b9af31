"""Lost and late hops between brokers, drawn from a plan's seed.

Markers and verifications of transactions, and requests to share coordinators, are sometimes late,
so that others overtake them; each kind has its own connection. Requests to share coordinators and
those of replication are lost while a plan has `lose_messages`.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

from mockbroker_protocol import ApiKey

if TYPE_CHECKING:
    from mockbroker.core.replication.network import Hop, Network
    from mockbroker.core.replication.partition import Partition

LATE_SHARE = 0.05
LATE_MS = (1_000, 12_000)
LOST_SHARE = 0.3  # of those markers that would be late
_TRANSACTIONAL = frozenset((ApiKey.WRITE_TXN_MARKERS, ApiKey.ADD_PARTITIONS_TO_TXN))
_REPLICATION = frozenset((ApiKey.FETCH, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.ALTER_PARTITION))
_SHARE_STATE = frozenset(
    (
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    )
)
_ALWAYS = _TRANSACTIONAL | _SHARE_STATE
_LOSABLE = _REPLICATION | _SHARE_STATE


class Disturbance:
    """An interceptor of hops (see `network.Interceptor`) that does not decode requests."""

    def __init__(self, network: Network, rng: random.Random) -> None:
        self._network = network
        self._rng = rng
        self._lost_rng = rng
        self._one_in = 0

    def lose(self, one_in: int, rng: random.Random) -> None:
        """Lose one request of replication or share state in `one_in` from now on; 0 loses none."""
        self._one_in, self._lost_rng = one_in, rng

    def intercepts(
        self,
        api: ApiKey,
        sender: int,  # noqa: ARG002
        receiver: int,  # noqa: ARG002
        partition: Partition | None = None,  # noqa: ARG002
    ) -> bool:
        """Whether a hop may be disturbed now."""
        return api in _ALWAYS or (self._one_in > 0 and api in _REPLICATION)

    def on_send(self, hop: Hop) -> None:
        """Send a hop, delay it, or lose it."""
        late_ms = 0
        if hop.API is ApiKey.WRITE_TXN_MARKERS:
            drawn = self._late_or_lost()
            if drawn is None:
                hop.lost()
                return
            late_ms = drawn
        elif self._is_lost(hop):
            hop.lost()
            return
        elif hop.API in _SHARE_STATE:
            late_ms = self._lateness_ms()
        hop.intercepted = _DisturbedHop(self, hop)
        self._network.carry_request(hop, hop.handle_request, hop.disconnected, late_ms)

    def answered(self, hop: Hop, answer: Any, late_ms: int) -> None:
        """Send an answer, delay it, or lose it."""
        if hop.API in _TRANSACTIONAL:
            drawn = self._late_or_lost()
            if drawn is None and hop.API is ApiKey.WRITE_TXN_MARKERS:
                hop.lost()
                return
            late_ms += drawn or 0
        elif self._is_lost(hop):
            hop.lost()
            return
        elif hop.API in _SHARE_STATE:
            late_ms += self._lateness_ms()
        self._network.carry_answer(hop, partial(hop.handle_answer, answer), hop.lost, late_ms)

    def _late_or_lost(self) -> int | None:
        """The delay of a transactional hop in ms; None if it is lost."""
        if self._rng.random() >= LATE_SHARE:
            return 0
        if self._rng.random() < LOST_SHARE:
            return None
        return self._rng.randint(*LATE_MS)

    def _lateness_ms(self) -> int:
        """The delay of a hop that is not lost, in ms."""
        return self._rng.randint(*LATE_MS) if self._rng.random() < LATE_SHARE else 0

    def _is_lost(self, hop: Hop) -> bool:
        return (
            self._one_in > 0 and hop.API in _LOSABLE and self._lost_rng.randrange(self._one_in) == 0
        )


class _DisturbedHop:
    """Passes the answer of a hop to the disturbance."""

    __slots__ = ("_disturbance", "_hop")

    def __init__(self, disturbance: Disturbance, hop: Hop) -> None:
        self._disturbance = disturbance
        self._hop = hop

    def answered(self, answer: Any, late_ms: int) -> None:
        """Handle the receiver's answer."""
        self._disturbance.answered(self._hop, answer, late_ms)
