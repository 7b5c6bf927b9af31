"""Every id and every random choice of a cluster, from one seed.

The core owns its generator, so that the same seed and the same requests give the same topic ids,
member ids and placements, on every Python version and whatever else draws random numbers in the
process.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TypeVar

T = TypeVar("T")

_MASK_64 = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15  # what the state grows by with each draw
ZERO_UUID = bytes(16)
METADATA_TOPIC_ID = bytes(15) + b"\x01"  # Uuid.METADATA_TOPIC_ID
PRODUCER_ID_BLOCK = 1000  # ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE


def uuid_text(uuid: bytes) -> str:
    """The text of a 16-byte id as Kafka prints it: 22 characters of url-safe base64."""
    return urlsafe_b64encode(uuid)[:22].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes of an id in Kafka's text form; ValueError when it is none."""
    raw = urlsafe_b64decode(text + "==")
    if len(text) != 22 or len(raw) != 16:
        raise ValueError(f"not a Kafka id: {text!r}")
    return raw


def state_after(state: int, draws: int) -> int:
    """Where a source that stands at `state` stands after so many draws."""
    return (state + draws * _STEP) & _MASK_64


class IdSource:
    """A SplitMix64 generator and the counters that must never hand out a value twice."""

    __slots__ = ("_next_producer_block", "_producer_blocks", "_state")

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK_64
        self._next_producer_block = 0
        self._producer_blocks: dict[int, tuple[int, int]] = {}

    @property
    def position(self) -> tuple[int, int]:
        """Where the source stands: its state, and the first producer id that no broker has yet."""
        return self._state, self._next_producer_block

    def go_beyond(self, state: int, producer_block: int) -> None:
        """Hand out nothing that a source which stands there has handed out.

        All states lie on one cycle; of two positions the one that is less than half of it ahead is
        the later one. Brokers take new blocks of producer ids.
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

    def shuffle(self, items: list[T]) -> None:
        """Shuffle in place (Fisher-Yates)."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def uuid(self) -> bytes:
        """16 bytes of a random (version 4) id, none of Kafka's reserved ones.

        Kafka's Uuid.randomUuid draws again when the text form starts with a dash, because command
        lines would take it for a flag.
        """
        while True:
            high = self.bits64() & ~0xF000 | 0x4000
            low = self.bits64() & (_MASK_64 >> 2) | (1 << 63)
            uuid = high.to_bytes(8, "big") + low.to_bytes(8, "big")
            if not uuid_text(uuid).startswith("-"):
                return uuid

    def member_suffix(self) -> str:
        """A random id in the dashed text form of java.util.UUID, as member ids end with."""
        text = self.uuid().hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def producer_id(self, node_id: int = 0) -> int:
        """A producer id never given before, from the block of 1000 that broker `node_id` holds."""
        following, end = self._producer_blocks.get(node_id, (0, 0))
        if following == end:
            following = self._next_producer_block
            end = self._next_producer_block = following + PRODUCER_ID_BLOCK
        self._producer_blocks[node_id] = (following + 1, end)
        return following

    def drop_producer_ids(self, node_id: int) -> None:
        """Give up what is left of a broker's block; a restarted broker asks for a new one."""
        self._producer_blocks.pop(node_id, None)

    def session_id(self) -> int:
        """A fetch session id: a random positive int32."""
        return self.below(0x7FFFFFFF) + 1
