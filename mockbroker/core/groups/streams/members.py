"""A member of a streams group: one stream thread. Members are immutable.

Source: StreamsGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mockbroker.core.groups.streams.states import MemberState
from mockbroker.core.groups.streams.tasks import NOTHING_OWNED, OwnedTasks

NO_TOPOLOGY = -1


class Endpoint(msgspec.Struct, frozen=True):
    """The address of a process for interactive queries (`application.server`)."""

    host: str
    port: int


class StreamsMember(msgspec.Struct, frozen=True, kw_only=True):
    """One member. `assigned` are its tasks, `revoking` those pending revocation.

    A new member has epoch 0. Kafka 4.3 has no static members: `instance_id` comes only from the
    log of a later release.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = NO_TOPOLOGY
    process_id: str = ""
    endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = msgspec.field(default_factory=dict)
    assigned: OwnedTasks = NOTHING_OWNED
    revoking: OwnedTasks = NOTHING_OWNED

    def is_reconciled(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def assignment_epoch_of(self, subtopology: str, partition: int) -> int | None:
        """The epoch at which an active task was assigned; None if the member does not own it."""
        for owned in (self.assigned, self.revoking):
            epoch = owned.active.get(subtopology, {}).get(partition)
            if epoch is not None:
                return epoch
        return None
