"""The table of requests."""

from __future__ import annotations

from typing import Any

from mockbroker.core.faults.rules import api_name
from mockbroker.core.journal.exchange import error_names
from mockbroker.core.message_facts import scalars
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.world import Exchange, World

_SCALARS = (
    "group",
    "member",
    "generation",
    "transactional_id",
    "producer_id",
    "producer_epoch",
    "acks",
    "isolation_level",
)
# What clients put where they have nothing to say.
_NOTHING: dict[str, object] = {
    "producer_id": -1,
    "producer_epoch": -1,
    "generation": -1,
    "member": "",
}


def add_request(rows: Rows, world: World, exchange: Exchange) -> None:
    """One row: a request and what came of it."""
    asked, header, answer = exchange.asked, exchange.header, exchange.answer
    peer = world.peers.get(asked.connection_id)
    row: dict[str, object] = {
        "seq": asked.seq,
        "virtual_ms": asked.virtual_ms,
        "real_ns": asked.real_ns,
        "broker": asked.node_id,
        "connection": asked.connection_id,
        "client_id": header.client_id,
        "api": api_name(header.api_key),
        "api_version": header.api_version,
        "correlation_id": header.correlation_id,
        "request_bytes": len(asked.frame),
        **told(exchange.message),
    }
    if peer is not None:
        row["source"] = f"{peer.host}:{peer.port}"
        row["client_software"] = peer.software
        row["principal"] = peer.principal
    if answer is not None:
        row["response_seq"] = answer.seq
        row["elapsed_ns"] = answer.real_ns - asked.real_ns
        row["outcome"] = answer.outcome or None
        row["rules"] = exchange.rules
        if answer.body is not None:
            row["response_bytes"] = sum(map(len, answer.body))
        if answer.errors is None:
            row["errors"] = list(error_names(exchange.response))
        else:
            row["errors"] = answer.errors
    rows.add("requests", row)


def told(message: Any) -> dict[str, object]:
    """What a request says of itself, by the names of the columns."""
    if message is None:
        return {}
    facts = scalars(message)
    return {
        name: value
        for name in _SCALARS
        if (value := facts.get(name)) is not None and _NOTHING.get(name) != value
    }
