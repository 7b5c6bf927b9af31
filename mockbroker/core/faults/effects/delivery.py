"""Effects on the delivery of a request or its answer.

These are data: the connection's task carries them out. All times are ms on the cluster's clock.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, NamedTuple

import msgspec

from mockbroker.core.faults.effects.wire_values import check_int32s
from mockbroker.core.ids import IdSource
from mockbroker.core.validation import Count, Ms, Positive, Probability, Range

_SLICE_BYTES = 1024
BIT_FLIPS_MAX = 10_000
REPLIES_MAX = 1_000  # they are sent in one go

BEFORE = "before"
AFTER = "after"
Phase = Literal["before", "after"]
How = Literal["fin", "rst"]


class DropRequest(msgspec.Struct, frozen=True):
    """The request is neither applied nor answered; the connection stays open."""


class DropReply(msgspec.Struct, frozen=True):
    """The request is applied; its answer is not sent. Then the connection stays open (`keep`), is
    closed (`close`: FIN) or reset (`reset`: RST).
    """

    SHORT: ClassVar[str] = "then"

    then: Literal["keep", "close", "reset"] = "keep"


class Close(msgspec.Struct, frozen=True):
    """The connection is closed instead of an answer, before or after the request is applied."""

    SHORT: ClassVar[str] = "how"

    how: How = "fin"
    phase: Phase = "after"


class Lognormal(msgspec.Struct, frozen=True):
    """A random delay with this median. A large sigma gives a long tail."""

    median: Ms
    sigma: float = 0.5


class Delay(msgspec.Struct, frozen=True, kw_only=True):
    """Wait before the request is applied, or before the answer is sent.

    A fixed time (`by`), one out of `uniform` [low, high], or `lognormal`. Random times come from
    the rule's own stream.
    """

    SHORT: ClassVar[str] = "by"

    by: Ms | None = None
    uniform: list[Ms] | None = None
    lognormal: Lognormal | None = None
    phase: Phase = "before"

    def __post_init__(self) -> None:
        given = [x for x in (self.by, self.uniform, self.lognormal) if x is not None]
        if len(given) != 1:
            raise ValueError("give one of by, uniform and lognormal")
        if self.uniform is not None and (
            len(self.uniform) != 2 or self.uniform[0] > self.uniform[1]
        ):
            raise ValueError("uniform is [low, high]")
        if self.lognormal is not None and not 0 <= self.lognormal.sigma <= 10:
            raise ValueError("sigma is between 0 and 10")

    def drawn_ms(self, stream: IdSource) -> int:
        """The time to wait for one request."""
        if self.by is not None:
            return self.by
        if self.uniform is not None:
            low, high = self.uniform
            return low + stream.below(high - low + 1)
        assert self.lognormal is not None
        # The Box-Muller transform of two numbers of 53 bits.
        one, two = ((stream.bits64() >> 11) + 1) / 2**53, (stream.bits64() >> 11) / 2**53
        normal = math.sqrt(-2.0 * math.log(one)) * math.cos(math.tau * two)
        factor = math.exp(min(20.0, self.lognormal.sigma * normal))
        return round(self.lognormal.median * factor)


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A breakpoint: the request waits before it is applied, or the answer before it is sent.

    A test releases, edits, answers, drops or closes it. `at_most` releases it after a time.
    """

    SHORT: ClassVar[str] = "phase"

    phase: Phase = "before"
    at_most: Ms | None = None


