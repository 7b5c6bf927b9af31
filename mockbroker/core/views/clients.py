"""Counts of each client's requests, bytes and fetch times, from the entries of the journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from mockbroker.core.faults.rules import api_name
from mockbroker.core.journal.entries import Entry, RequestEntry, ResponseEntry
from mockbroker_protocol import ApiKey
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.headers import decode_request_header


class ClientView(msgspec.Struct, frozen=True):
    """One client id; bytes are those of requests and answers without their size fields.

    Times are in ms of real time, from a Fetch to its answer, the wait of a long poll included.
    """

    client_id: str
    requests: dict[str, int]
    bytes_in: int
    bytes_out: int
    fetch_ms_mean: float
    fetch_ms_max: float


@dataclass
class _Count:
    requests: dict[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    fetch_ns: list[int] = field(default_factory=list)


class ClientCounts:
    """Counts the entries of a journal, in pieces, oldest first."""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}
        # Unanswered requests: number -> client id and time of arrival.
        self._unanswered: dict[int, tuple[str, int]] = {}

    def count(self, entries: Iterable[Entry]) -> None:
        """Count the next entries."""
        for entry in entries:
            if isinstance(entry, RequestEntry):
                self._request(entry)
            elif isinstance(entry, ResponseEntry):
                self._response(entry)

    def _request(self, entry: RequestEntry) -> None:
        try:
            header, _ = decode_request_header(memoryview(entry.frame))
        except DecodeError:
            return
        client_id = header.client_id or ""
        count = self._counts.setdefault(client_id, _Count())
        name = api_name(header.api_key)
        count.requests[name] = count.requests.get(name, 0) + 1
        count.bytes_in += len(entry.frame)
        self._unanswered[entry.seq] = client_id, entry.real_ns

    def _response(self, entry: ResponseEntry) -> None:
        request = self._unanswered.pop(entry.request_seq, None)
        if request is None or entry.body is None:
            return
        client_id, arrived_ns = request
        count = self._counts[client_id]
        count.bytes_out += sum(map(len, entry.body))
        if entry.api_key == ApiKey.FETCH:
            count.fetch_ns.append(entry.real_ns - arrived_ns)

    def views(self) -> list[ClientView]:
        """The counts, by client id."""
        return [_view(client_id, self._counts[client_id]) for client_id in sorted(self._counts)]


def _view(client_id: str, count: _Count) -> ClientView:
    took_ms = [ns / 1e6 for ns in count.fetch_ns]
    return ClientView(
        client_id=client_id,
        requests=dict(sorted(count.requests.items())),
        bytes_in=count.bytes_in,
        bytes_out=count.bytes_out,
        fetch_ms_mean=sum(took_ms) / len(took_ms) if took_ms else 0.0,
        fetch_ms_max=max(took_ms, default=0.0),
    )
