"""The ids and random choices of a cluster, from one seed.

The core has its own generator: the same seed and the same requests give the same topic ids, member
ids and placements, on each Python version, although other code draws random numbers too.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TypeVar

T = TypeVar("T")

_MASK_64 = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15  # the increment of the state for each draw
ZERO_UUID = bytes(16)
METADATA_TOPIC_ID = bytes(15) + b"\x01"  # Uuid.METADATA_TOPIC_ID
PRODUCER_ID_BLOCK = 1000  # ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE


def uuid_text(uuid: bytes) -> str:
    """The text of a 16-byte id: 22 characters of url-safe base64 (Uuid.toString)."""
    return urlsafe_b64encode(uuid)[:22].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes of an id in Kafka's text form. Raises ValueError."""
    raw = urlsafe_b64decode(text + "==")
    if len(text) != 22 or len(raw) != 16:
        raise ValueError(f"not a Kafka Uuid: {text!r}")
    return raw


def state_after(state: int, draws: int) -> int:
    """The state of a source after so many draws from `state`."""
    return (state + draws * _STEP) & _MASK_64


class IdSource:
    """A SplitMix64 generator, and the counter of producer ids, which are never reused."""

    __slots__ = ("_next_producer_block", "_producer_blocks", "_state")

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK_64
        self._next_producer_block = 0
        self._producer_blocks: dict[int, tuple[int, int]] = {}

    @property
    def position(self) -> tuple[int, int]:
        """The state, and the first producer id that is in no broker's block."""
        return self._state, self._next_producer_block

    def go_beyond(self, state: int, producer_block: int) -> None:
        """Advance, so that no value is drawn again that a source at this position has drawn.

        All states are on one cycle. Of two positions the later one is less than half a cycle ahead.
        Brokers get new blocks of producer ids.
        """
        draws = (state - self._state) * pow(_STEP, -1, 1 << 64) & _MASK_64
        if draws < 1 << 63:
            self._state = state
        self._next_producer_block = max(self._next_producer_block, producer_block)
        self._producer_blocks.clear()

    def bits64(self) -> int:
        """64 random bits as a non-negative integer."""
        self._state = (self._state + _STEP) & _MASK_64
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK_64
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """A random integer in [0, bound)."""
        return self.bits64() * bound >> 64

    def noise(self, count: int) -> bytes:
        """`count` random bytes."""
        return hashlib.shake_128(self.bits64().to_bytes(8, "big")).digest(count)

    def shuffle(self, items: list[T]) -> None:
        """Shuffle in place (Fisher-Yates)."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def uuid(self) -> bytes:
        """16 bytes of a random (version 4) id, none of Kafka's reserved ones.

        As in Uuid.randomUuid, the text form does not start with a dash, because a command line
        would read it as a flag.
        """
        while True:
            high = self.bits64() & ~0xF000 | 0x4000
            low = self.bits64() & (_MASK_64 >> 2) | (1 << 63)
            uuid = high.to_bytes(8, "big") + low.to_bytes(8, "big")
            if not uuid_text(uuid).startswith("-"):
                return uuid

    def member_suffix(self) -> str:
        """A random id in the text form of java.util.UUID, the suffix of member ids."""
        text = self.uuid().hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def producer_id(self, node_id: int = 0) -> int:
        """An unused producer id, from the block of 1000 of broker `node_id`."""
        following, end = self._producer_blocks.get(node_id, (0, 0))
        if following == end:
            following = self._next_producer_block
            end = self._next_producer_block = following + PRODUCER_ID_BLOCK
        self._producer_blocks[node_id] = (following + 1, end)
        return following

    def drop_producer_ids(self, node_id: int) -> None:
        """Drop the rest of a broker's block; a restarted broker gets a new one."""
        self._producer_blocks.pop(node_id, None)

    def session_id(self) -> int:
        """A fetch session id: a random positive int32."""
        return self.below(0x7FFFFFFF) + 1
