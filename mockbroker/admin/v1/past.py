"""The cluster as it was at an entry of the journal."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import trio

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.slices import JournalSlice, slice_of
from mockbroker.core.validation import INT_MAX, Count64, Range
from mockbroker.core.views.configs import OwnConfigsView
from mockbroker.pipeline.past import views
from mockbroker.pipeline.past.checkpoints import Checkpoints, members_of
from mockbroker.pipeline.past.group_history import (
    ASSIGNMENTS_MAX,
    GroupHistory,
    GroupHistoryView,
)
from mockbroker.pipeline.past.image import CapturedImage, PastCluster, capture
from mockbroker.pipeline.past.members import MEMBER_APIS
from mockbroker.pipeline.saved import SavedJournal, SavedPart

# The newest entries that the history of a group has at first.
HISTORY_ENTRIES = 200_000
GROUPS_KEPT_MAX = 32

Part = Literal["cluster", "topics", "groups", "transactions"]
PARTS: tuple[Part, ...] = ("cluster", "topics", "groups", "transactions")

# Facts that no journal has.
_NEVER_KNOWN = (
    "log ends and high watermarks of internal topics: brokers append to them themselves",
    "records of share groups in flight: GET /v1/journal has their events",
)
_NO_BEGINNING = (
    "the state before the journal: its run was not stopped cleanly, or its end is missing"
)
_CUT_OFF = "the changes before entry {}: events name some of the state before them, others do not"

endpoints = ApiEndpoints()


class StateQuery(msgspec.Struct, frozen=True):
    """The moment right after entry `seq`, by default the newest one.

    `parts` are lists to return, by default all. Partitions are those of one `topic`, members and
    lag those of one `group`, if these are given.
    """

    seq: Count64 | None = None
    parts: list[Part] | Part | None = None
    topic: str | None = None
    group: str | None = None


class PastStateView(msgspec.Struct, frozen=True):
    """The cluster right after entry `seq`, at `at_ms` on its clock and `real_ns` in real time.

    A list is null if it was not asked for, a field if the journal does not tell it; `unknown` has
    sentences about that. It is `complete` if the state at the journal's beginning was known.
    """

    seq: int
    at_ms: int
    real_ns: int
    first_seq: int
    last_seq: int
    complete: bool
    unknown: list[str]
    cluster: views.PastClusterView | None
    brokers: list[views.PastBrokerView] | None
    links: list[views.PastLinkView] | None
    configs: list[OwnConfigsView] | None
    topics: list[views.PastTopicView] | None
    partitions: list[views.PastPartitionView] | None
    groups: list[views.PastGroupView] | None
    lag: list[views.PastLagView] | None
    transactions: list[views.PastTransactionView] | None
    open_transactions: list[views.PastOpenTransactionView] | None


class GroupHistoryQuery(msgspec.Struct, frozen=True):
    """At most so many `points` of the lag in each partition, and so many of the `newest` states,
    assignments and commits.
    """

    points: Annotated[int, Range(2, 2_000)] = 300
    newest: Annotated[int, Range(1, ASSIGNMENTS_MAX)] = ASSIGNMENTS_MAX


class Past:
    """Images of the past of one journal, one at a time."""

    def __init__(self, backend: AdminBackend) -> None:
        self._backend = backend
        self._checkpoints = Checkpoints()
        self._lock = trio.Lock()
        # The histories of groups that were asked for last, which go on where they ended.
        self._groups: dict[str, GroupHistory] = {}

    async def image(self, seq: int) -> PastCluster:
        """The image right after entry `seq`."""
        async with self._lock:
            return await self._image(seq)

    async def group(self, group: str, query: GroupHistoryQuery) -> GroupHistoryView:
        """The history of a group in the newest entries."""
        async with self._lock:
            journal = self._backend.journal
            last_seq = journal.last_seq
            known = self._groups.pop(group, None)
            if known is None or known.last_seq < journal.first_seq - 1:
                after = max(journal.first_seq - 1, last_seq - HISTORY_ENTRIES)
                known = GroupHistory(group, await self._image(after), after)
            found = known
            entries = await self.entries(found.last_seq, last_seq)

            def add() -> GroupHistoryView:
                found.add(entries.facts(MEMBER_APIS), members_of(entries), last_seq)
                return found.view(query.points, query.newest)

            view = await self._backend.compute(add)
            self._groups[group] = found
            while len(self._groups) > GROUPS_KEPT_MAX:
                self._groups.pop(next(iter(self._groups)))
            return view

    async def _image(self, seq: int) -> PastCluster:
        journal = self._backend.journal
        after = self._checkpoints.needed_after(seq, journal.first_seq)
        if not self._checkpoints.has_begun(after):
            await self._begin(journal)
            after = self._checkpoints.needed_after(seq, journal.first_seq)
        entries = await self.entries(after, seq)
        return await self._backend.compute(lambda: self._checkpoints.image_at(entries, seq))

    async def entries(self, after: int, until: int | None) -> JournalSlice | SavedPart:
        """The entries behind number `after`."""
        journal = self._backend.journal
        if isinstance(journal, SavedJournal):
            return journal.part(after, INT_MAX if until is None else until)
        return await self._backend.read(
            lambda: slice_of(journal, self._backend.topic_name, after, until)
        )

    async def _begin(self, journal: Journal | SavedJournal) -> None:
        captured: CapturedImage | None
        entries: JournalSlice | SavedPart
        if isinstance(journal, SavedJournal):
            captured, entries = journal.image, journal.part(0, INT_MAX)
        else:
            captured, entries = await self._backend.cluster(
                lambda cluster: (capture(cluster), slice_of(journal, self._backend.topic_name))
            )
        await self._backend.compute(lambda: self._checkpoints.begin(entries, captured))


@endpoints.get(
    "/v1/journal/groups/{group:path}",
    "History of a group: states, assignments, commits, lag",
    query=GroupHistoryQuery,
    problems=(409,),
)
async def group(backend: AdminBackend, call: EndpointCall) -> GroupHistoryView:
    return await backend.kept(Past).group(call.path["group"], call.query)


@endpoints.get(
    "/v1/journal/state",
    "The cluster as it was at an entry",
    query=StateQuery,
    problems=(404, 409),
)
async def state(backend: AdminBackend, call: EndpointCall) -> PastStateView:
    query: StateQuery = call.query
    journal = backend.journal
    first_seq, last_seq = journal.first_seq, journal.last_seq
    seq = last_seq if query.seq is None else query.seq
    if not first_seq - 1 <= seq <= last_seq:
        raise ProblemError(
            404, "not found", f"the journal has entries {first_seq} to {last_seq}, not {seq}"
        )
    image = await backend.kept(Past).image(seq)
    parts = PARTS if query.parts is None else query.parts
    cluster_id = journal.started.cluster_id if isinstance(journal, SavedJournal) else None
    if cluster_id is None:
        cluster_id = await backend.cluster(lambda cluster: cluster.cluster_id)
    return await backend.compute(
        lambda: _view(image, seq, (first_seq, last_seq), cluster_id, parts, query)
    )


def _view(
    image: PastCluster,
    seq: int,
    bounds: tuple[int, int],
    cluster_id: str | None,
    parts: object,
    query: StateQuery,
) -> PastStateView:
    given = {parts} if isinstance(parts, str) else set(parts)  # type: ignore[call-overload]
    first_seq, last_seq = bounds
    unknown = [*_NEVER_KNOWN]
    if not image.is_complete:
        unknown.append(_NO_BEGINNING)
    elif first_seq > 1:
        unknown.append(_CUT_OFF.format(first_seq))
    topics, groups = "topics" in given, "groups" in given
    of_cluster, transactions = "cluster" in given, "transactions" in given
    return PastStateView(
        seq=seq,
        at_ms=image.at_ms,
        real_ns=image.real_ns,
        first_seq=first_seq,
        last_seq=last_seq,
        complete=image.is_complete,
        unknown=unknown,
        cluster=views.cluster_view(image, cluster_id) if of_cluster else None,
        brokers=views.broker_views(image) if of_cluster else None,
        links=views.link_views(image) if of_cluster else None,
        configs=views.own_config_views(image) if of_cluster else None,
        topics=views.topic_views(image) if topics else None,
        partitions=views.partition_views(image, query.topic) if topics else None,
        groups=views.group_views(image, query.group) if groups else None,
        lag=views.lag_views(image, query.group) if groups else None,
        transactions=views.transaction_views(image) if transactions else None,
        open_transactions=views.open_transaction_views(image) if transactions else None,
    )
