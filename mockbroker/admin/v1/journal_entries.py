"""The journal's entries in the format of a spool, for a pipeline elsewhere."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall, Stream
from mockbroker.pipeline.saved import SavedJournal
from mockbroker.pipeline.spool.format import SpoolEntry, encode
from mockbroker.pipeline.spool.run_entries import finished_run

MEDIA_TYPE = "application/octet-stream"

endpoints = ApiEndpoints()


@endpoints.get(
    "/v1/journal/entries",
    "Journal entries in the format of a spool, for the pipeline",
    media=(MEDIA_TYPE,),
    problems=(409,),
)
async def entries(backend: AdminBackend, _: EndpointCall) -> Stream[bytes]:
    return Stream(_encoded(await exported(backend)), MEDIA_TYPE)


async def exported(backend: AdminBackend) -> list[SpoolEntry]:
    """All entries of the journal, as a run that ends now."""
    journal = backend.journal
    if isinstance(journal, SavedJournal):
        return journal.run
    return await backend.cluster(
        lambda cluster: finished_run(cluster, journal, cluster.cluster_id, time.time_ns())
    )


async def _encoded(entries: list[SpoolEntry]) -> AsyncIterator[bytes]:
    for entry in entries:
        yield encode(entry)
