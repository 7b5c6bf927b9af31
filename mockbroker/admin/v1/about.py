"""What the admin API shows: a running cluster or a saved journal; and the state machines."""

from __future__ import annotations

from importlib.metadata import version

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.journal.journal import Journal
from mockbroker.core.views.state_machines import StateMachineView, state_machine_views
from mockbroker.pipeline.saved import SavedJournal

endpoints = ApiEndpoints()


class JournalSizeView(msgspec.Struct, frozen=True):
    """The size of the journal. `dropped` counts the entries that are missing."""

    first_seq: int
    last_seq: int
    entries: int
    dropped: int
    bytes: int
    bytes_max: int


class AboutView(msgspec.Struct, frozen=True):
    """The source of all answers: "cluster" or "journal" (saved, without a cluster).

    `title` is the cluster's id or the name of the file. `torn` says where a file breaks off, empty
    if it is whole. The `journal` is null if the cluster keeps none.
    """

    name: str
    version: str
    source: str
    title: str
    torn: str
    journal: JournalSizeView | None


@endpoints.get("/v1/about", "What is shown: a cluster or a saved journal")
async def about(backend: AdminBackend, _: EndpointCall) -> AboutView:
    try:
        journal = backend.journal
    except ProblemError:
        return await backend.cluster(lambda cluster: _view("cluster", cluster.cluster_id, None))
    if isinstance(journal, SavedJournal):
        return _view("journal", journal.name, _size(journal), journal.torn)
    return await backend.cluster(
        lambda cluster: _view("cluster", cluster.cluster_id, _size(journal))
    )


@endpoints.get(
    "/v1/state-machines", "States and transitions of groups, transactions and shared records"
)
async def machines(_: AdminBackend, _call: EndpointCall) -> list[StateMachineView]:
    return state_machine_views()


def _view(source: str, title: str, size: JournalSizeView | None, torn: str = "") -> AboutView:
    return AboutView("mockbroker", version("mockbroker"), source, title, torn, size)


def _size(journal: Journal | SavedJournal) -> JournalSizeView:
    return JournalSizeView(
        first_seq=journal.first_seq,
        last_seq=journal.last_seq,
        entries=len(journal),
        dropped=journal.dropped,
        bytes=journal.bytes,
        bytes_max=journal.bytes_max,
    )