class Throttle(msgspec.Struct, frozen=True):
    """Sets `throttle_time_ms` in the answer. With `mute` the broker does not read from the client
    for that time, as with a client over its quota (KIP-219).
    """

    SHORT: ClassVar[str] = "by"

    by: Ms
    mute: bool = True

    def __post_init__(self) -> None:
        check_int32s(by=self.by)


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """The answer is sent in slices of `slice_bytes`, at `bytes_per_s` or with a `pause` after each
    slice.

    By default a slice takes 100 ms, and has at most 1024 bytes.
    """

    SHORT: ClassVar[str] = "bytes_per_s"

    bytes_per_s: Positive | None = None
    pause: Ms | None = None
    slice_bytes: Positive | None = None

    def __post_init__(self) -> None:
        if (self.bytes_per_s is None) is (self.pause is None):
            raise ValueError("give one of bytes_per_s and pause")

    @property
    def size(self) -> int:
        """The bytes of a slice; few at a low speed, so that short answers are slow too."""
        if self.slice_bytes is not None:
            return self.slice_bytes
        if self.bytes_per_s is None:
            return _SLICE_BYTES
        return max(1, min(_SLICE_BYTES, self.bytes_per_s // 10))

    @property
    def pause_ms(self) -> int:
        """The time between two slices."""
        if self.pause is not None:
            return self.pause
        assert self.bytes_per_s is not None
        return max(1, round(self.size * 1000 / self.bytes_per_s))


class TruncateReply(msgspec.Struct, frozen=True, kw_only=True):
    """Only the first `bytes` of the answer are sent, or a `fraction`, under its full size.

    Then the connection is closed or reset. With `keep` the client waits for the rest.
    """

    SHORT: ClassVar[str] = "fraction"

    fraction: Probability = 0.5
    bytes_: Count | None = msgspec.field(default=None, name="bytes")
    then: Literal["keep", "close", "reset"] = "close"

    def cut(self, size: int) -> int:
        """The number of bytes that are sent of a frame of `size`."""
        wanted = round(size * self.fraction) if self.bytes_ is None else self.bytes_
        return min(wanted, size - 1)


class CorruptReply(msgspec.Struct, frozen=True, kw_only=True):
    """The frame of the answer is damaged.

    `wrong_size` announces more bytes than follow. `wrong_correlation_id` has the id of another
    request. `bit_flips` inverts `count` bits behind the correlation id. `garbage` replaces them by
    noise. `oversize` announces 2 GiB.
    """

    SHORT: ClassVar[str] = "how"

    how: Literal["wrong_size", "wrong_correlation_id", "bit_flips", "garbage", "oversize"]
    count: Annotated[int, Range(1, BIT_FLIPS_MAX)] = 8


class DuplicateReply(msgspec.Struct, frozen=True):
    """The answer is sent `times` times."""

    SHORT: ClassVar[str] = "times"

    times: Annotated[int, Range(1, REPLIES_MAX)] = 2


class ReorderReplies(msgspec.Struct, frozen=True):
    """The answer is sent after the answer to the connection's next request, if that request arrives
    within `patience`.
    """

    SHORT: ClassVar[str] = "patience"

    patience: Ms = 1000


class Ending(NamedTuple):
    """The end of a connection."""

    reset: bool


def ending(then: str) -> Ending | None:
    """The ending of the connection for `close` and `reset`; None for `keep`."""
    return None if then == "keep" else Ending(then == "reset")


# -- frames ----------------------------------------------------------------------------------------

_SIZE_AND_ID = 8  # four bytes of size and the correlation id
_OVERSIZE = b"\x7f\xff\xff\xff"


def corrupted(frame: bytes, effect: CorruptReply, stream: IdSource) -> bytes:
    """A copy of an answer's frame, damaged by the effect."""
    out = bytearray(frame)
    size = int.from_bytes(frame[:4], "big")
    if effect.how == "wrong_size":
        out[:4] = (size + effect.count).to_bytes(4, "big")
    elif effect.how == "oversize":
        out[:4] = _OVERSIZE
    elif effect.how == "wrong_correlation_id":
        wrong = (int.from_bytes(frame[4:8], "big") + 1_000_003) & 0x7FFFFFFF
        out[4:8] = wrong.to_bytes(4, "big")
    elif effect.how == "garbage":
        out[_SIZE_AND_ID:] = stream.noise(len(out) - _SIZE_AND_ID)
    else:
        bits = (len(out) - _SIZE_AND_ID) * 8
        for _ in range(effect.count if bits else 0):
            bit = stream.below(bits)
            out[_SIZE_AND_ID + bit // 8] ^= 1 << bit % 8
    return bytes(out)
