"""A client's fetch sessions, one with each broker (KIP-227).

The first request lists all partitions, later ones only changes. After an error or without an answer
the client closes the session and opens another one.

Source: FetchSessionHandler.
"""

from __future__ import annotations

from typing import NamedTuple

from mockbroker_protocol.messages.fetch import FetchPartition

Key = tuple[str | bytes, int]  # name or id of the topic, and the partition

_NO_SESSION = 0
_FULL = 0
_FINAL = -1
_STALE_SINCE = 2  # the first epoch with an earlier incremental one


class SessionRequest(NamedTuple):
    """The session fields of a Fetch: the session, the listed and the forgotten partitions."""

    session_id: int
    session_epoch: int
    listed: dict[Key, FetchPartition]
    forgotten: list[Key]


class FetchSession:
    """The session with one broker."""

    def __init__(self) -> None:
        self._id = _NO_SESSION
        self._epoch = _FULL  # of the next request
        self._requested: dict[Key, FetchPartition] = {}
        # The high watermark and log start offset of the last answers of this session.
        self.last_offsets: dict[Key, tuple[int, int]] = {}

    def build_request(self, wanted: dict[Key, FetchPartition]) -> SessionRequest:
        """The request for these partitions."""
        former, self._requested = self._requested, wanted
        if self._epoch == _FULL:
            self.last_offsets.clear()
            return SessionRequest(self._id, _FULL, wanted, [])
        for key in former:
            if key not in wanted:
                self.last_offsets.pop(key, None)
        listed = {key: each for key, each in wanted.items() if former.get(key) != each}
        return SessionRequest(
            self._id, self._epoch, listed, [key for key in former if key not in wanted]
        )

    def answered(self, error: int, session_id: int) -> None:
        """Handle the broker's answer."""
        if error:
            self.reset()
        elif self._epoch == _FULL or session_id == _NO_SESSION:
            self._id = session_id
            self._epoch = 1 if session_id else _FULL
        else:
            self._epoch += 1

    def record_partition(self, key: Key, high_watermark: int, log_start: int) -> None:
        """Record a partition of an answer; the high watermark is -1 after an error."""
        self.last_offsets[key] = (high_watermark, log_start)

    def stale_request(self) -> SessionRequest | None:
        """A request with the epoch before; None if there was none."""
        if self._epoch < _STALE_SINCE:
            return None
        return SessionRequest(self._id, self._epoch - 1, {}, [])

    def reset(self) -> None:
        """Close the session with the next request, after an error or without an answer."""
        self._epoch = _FULL


def sessionless(wanted: dict[Key, FetchPartition]) -> SessionRequest:
    """The request of a client without sessions."""
    return SessionRequest(_NO_SESSION, _FINAL, wanted, [])
