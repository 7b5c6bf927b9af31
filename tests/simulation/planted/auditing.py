"""What the audit says of the history of a schedule.

The fast driver passes requests to handlers without a wire. Here it writes down what would have
gone over one, so that the audit can judge it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from mockbroker.core.journal.journal import Journal
from mockbroker.handlers.base import Api, ConnectionInfo, EncodedResponse, Outcome, RequestContext
from mockbroker.pipeline.convert.run import convert_run
from mockbroker.pipeline.duck.rulebook import audit
from mockbroker.pipeline.findings import BUG
from mockbroker.pipeline.spool.run_entries import finished_run
from mockbroker.simulation import plan as plans
from mockbroker.simulation.fast import FastRun
from mockbroker.simulation.swarm import generate
from mockbroker.simulation.world import World
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.headers import RequestHeader, encode_request_header

_BYTES_MAX = 1 << 30
_NOT_ASKED = frozenset((plans.RESTORE, plans.RESTART))  # another history begins with these
RUN = "planted"


class _Journalled(FastRun):
    """A run that keeps a journal as a broker's connections do."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.journal = Journal(lambda: self.clock.now_ms * 1_000_000, _BYTES_MAX)
        world.cluster.keep_journal(self.journal)
        self._known: set[int] = set()
        # The context of each request, by its client and the client's turn.
        self._asked: dict[tuple[str, int], RequestContext] = {}

    def handle(self, context: RequestContext, request: Any, api: Api) -> Any:
        header: RequestHeader = context.header
        info: ConnectionInfo = context.connection
        node_id = context.broker.node_id
        if info.id not in self._known:
            self._known.add(info.id)
            self.journal.opened(context.now_ms, node_id, info)
        body = request_codec(header.api_key, header.api_version).encode(request)
        frame = b"".join((encode_request_header(header), *body))
        context.seq = self.journal.request(context.now_ms, node_id, info.id, frame)
        self._asked[header.client_id or "", header.correlation_id] = context
        return super().handle(context, request, api)

    def answer(self, runner: Any, turn: int, call: Any, response: Any) -> None:
        context = self._asked.pop((runner.client.client_id, turn), None)
        if context is not None and turn == runner.turn:
            self._note(context, response)
        super().answer(runner, turn, call, response)

    def _note(self, context: RequestContext, response: Any) -> None:
        header: RequestHeader = context.header
        body, outcome = None, ""
        if isinstance(response, EncodedResponse):
            body = response.parts
        elif isinstance(response, Outcome):
            outcome = response.value
        else:
            body = response_codec(header.api_key, header.api_version).encode(response)
        self.journal.response(
            self.clock.now_ms,
            context.broker.node_id,
            context.connection.id,
            context.seq,
            header.api_key,
            header.api_version,
            header.correlation_id,
            body,
            outcome,
        )


def anomalies(seed: int) -> list[str] | None:
    """What the audit calls a bug in the history of a schedule, each anomaly once.

    None where the audit cannot be asked, because the cluster is restored or restarted.
    """
    plan = generate(seed)
    if any(step.do in _NOT_ASKED for step in plan.steps):
        return None
    run = _Journalled(World(plan))
    run.run()
    cluster, journal = run.world.cluster, run.journal
    entries = finished_run(cluster, journal, RUN, cluster.runtime.now_ms() * 1_000_000)
    with tempfile.TemporaryDirectory() as directory:
        convert_run(entries, Path(directory), RUN)
        found = audit(directory)
    return list(dict.fromkeys(each.anomaly for each in found if each.verdict == BUG))
