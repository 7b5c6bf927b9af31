"""A cluster. Its handles are imported at their first use, for a fast start."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mockbroker.api.aio.actions import AsyncClusterActions
from mockbroker.api.aio.handle import ACTION_WAIT_S
from mockbroker.api.snapshot import Snapshot

if TYPE_CHECKING:
    from mockbroker.admin.v1.cluster import ConnectionView
    from mockbroker.api.aio.builders import AsyncFaults
    from mockbroker.api.aio.clock import AsyncClock
    from mockbroker.api.aio.journal import AsyncJournal
    from mockbroker.api.aio.members import AsyncBroker, AsyncGroup, AsyncTransaction
    from mockbroker.api.aio.topics import AsyncPartition, AsyncTopic
    from mockbroker.api.audit import Audit
    from mockbroker.api.expected import Expected
    from mockbroker.core.snapshot.restore import Producers
    from mockbroker.core.views.brokers import BrokerView
    from mockbroker.core.views.browse import PartitionPage, Trouble
    from mockbroker.core.views.configs import OwnConfigsView
    from mockbroker.core.views.groups import GroupLagView, GroupView, LagView
    from mockbroker.core.views.network import NetworkView
    from mockbroker.core.views.share import SharePartitionView
    from mockbroker.core.views.stored import StoredRecord
    from mockbroker.core.views.streams import StreamsTaskView
    from mockbroker.core.views.telemetry import TelemetryView
    from mockbroker.core.views.topics import PartitionView, StoredProducerView, TopicView
    from mockbroker.core.views.transactions import OpenTransactionView, TransactionView

# The limit of `expect_records`, in real time.
EXPECT_TIMEOUT_S = 30.0
# The limit of `settle`, in real time.
SETTLE_TIMEOUT_S = 30.0

_numbers = itertools.count(1)


class AsyncCluster(AsyncClusterActions):
    """A cluster, for code that awaits: in the caller's trio run, in a thread, or elsewhere."""

    # -- for clients -------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """`HOST:PORT,…` of every broker, for clients."""
        return self._transport.bootstrap(None)

    def bootstrap(self, listener: str) -> str:
        """`HOST:PORT,…` of every broker on one of several listeners."""
        return self._transport.bootstrap(listener)

    def endpoint(self, node_id: int, listener: str | None = None) -> tuple[str, int]:
        """(host, port) of one broker, on its first listener or the given one."""
        return self._transport.endpoint(node_id, listener)

    # -- handles -----------------------------------------------------------------------------------

    def topic(self, name: str) -> AsyncTopic:
        """A topic, which need not exist yet."""
        from mockbroker.api.aio.topics import AsyncTopic

        return AsyncTopic(self._transport, name)

    def partition(self, topic: str, index: int) -> AsyncPartition:
        """A partition."""
        from mockbroker.api.aio.topics import AsyncPartition

        return AsyncPartition(self._transport, topic, index)

    def broker(self, node_id: int) -> AsyncBroker:
        """A broker."""
        from mockbroker.api.aio.members import AsyncBroker

        return AsyncBroker(self._transport, node_id)

    def group(self, group_id: str) -> AsyncGroup:
        """A group, which need not exist yet."""
        from mockbroker.api.aio.members import AsyncGroup

        return AsyncGroup(self._transport, group_id)

    def transaction(self, transactional_id: str) -> AsyncTransaction:
        """A transactional id, which need not exist yet."""
        from mockbroker.api.aio.members import AsyncTransaction

        return AsyncTransaction(self._transport, transactional_id)

    @property
    def clock(self) -> AsyncClock:
        """The cluster's clock: freeze it, change its rate, advance it."""
        from mockbroker.api.aio.clock import AsyncClock

        return AsyncClock(self._transport)

    @property
    def faults(self) -> AsyncFaults:
        """The rules of this cluster: add, wait for, explain and clear them."""
        from mockbroker.api.aio.builders import AsyncFaults

        return AsyncFaults(self._transport)

    @property
    def journal(self) -> AsyncJournal:
        """The journal: search it, wait for events, assert events."""
        from mockbroker.api.aio.journal import AsyncJournal

        return AsyncJournal(self._transport)

    # -- views -------------------------------------------------------------------------------------

    async def brokers(self) -> list[BrokerView]:
        """The brokers, by id."""
        found: list[BrokerView] = await self._ask("GET", "/v1/brokers")
        return found

    async def network(self) -> NetworkView:
        """The links between brokers, and the clients that are cut off."""
        found: NetworkView = await self._ask("GET", "/v1/network")
        return found

    async def configs(self) -> list[OwnConfigsView]:
        """The configs that brokers, groups and client metrics subscriptions have of their own. A
        topic has its own ones in its view.
        """
        found: list[OwnConfigsView] = await self._ask("GET", "/v1/configs")
        return found

    async def topics(self) -> list[TopicView]:
        """The topics, internal ones included, by name."""
        found: list[TopicView] = await self._ask("GET", "/v1/topics")
        return found

    async def partitions(self, topic: str | None = None) -> list[PartitionView]:
        """All partitions, or those of a topic. Raises ApiError if there is no such topic."""
        query = {"topic": topic}
        found: list[PartitionView] = await self._ask("GET", "/v1/partitions", query=query)
        return found

    async def find_partitions(
        self, topic: str = "", *, broker: int | None = None, only: Trouble = "any"
    ) -> list[PartitionView]:
        """Partitions of topics with `topic` in their name, with a replica on `broker`, and `only`
        those with a trouble: "under_replicated", "offline", "not_preferred", or "transaction", if
        the last stable offset is below the high watermark.
        """
        found: list[PartitionView] = []
        while True:
            query = {"topic": topic, "broker": broker, "only": only, "offset": len(found)}
            page: PartitionPage = await self._ask("GET", "/v1/partitions/page", query=query)
            found += page.partitions
            if len(found) >= page.total or not page.partitions:
                return found

    async def producers(self, topic: str | None = None) -> list[StoredProducerView]:
        """Producers with the partitions that have their state. Raises ApiError as `partitions`."""
        query = {"topic": topic}
        found: list[StoredProducerView] = await self._ask("GET", "/v1/producers", query=query)
        return found

    async def groups(self) -> list[GroupView]:
        """The groups and their members."""
        found: list[GroupView] = await self._ask("GET", "/v1/groups")
        return found

    async def share_partitions(self, group_id: str | None = None) -> list[SharePartitionView]:
        """The share partitions of all share groups, or of one (KIP-932)."""
        query = {"group": group_id}
        found: list[SharePartitionView] = await self._ask(
            "GET", "/v1/share-partitions", query=query
        )
        return found

    async def streams_tasks(self, group_id: str | None = None) -> list[StreamsTaskView]:
        """The tasks of all streams groups, or of one (KIP-1071)."""
        query = {"group": group_id}
        found: list[StreamsTaskView] = await self._ask("GET", "/v1/streams-tasks", query=query)
        return found

    async def telemetry(self) -> list[TelemetryView]:
        """Metrics that clients pushed (KIP-714), the oldest first."""
        found: list[TelemetryView] = await self._ask("GET", "/v1/telemetry")
        return found

    async def lags(self) -> list[LagView]:
        """The lag of all groups, by partition."""
        found: list[LagView] = await self._ask("GET", "/v1/lag")
        return found

    async def group_lags(self) -> list[GroupLagView]:
        """The lag of each group, summed over its partitions."""
        found: list[GroupLagView] = await self._ask("GET", "/v1/lag/groups")
        return found

    async def lag(self, group_id: str) -> int:
        """The lag of a group in records, as `group(ID).lag()`."""
        return await self.group(group_id).lag()

    async def transactions(self) -> list[TransactionView]:
        """Transactional ids, with the state of their coordinators."""
        found: list[TransactionView] = await self._ask("GET", "/v1/transactions")
        return found

    async def open_transactions(self) -> list[OpenTransactionView]:
        """Transactions with records but no marker yet in a partition."""
        found: list[OpenTransactionView] = await self._ask("GET", "/v1/transactions/open")
        return found

    async def connections(self) -> list[ConnectionView]:
        """The open connections of clients."""
        found: list[ConnectionView] = await self._ask("GET", "/v1/connections")
        return found

    # -- records and rest --------------------------------------------------------------------------

    async def records(self, topic: str, partition: int | None = None) -> list[StoredRecord]:
        """The records of a topic, as `topic(NAME).records()`."""
        return await self.topic(topic).records(partition)

    async def expect_records(
        self,
        topic: str,
        expected: Expected,
        *,
        in_order: bool = False,
        allow_others: bool = False,
        timeout_s: float = EXPECT_TIMEOUT_S,
    ) -> list[StoredRecord]:
        """Wait for the records of a topic, as `topic(NAME).expect_records(…)`."""
        __tracebackhide__ = True
        return await self.topic(topic).expect_records(
            expected, in_order=in_order, allow_others=allow_others, timeout_s=timeout_s
        )

    async def settle(self, *, timeout_s: float = SETTLE_TIMEOUT_S) -> None:
        """Wait until every replica is in sync, every preferred leader leads and groups are stable.

        Use it between the steps of a test instead of sleeping. Preferred leaders are elected as
        soon as they are eligible. Raises AssertionError with the obstacles after `timeout_s` of
        real time.
        """
        __tracebackhide__ = True
        body = {"timeout_ms": round(timeout_s * 1000)}
        try:
            await self._ask("POST", "/v1/settle", body=body, wait_s=timeout_s)
        except TimeoutError as error:
            raise AssertionError(str(error)) from None

    async def act(self, action: str, arguments: object = None, **named: object) -> Any:
        """Carry out an action by name, as rules do: `act("stop_broker", node=2)`; returns its
        result.

        `arguments` are a dict, or the value of the action's main field. Raises ValidationError that
        names a wrong argument, and ActionError or ApiError if the action is impossible.
        """
        given = named if arguments is None else arguments
        done = await self._ask("POST", "/v1/actions", body={action: given}, wait_s=ACTION_WAIT_S)
        return done.result

    async def audit(self, operations: Iterable[Mapping[str, Any]] = ()) -> Audit:
        """Audit every record so far by the rules of docs/explanation/audit.md.

        `operations` are the application's own records of its operations, rows of the table of that
        name (`op`, `topic`, `partition`, `offset`, …). Raises StoreError without the extra
        `pipeline`.
        """
        from mockbroker.api.audit import audit_of

        entries: bytes = await self._ask("GET", "/v1/journal/entries")
        return audit_of(entries, operations)

    # -- snapshots ---------------------------------------------------------------------------------

    async def snapshot(self, name: str | None = None) -> Snapshot:
        """Take a snapshot: topics, records, groups, transactions, configs, brokers.

        Records are not copied; it takes a millisecond or less. Effects of rules and cut links are
        left out. The snapshot lasts until `delete_snapshot` or the end of the cluster; it replaces
        one of the same name. Raises an error for more than 100.
        """
        chosen = name or f"snapshot-{os.getpid()}-{next(_numbers)}"
        view = await self._ask("POST", "/v1/snapshot", body={"name": chosen})
        return Snapshot(view.name, view.taken_ms)

    async def restore(self, snapshot: Snapshot | str, *, producers: Producers = "keep") -> None:
        """Restore a snapshot; any number of times.

        Connections stay open, faults and the journal are cleared, the clock is not set back. To
        clients it looks like a change of leaders. An idempotent producer that has continued since
        is refused, which is fatal for one of librdkafka; with producers "resume" it continues at
        its present sequence. Raises UnknownNameError or ActionError.
        """
        name = snapshot if isinstance(snapshot, str) else snapshot.name
        await self._ask("POST", "/v1/restore", body={"name": name, "producers": producers})

    async def delete_snapshot(self, snapshot: Snapshot | str) -> None:
        """Delete a snapshot. Raises UnknownNameError."""
        name = snapshot if isinstance(snapshot, str) else snapshot.name
        await self._ask("DELETE", "/v1/snapshots/{name}", at={"name": name})

    async def reset(self) -> None:
        """Restore the cluster's start: its initial topics, with new ids, and nothing else.

        Connections stay open; topic ids and producer ids are never used again.
        """
        await self._ask("POST", "/v1/reset", body={})
