"""Laws of streams groups at their coordinator."""

from __future__ import annotations

from typing import Any

from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.groups.streams.states import StreamsGroupState
from mockbroker.simulation import observe_shares
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.laws.base import Law
from mockbroker.simulation.script import Call

Task = tuple[str, int]  # subtopology id and partition


class TasksActiveOnce(Law):
    """An active task of a streams group is assigned to one member at most, also while it is being
    revoked. In a Stable group each task of the topology is active at one member, and each member
    has its target.
    """

    name = "tasks are active once"

    def on_response(
        self, client: SimulatedClient, call: Call, response: Any, *, late: bool
    ) -> None:
        """A broker has answered a heartbeat."""
        del client
        group_id = call.request.group_id
        if late or response.error_code or group_id in self.laws.disrupted_groups:
            return
        group = observe_shares.streams_group(self.laws.cluster, call.node_id, group_id)
        if group is None:
            return
        owners = self._owners(group)
        if group.state is StreamsGroupState.STABLE:
            self._judge_stable(group, owners)

    def _owners(self, group: StreamsGroup) -> dict[Task, str]:
        owners: dict[Task, str] = {}
        for member in group.members.values():
            for owned in (member.assigned, member.revoking):
                for subtopology, partitions in owned.active.items():
                    for partition in partitions:
                        task = subtopology, partition
                        other = owners.setdefault(task, member.member_id)
                        if other != member.member_id:
                            self.broken(
                                f"group {group.group_id}: task {subtopology}_{partition} is active "
                                f"at {other} and at {member.member_id}"
                            )
        return owners

    def _judge_stable(self, group: StreamsGroup, owners: dict[Task, str]) -> None:
        for member_id, target in group.targets.items():
            for subtopology, partitions in target.active.items():
                for partition in partitions:
                    owner = owners.get((subtopology, partition))
                    if owner != member_id:
                        self.broken(
                            f"group {group.group_id} is Stable, and task "
                            f"{subtopology}_{partition} of {member_id} is active at {owner}"
                        )
        configured = group.configured
        if configured is None or not configured.is_ready or configured.subtopologies is None:
            return
        for subtopology, each in configured.subtopologies.items():
            for partition in range(each.tasks):
                if (subtopology, partition) not in owners:
                    self.broken(
                        f"group {group.group_id} is Stable, and task {subtopology}_{partition} is "
                        "active nowhere"
                    )
