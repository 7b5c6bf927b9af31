"""What each client asked for, what it got, and how long that took: the broker's side of the metrics
that clients keep of themselves. Counted from the journal, so as far back as that reaches.
"""

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
    """One client id; bytes are those of requests and answers without their four bytes of size.

    Times are real ones, in ms, from the request to its answer: of Fetch those of records or of an
    empty hand, a long poll included.
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
        # Requests that are not answered yet: number -> client id and when it came.
        self._asked: dict[int, tuple[str, int]] = {}

    def take(self, entries: Iterable[Entry]) -> None:
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
        self._asked[entry.seq] = client_id, entry.real_ns

    def _response(self, entry: ResponseEntry) -> None:
        asked = self._asked.pop(entry.request_seq, None)
        if asked is None or entry.body is None:
            return
        client_id, came_ns = asked
        count = self._counts[client_id]
        count.bytes_out += sum(map(len, entry.body))
        if entry.api_key == ApiKey.FETCH:
            count.fetch_ns.append(entry.real_ns - came_ns)

    def views(self) -> list[ClientView]:
        """What was counted, by client id."""
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
