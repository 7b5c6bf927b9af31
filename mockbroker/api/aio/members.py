"""Brokers, groups and transactional ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from mockbroker.api.aio.actions import (
    AsyncBrokerActions,
    AsyncGroupActions,
    AsyncTransactionActions,
)
from mockbroker.api.transport import AsyncTransport
from mockbroker.core.errors import ActionError
from mockbroker.core.type_checks import check_type
from mockbroker.core.validation import nearest
from mockbroker.core.views.brokers import BrokerView
from mockbroker.core.views.coordinators import CoordinatorView
from mockbroker.core.views.groups import GroupView, LagView, MemberView
from mockbroker.core.views.share import SharePartitionView
from mockbroker.core.views.streams import StreamsTaskView
from mockbroker.core.views.transactions import TransactionView

if TYPE_CHECKING:
    from mockbroker.pipeline.past.group_history import GroupHistoryView

# In real time.
STABLE_TIMEOUT_S = 30.0

GROUP = "/v1/groups/{group}"


class AsyncBroker(AsyncBrokerActions):
    """A broker. Made by `kafka.broker(NODE_ID)`."""

    def __init__(self, transport: AsyncTransport, node_id: int) -> None:
        check_type(node_id, int, "node_id")
        super().__init__(transport)
        self.node_id = node_id

    def __repr__(self) -> str:
        return f"<broker {self.node_id}>"

    async def view(self) -> BrokerView:
        """The present state of the broker. Raises ActionError if there is no such broker."""
        brokers: list[BrokerView] = await self._ask("GET", "/v1/brokers")
        for each in brokers:
            if each.node_id == self.node_id:
                return each
        known = ", ".join(str(each.node_id) for each in brokers)
        raise ActionError(f"there is no broker {self.node_id}; there are: {known}")

    @property
    async def state(self) -> str:
        """`running`, `paused` or `stopped`."""
        return (await self.view()).state

    @property
    async def is_fenced(self) -> bool:
        """Whether the controller has fenced it."""
        return (await self.view()).fenced

    async def kill(self, *, power_loss: bool = False) -> None:
        """Kill its process, without moving its leaders. With `power_loss` unflushed records are
        lost too.
        """
        await self.stop(how="power_loss" if power_loss else "unclean")


class AsyncGroup(AsyncGroupActions):
    """A group, which need not exist yet. Made by `kafka.group(ID)`."""

    def __init__(self, transport: AsyncTransport, group_id: str) -> None:
        check_type(group_id, str, "group_id")
        super().__init__(transport)
        self.group_id = group_id

    def __repr__(self) -> str:
        return f"<group {self.group_id}>"

    async def view(self) -> GroupView:
        """The present state of the group. Raises ActionError if there is no such group."""
        groups: list[GroupView] = await self._ask("GET", "/v1/groups")
        for each in groups:
            if each.group == self.group_id:
                return each
        hint = nearest(self.group_id, [each.group for each in groups])
        raise ActionError(f"there is no group {self.group_id!r}{hint}")

    @property
    async def state(self) -> str:
        """Its state by Kafka's name, such as `Stable`."""
        return (await self.view()).state

    @property
    async def members(self) -> list[MemberView]:
        """Its present members."""
        return (await self.view()).members

    @property
    async def offsets(self) -> dict[tuple[str, int], int]:
        """The committed offsets by topic and partition."""
        return {
            (each.topic, each.partition): each.committed
            for each in await self.lags()
            if each.kind == "committed"
        }

    async def history(self, points: int = 300) -> GroupHistoryView:
        """Its states, assignments, commits and lag over time, from the journal.

        The lag in a partition has at most so many points.
        """
        found: GroupHistoryView = await self._ask(
            "GET",
            "/v1/journal/groups/{group}",
            at={"group": self.group_id},
            query={"points": points},
        )
        return found

    async def lags(self) -> list[LagView]:
        """Its lag, by partition."""
        found: list[LagView] = await self._ask("GET", "/v1/lag", query={"group": self.group_id})
        return found

    async def share_partitions(self) -> list[SharePartitionView]:
        """The partitions that it reads as a share group, with their records in flight."""
        found: list[SharePartitionView] = await self._ask(
            "GET", "/v1/share-partitions", query={"group": self.group_id}
        )
        return found

    async def tasks(self) -> list[StreamsTaskView]:
        """The tasks that it has as a streams group."""
        found: list[StreamsTaskView] = await self._ask(
            "GET", "/v1/streams-tasks", query={"group": self.group_id}
        )
        return found

    async def lag(self) -> int:
        """Its lag in records, over all partitions with a committed offset."""
        return sum(max(each.lag, 0) for each in await self.lags())

    async def set_offsets(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets by topic and partition, without a member.

        Raises ApiError: UNKNOWN_MEMBER_ID while the group has members.
        """
        check_type(offsets, Mapping[tuple[str, int], int], "offsets")
        rows = [
            {"topic": topic, "partition": partition, "offset": offset}
            for (topic, partition), offset in offsets.items()
        ]
        await self._ask("POST", f"{GROUP}/offsets", at=self._at, body={"offsets": rows})

    async def reset_offsets(
        self,
        topic: str,
        to: Literal["earliest", "latest"] | int | None = None,
        *,
        at_ms: int | None = None,
        partitions: Sequence[int] | None = None,
    ) -> None:
        """Commit an offset for the partitions of a topic: the earliest or latest, a number, or that
        of the first record at or after `at_ms` (ms since the epoch). Raises ApiError as
        `set_offsets`.
        """
        body: dict[str, object] = {"topic": topic}
        given = {"to": to, "at_ms": at_ms, "partitions": partitions and list(partitions)}
        body |= {name: value for name, value in given.items() if value is not None}
        await self._ask("POST", f"{GROUP}/offsets/reset", at=self._at, body=body)

    async def delete_offsets(self, topic: str, partition: int | None = None) -> None:
        """Delete the committed offsets of a topic, or of one partition, to which no member
        subscribes. Raises ApiError.
        """
        query = {"topic": topic, "partition": partition}
        await self._ask("DELETE", f"{GROUP}/offsets", at=self._at, query=query)

    async def delete(self) -> None:
        """Delete it with its offsets. Raises ApiError while it has members."""
        await self._ask("DELETE", GROUP, at=self._at)

    async def coordinator(self) -> CoordinatorView:
        """Its coordinator, and its partition of `__consumer_offsets`."""
        found: CoordinatorView = await self._ask(
            "GET", "/v1/coordinator", query={"group": self.group_id}
        )
        return found

    async def wait_for(
        self, state: str, *, members: int | None = None, timeout_s: float = STABLE_TIMEOUT_S
    ) -> GroupView:
        """Wait until it is in `state` and, if given, has this number of members.

        Raises TimeoutError, with its present state, after `timeout_s` of real time.
        """
        body: dict[str, object] = {
            "group": self.group_id,
            "state": state,
            "timeout_ms": round(timeout_s * 1000),
        }
        if members is not None:
            body["members"] = members
        found: GroupView = await self._ask("POST", "/v1/groups/wait", body=body, wait_s=timeout_s)
        return found

    async def wait_stable(
        self, members: int | None = None, *, timeout_s: float = STABLE_TIMEOUT_S
    ) -> GroupView:
        """Wait until it is stable, as `wait_for`."""
        return await self.wait_for("Stable", members=members, timeout_s=timeout_s)

    @property
    def _at(self) -> dict[str, object]:
        return {"group": self.group_id}


class AsyncTransaction(AsyncTransactionActions):
    """A transactional id. Made by `kafka.transaction(ID)`."""

    def __init__(self, transport: AsyncTransport, transactional_id: str) -> None:
        check_type(transactional_id, str, "transactional_id")
        super().__init__(transport)
        self.transactional_id = transactional_id

    def __repr__(self) -> str:
        return f"<transactional id {self.transactional_id}>"

    async def view(self) -> TransactionView:
        """The coordinator's state of the id. Raises ActionError if there is no such id."""
        found: list[TransactionView] = await self._ask("GET", "/v1/transactions")
        for each in found:
            if each.transactional_id == self.transactional_id:
                return each
        hint = nearest(self.transactional_id, [e.transactional_id for e in found])
        raise ActionError(f"there is no transactional id {self.transactional_id!r}{hint}")

    @property
    async def state(self) -> str:
        """Its state by Kafka's name, such as `Ongoing`."""
        return (await self.view()).state

    async def coordinator(self) -> CoordinatorView:
        """Its coordinator, and its partition of `__transaction_state`."""
        found: CoordinatorView = await self._ask(
            "GET", "/v1/coordinator", query={"transactional_id": self.transactional_id}
        )
        return found
