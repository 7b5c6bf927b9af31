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

    def ask(self, wanted: dict[Key, FetchPartition]) -> Wish:
        """The request for these partitions."""
        told, self._told = self._told, wanted
        if self._epoch == _FULL:
            return Wish(self._id, _FULL, wanted, [])
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

    def lost(self) -> None:
        """No answer came, or an error: close the session with the next request."""
        self._epoch = _FULL


def sessionless(wanted: dict[Key, FetchPartition]) -> Wish:
    """The request of a client that keeps no sessions."""
    return Wish(_NO_SESSION, _FINAL, wanted, [])
