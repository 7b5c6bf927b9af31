"""Runs the scripts of simulated clients over connections in memory.

A client has one connection to each broker, and one request in flight. Its connections have faults:
they break between requests, inside a frame and before an answer; frames are sent slowly, answers
are read slowly. `Troubles` has the shares of these faults; the times are drawn
from the client's generator.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from mockbroker.client.connection import decode_response
from mockbroker.client.errors import ClientError
from mockbroker.simulation.memory_network import End
from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut, Script, Sleep
from mockbroker_protocol import ApiKey
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.framing import FRAME_BYTES_MAX, request_frame
from mockbroker_protocol.headers import RequestHeader

if TYPE_CHECKING:
    from mockbroker.simulation.streams import SimulatedCluster

_SIZE = Struct(">i").unpack_from


class Troubles(NamedTuple):
    """The faults of simulated clients' connections, as shares of all calls."""

    break_before_share: float = 0.005  # the connection breaks before a request
    half_frame_share: float = 0.005  # the client disconnects inside its frame
    break_after_share: float = 0.01  # the client disconnects some time after its request
    slow_frame_share: float = 0.02  # the frame is sent in parts, with pauses
    slow_read_share: float = 0.02  # the answer is read in small pieces
    pause_ms_max: int = 50


NO_TROUBLES = Troubles(0.0, 0.0, 0.0, 0.0, 0.0)

_BREAK_BEFORE, _HALF_FRAME, _BREAK_AFTER, _SLOW_FRAME, _SLOW_READ = range(5)
_NO_TROUBLE = -1
SLOW_READ_BYTES = 64


class InvalidResponse(Disconnected):
    """A frame that is not a response to the request. The client closes the connection, as Java's.

    A broker sends such a frame only because of a rule.
    """


class StreamDriver:
    """Runs one client's script over its connections.

    `counts` has the number of connections and of each fault.
    """

    def __init__(
        self,
        sim: SimulatedCluster,
        client_id: str,
        rng: random.Random,
        troubles: Troubles = NO_TROUBLES,
        on_call: Callable[[Call], None] | None = None,
        on_call_done: Callable[[Call, object, int], None] | None = None,
        correlation_ids: Iterator[int] | None = None,
    ) -> None:
        """`on_call` gets each call before it is made; `on_call_done` gets it afterwards, with its
        answer or exception and the time of the call (ms since the epoch). `correlation_ids` are
        those of the requests, in order; other drivers may take from them as well.
        """
        self._sim = sim
        self._client_id = client_id
        self._rng = rng
        self._shares = troubles[:5]
        self._trouble_share = sum(self._shares)
        self._pause_ms_max = troubles.pause_ms_max
        self._wires: dict[int, _Wire] = {}
        self._on_call = on_call
        self._on_call_done = on_call_done
        self._script: Script | None = None
        self._over = False
        self._scope = trio.CancelScope()
        self._correlation_ids = count(1) if correlation_ids is None else correlation_ids
        self.awaited: int | None = None  # the correlation id of the request in flight
        self.counts: Counter[str] = Counter()

    async def run(self, script: Script) -> None:
        """Run the script to its end, or until `crash`."""
        self._script = script
        answer: Any = None
        error: Exception | None = None
        try:
            with self._scope:
                while True:
                    try:
                        step = script.send(answer) if error is None else script.throw(error)
                    except StopIteration:
                        return
                    answer = error = None
                    if type(step) is Sleep:
                        await self._sim.sleep(step.ms)
                        if self._over:
                            return
                    else:
                        assert type(step) is Call
                        since_ms = self._sim.now_ms
                        if self._on_call is not None:
                            self._on_call(step)
                        try:
                            answer = await self._call(step)
                        except (Disconnected, RequestTimedOut) as failed:
                            error = failed
                        if self._over:
                            return
                        if self._on_call_done is not None:
                            self._on_call_done(step, error or answer, since_ms)
        finally:
            self._end(reset=False)

    def crash(self) -> None:
        """End the client now, like a killed process: its connections are reset."""
        self._scope.cancel()
        self._end(reset=True)

    def break_off(self) -> None:
        """Break all connections, like a network that fails."""
        for wire in self._wires.values():
            wire.break_off()

    def end_troubles(self) -> None:
        """Cause no more faults."""
        self._shares = NO_TROUBLES[:5]
        self._trouble_share = 0.0

    def _end(self, *, reset: bool) -> None:
        self._over = True
        self.awaited = None
        if self._script is not None:
            self._script.close()
        for wire in self._wires.values():
            wire.end.close(reset=reset)
        self._wires.clear()

    async def _call(self, call: Call) -> Any:
        trouble = self._trouble()
        wire = self._wires.get(call.node_id)
        try:
            if wire is None:
                wire = self._wires[call.node_id] = await self._connected(call.node_id)
            if trouble == _BREAK_BEFORE:
                raise Disconnected("the connection broke before the request")
            self.awaited = next(self._correlation_ids)
            header = RequestHeader(call.api_key, call.version, self.awaited, self._client_id)
            return await wire.ask(call, header, trouble)
        except (Disconnected, RequestTimedOut):
            if wire is not None:
                wire.end.close(reset=self._rng.random() < 0.5)
                self._wires.pop(call.node_id, None)
            raise
        except (ClientError, DecodeError) as error:
            assert wire is not None
            wire.end.close(reset=False)
            del self._wires[call.node_id]
            raise InvalidResponse(str(error)) from error
        finally:
            self.awaited = None

    async def _connected(self, node_id: int) -> _Wire:
        try:
            stream = await self._sim.connect(node_id)
        except ConnectionRefusedError as error:
            raise Disconnected(f"broker {node_id} refused the connection") from error
        self.counts["connections"] += 1
        return _Wire(self._sim, stream.end, self._rng, self._pause_ms_max)

    def _trouble(self) -> int:
        """The fault of the next call."""
        if not self._trouble_share:
            return _NO_TROUBLE
        drawn = self._rng.random()
        if drawn >= self._trouble_share:
            return _NO_TROUBLE
        for trouble, share in enumerate(self._shares):
            drawn -= share
            if drawn < 0:
                self.counts[Troubles._fields[trouble].removesuffix("_share")] += 1
                return trouble
        return _NO_TROUBLE


