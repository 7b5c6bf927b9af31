"""The table of requests."""

from __future__ import annotations

from mockbroker.core.faults.rules import api_name
from mockbroker.core.journal.journal import client_fields
from mockbroker.core.journal.messages import error_names, facts_of
from mockbroker.pipeline.convert.cluster_state import ConvertedExchange, RunState, times
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.tables import TABLES, single_or_all

_COLUMNS = frozenset(column.name for column in TABLES["requests"])


def add_request(rows: Rows, cluster: RunState, exchange: ConvertedExchange) -> None:
    """The row of a request and its answer."""
    request, header, answer = exchange.request, exchange.header, exchange.answer
    client = cluster.clients.get(request.connection_id)
    row: dict[str, object] = {
        **times(request),
        "broker": request.node_id,
        "connection": request.connection_id,
        "client_id": header.client_id,
        "api": api_name(header.api_key),
        "api_version": header.api_version,
        "correlation_id": header.correlation_id,
        "request_bytes": len(request.frame),
    }
    if exchange.message is not None:
        facts = single_or_all(facts_of(exchange.message, header.api_version))
        row |= {name: value for name, value in facts.items() if name in _COLUMNS}
    if client is not None:
        row |= client_fields(client)
    if answer is not None:
        row["response_seq"] = answer.seq
        row["elapsed_ns"] = answer.real_ns - request.real_ns
        row["outcome"] = answer.outcome or None
        row["rules"] = exchange.rules
        if answer.body is not None:
            row["response_bytes"] = sum(map(len, answer.body))
        row["errors"] = error_names(exchange.response)
    rows.add("requests", row)
