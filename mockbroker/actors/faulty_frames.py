"""Answers on the wire that are not as they should be: damaged, cut, slow, doubled, out of order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import trio

from mockbroker.actors.unanswered import Unanswered
from mockbroker.core.faults.effects import delivery

if TYPE_CHECKING:
    from mockbroker.actors.connection import Connection
    from mockbroker.actors.transport import Buffer, Transport
    from mockbroker.core.faults.engine import ActiveRule

Sleep = Callable[[int], Awaitable[None]]


class Capture:
    """Stands in for a connection's transport while an answer is made, and keeps it."""

    __slots__ = ("_parts", "transport")

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._parts: list[Buffer] = []

    def send(self, parts: Sequence[Buffer]) -> Sequence[Buffer]:
        self._parts.extend(parts)
        return ()

    def frame(self) -> bytes:
        """What was to be sent: the size, and what follows."""
        return b"".join(self._parts)


def fate_of(effects: Sequence[tuple[ActiveRule, object]]) -> str:
    """What the journal says of an answer that does not come whole; "" where it does."""
    kinds = {type(effect) for _, effect in effects}
    if delivery.CorruptReply in kinds:
        return "answer damaged"
    return "answer cut" if delivery.TruncateReply in kinds else ""


async def deliver(
    connection: Connection,
    frame: bytes,
    effects: Sequence[tuple[ActiveRule, object]],
    sleep: Sleep,
) -> delivery.Ending | None:
    """Send a frame as the effects say; how the connection ends then, None if it stays."""
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
            case delivery.ReorderReplies():
                await _serve_next(connection, effect.patience, sleep)
    for _ in range(times):
        if slow is None:
            await send(connection, frame)
        else:
            await _send_slowly(connection, frame, slow, sleep)
    return ending


async def send(connection: Connection, frame: bytes | memoryview) -> None:
    """Send all of a frame."""
    rest = connection._transport.send((frame,)) if len(frame) else ()
    if rest:
        await connection._transport.send_rest(rest)


async def _send_slowly(
    connection: Connection, frame: bytes, slow: delivery.Slow, sleep: Sleep
) -> None:
    view = memoryview(frame)
    size = slow.size
    for start in range(0, len(view), size):
        if start:
            await sleep(slow.pause_ms)
        await send(connection, view[start : start + size])


async def _serve_next(connection: Connection, patience_ms: int, sleep: Sleep) -> None:
    """Serve the connection's next request, if it comes in time, ahead of the answer at hand."""
    frame = await _frame_within(connection, patience_ms, sleep)
    if frame is None:
        return
    answer = connection._serve(frame)
    rest = await answer.sent() if isinstance(answer, Unanswered) else answer
    if rest:
        await connection._transport.send_rest(rest)


async def _frame_within(connection: Connection, patience_ms: int, sleep: Sleep) -> bytearray | None:
    """The next frame if its first bytes are there in time. Once they are, all of it is awaited."""
    frame = connection._next_frame()
    if frame is not None:
        return frame
    async with trio.open_nursery() as nursery:

        async def give_up() -> None:
            await sleep(patience_ms)
            nursery.cancel_scope.cancel()

        nursery.start_soon(give_up)
        await _receive(connection)
        nursery.cancel_scope.cancel()
    return await connection._read_frame() if connection._filled else None


async def _receive(connection: Connection) -> None:
    """Wait until something of the next frame is there."""
    if connection._start:
        connection._compact()
    inbox = connection._inbox[connection._filled :]
    connection._filled += await connection._transport.receive_into(inbox)
