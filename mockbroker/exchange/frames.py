"""Effects on the frame of an answer: damaged, cut, slow, duplicated, out of order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from mockbroker.core.faults.effects import delivery

if TYPE_CHECKING:
    from mockbroker.core.faults.engine import ActiveRule
    from mockbroker.exchange.base import Exchange

Sleep = Callable[[int], Awaitable[None]]

FRAME_EFFECTS = (
    delivery.CorruptReply,
    delivery.DuplicateReply,
    delivery.ReorderReplies,
    delivery.Slow,
    delivery.TruncateReply,
)


def outcome_of(effects: Sequence[tuple[ActiveRule, object]]) -> str:
    """The journal's outcome of an answer that is not sent whole; "" if it is."""
    kinds = {type(effect) for _, effect in effects}
    if delivery.CorruptReply in kinds:
        return "answer damaged"
    return "answer cut" if delivery.TruncateReply in kinds else ""


async def deliver(
    exchange: Exchange,
    frame: bytes,
    effects: Sequence[tuple[ActiveRule, object]],
    sleep: Sleep,
) -> delivery.Ending | None:
    """Send a frame with its effects; how the connection ends then, None if it stays open."""
    times = 1
    slow: delivery.Slow | None = None
    ending: delivery.Ending | None = None
    for rule, effect in effects:
        match effect:
            case delivery.CorruptReply():
                frame = delivery.corrupted(frame, effect, rule.stream)
            case delivery.TruncateReply():
                frame = frame[: effect.cut(len(frame))]
                ending = delivery.ending(effect.then)
            case delivery.DuplicateReply():
                times = effect.times
            case delivery.Slow():
                slow = effect
    for _ in range(times):
        if slow is None:
            await _send(exchange, frame)
        else:
            await _send_slowly(exchange, frame, slow, sleep)
    return ending


async def _send(exchange: Exchange, frame: bytes | memoryview) -> None:
    if len(frame):
        await exchange.send((frame,))


async def _send_slowly(exchange: Exchange, frame: bytes, slow: delivery.Slow, sleep: Sleep) -> None:
    view = memoryview(frame)
    size = slow.size
    for start in range(0, len(view), size):
        if start:
            await sleep(slow.pause_ms)
            await exchange.released()
        await _send(exchange, view[start : start + size])
