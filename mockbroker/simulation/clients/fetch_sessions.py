"""Fetch sessions as a client keeps them, one with each broker (KIP-227).

The first request lists every partition, those that follow only what has changed. After an error or
without an answer the client closes the session and begins another one.

Source: FetchSessionHandler.
"""

from __future__ import annotations

from typing import NamedTuple

from mockbroker_protocol.messages.fetch import FetchPartition

Key = tuple[str | bytes, int]  # name or id of the topic, and the partition

_NO_SESSION = 0
_FULL = 0
_FINAL = -1
_LATE = 2  # the first epoch that has one before it


class Wish(NamedTuple):
    """What a request says: the session, what it lists and what it forgets."""

    session_id: int
    session_epoch: int
    listed: dict[Key, FetchPartition]
    forgotten: list[Key]


class FetchSession:
    """The session with one broker."""

    def __init__(self) -> None:
        self._id = _NO_SESSION
        self._epoch = _FULL  # of the next request
        self._told: dict[Key, FetchPartition] = {}
        # The high watermark and log start that the broker told last, in this session.
        self.heard: dict[Key, tuple[int, int]] = {}

    def ask(self, wanted: dict[Key, FetchPartition]) -> Wish:
        """The request for these partitions."""
        told, self._told = self._told, wanted
        if self._epoch == _FULL:
            self.heard.clear()
            return Wish(self._id, _FULL, wanted, [])
        for key in told:
            if key not in wanted:
                self.heard.pop(key, None)
        listed = {key: each for key, each in wanted.items() if told.get(key) != each}
        return Wish(self._id, self._epoch, listed, [key for key in told if key not in wanted])

    def answered(self, error: int, session_id: int) -> None:
        """The broker has answered."""
        if error:
            self.lost()
        elif self._epoch == _FULL or session_id == _NO_SESSION:
            self._id = session_id
            self._epoch = 1 if session_id else _FULL
        else:
            self._epoch += 1

    def hears(self, key: Key, high_watermark: int, log_start: int) -> None:
        """What the answer says of a partition; -1 for the watermark where that is an error."""
        self.heard[key] = (high_watermark, log_start)

    def looks_back(self) -> Wish | None:
        """A request of before, which comes too late; None where there was none."""
        if self._epoch < _LATE:
            return None
        return Wish(self._id, self._epoch - 1, {}, [])

    def lost(self) -> None:
        """No answer came, or an error: close the session with the next request."""
        self._epoch = _FULL


def sessionless(wanted: dict[Key, FetchPartition]) -> Wish:
    """The request of a client that keeps no sessions."""
    return Wish(_NO_SESSION, _FINAL, wanted, [])
