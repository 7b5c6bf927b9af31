"""The journal as the pipeline reads it: raw notes, which become tables elsewhere."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse

from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Call, Endpoint
from mockbroker.admin.v1.journal import journal_of
from mockbroker.core.cluster import Cluster
from mockbroker.pipeline.spool.notes import End, Note, packed
from mockbroker.pipeline.spool.taking import notes_of_memory

MEDIA_TYPE = "application/octet-stream"


def endpoints(api: Api) -> list[Endpoint]:
    async def notes(_: Call) -> StreamingResponse:
        taken = await api.cluster(lambda cluster: _notes(api, cluster))
        return StreamingResponse(_packed(taken), media_type=MEDIA_TYPE)

    return [
        Endpoint(
            "GET",
            "/v1/journal/notes",
            "All that the journal holds, raw, for the pipeline",
            notes,
            None,
            media=(MEDIA_TYPE,),
            problems=(409,),
        )
    ]


def _notes(api: Api, cluster: Cluster) -> list[Note]:
    journal, now_ns = journal_of(api), time.time_ns()
    taken = notes_of_memory(cluster, journal, cluster.cluster_id, now_ns)
    return [*taken, End(journal.last_seq, cluster.now_ms(), now_ns)]


async def _packed(notes: list[Note]) -> AsyncIterator[bytes]:
    for note in notes:
        yield packed(note)