class _Wire:
    """The client's side of a connection to one broker."""

    __slots__ = ("_clock", "_given_up", "_pause_ms_max", "_rng", "end")

    def __init__(
        self, sim: SimulatedCluster, end: End, rng: random.Random, pause_ms_max: int
    ) -> None:
        self.end = end
        self._clock = sim.clock
        self._rng = rng
        self._pause_ms_max = pause_ms_max
        self._given_up: type[Exception] | None = None

    async def ask(self, call: Call, header: RequestHeader, trouble: int) -> Any:
        """The answer to a call. Raises Disconnected, RequestTimedOut, and ClientError or
        DecodeError for a frame that is not its response.
        """
        frame = b"".join(request_frame(header, call.request))
        clock = self._clock
        due = clock.call_at(clock.current_time() + call.timeout_ms / 1000, self._time_out)
        broken = None
        try:
            if trouble == _HALF_FRAME:
                frame = frame[: self._rng.randrange(1, len(frame))]
            await self._send(frame, slowly=trouble == _SLOW_FRAME)
            if trouble == _HALF_FRAME:
                await self._pause()
                raise Disconnected("the connection broke inside of the request")
            if call.api_key == ApiKey.PRODUCE and not call.request.acks:
                return None
            if trouble == _BREAK_AFTER:
                at_s = clock.current_time() + self._drawn_s()
                broken = clock.call_at(at_s, self._break)
            answer = await self._receive(slowly=trouble == _SLOW_READ)
        except (OSError, trio.ClosedResourceError) as error:
            raise Disconnected(str(error)) from error
        finally:
            due.cancel()
            if broken is not None:
                broken.cancel()
        return decode_response(answer, call.api_key, call.version, header.correlation_id)

    # -- timeouts and breaks -----------------------------------------------------------------------

    def break_off(self) -> None:
        """Break the connection, and drop the bytes that have arrived."""
        self.end.incoming.arrived.clear()
        self.end.incoming.break_off()
        self.end.outgoing.break_off()

    def _time_out(self) -> None:
        self._give_up(RequestTimedOut)

    def _break(self) -> None:
        self._give_up(Disconnected)

    def _give_up(self, why: type[Exception]) -> None:
        self._given_up = why
        self.end.incoming.wake_reader()
        self.end.outgoing.wake_writer()

    def _check(self) -> None:
        if self._given_up is RequestTimedOut:
            raise RequestTimedOut("no answer within the timeout")
        if self._given_up is not None:
            raise Disconnected("the connection broke before the answer")

    # -- bytes -------------------------------------------------------------------------------------

    async def _send(self, frame: bytes, *, slowly: bool) -> None:
        if slowly:
            cut = self._rng.randrange(1, len(frame))
            await self._send(frame[:cut], slowly=False)
            await self._pause()
            frame = frame[cut:]
        rest = self.end.write((frame,))
        while rest:
            await self.end.outgoing.wait_room()
            self._check()
            rest = self.end.write(rest)

    async def _receive(self, *, slowly: bool) -> bytearray:
        """The next frame without its size."""
        pipe = self.end.incoming
        data = bytearray()
        size = -4
        while len(data) < 4 or len(data) < size + 4:
            if not pipe.readable:
                await pipe.wait_readable()
                self._check()
                continue
            if slowly:
                await self._pause(SLOW_READ_BYTES)
                self._check()
            wanted = 4 + max(size, 0) - len(data)
            piece = pipe.take(min(wanted, SLOW_READ_BYTES) if slowly else wanted)
            if not piece:
                raise Disconnected("the broker closed the connection")
            data += piece
            if size < 0 and len(data) >= 4:
                size = _SIZE(data)[0]
                if not 0 <= size <= FRAME_BYTES_MAX:
                    raise DecodeError("size", 0, f"a frame of {size} bytes")
        del data[:4]
        return data

    async def _pause(self, divisor: int = 1) -> None:
        await self._clock.sleep(self._drawn_s() / divisor)

    def _drawn_s(self) -> float:
        # The median is 7 ms, because most answers take a few ms.
        return (int((self._pause_ms_max + 1) ** self._rng.random()) - 1) / 1000
