"""A network in memory: ports, transports and streams between clients and brokers of one trio run.

A *pipe* carries bytes in one direction: those in flight, and those that have arrived and are not
read. An *end* is one side of a connection, with the pipe that it reads and the pipe that it writes.
A broker's end is an *accepted transport*, a client's a *stream*.

A connection behaves like TCP: bytes arrive in order, in pieces, after a delay; a full pipe blocks
its writer; FIN follows the bytes before it; RST overtakes them. All random numbers come from one
generator.
"""

from __future__ import annotations

import errno
import operator
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import outcome
import trio

from mockbroker.server.config import PORT_MAX, ServerError
from mockbroker.server.network.acceptor import Accept
from mockbroker.server.network.pause_gate import PauseGate
from mockbroker.server.network.transport import Buffer
from mockbroker.simulation.virtual_run import VirtualClock

NO_PORT = 0
FIRST_PORT = 9092
FIRST_CLIENT_PORT = 32768
CLIENT_HOST = "127.0.0.1"
ANY_HOST = ("", "0.0.0.0", "::")  # noqa: S104 - a port in memory


class Wires(NamedTuple):
    """The properties of connections. Times are ms of virtual time."""

    latency_ms: tuple[int, int] = (0, 1)  # the bounds for each piece
    cut_share: float = 0.1  # the share of writes that arrive in several pieces
    pieces_max: int = 4
    buffer_bytes: int = 64 * 1024  # the capacity of a pipe


WIRES = Wires()


class MemoryNetwork:
    """The ports and connections of one virtual run."""

    def __init__(self, clock: VirtualClock, rng: random.Random, wires: Wires) -> None:
        self.clock = clock
        self.rng = rng
        self.wires = wires
        self._ports: dict[int, MemoryAcceptor] = {}
        self._reserved: set[int] = set()
        self._next_port = FIRST_PORT
        self._next_client_port = FIRST_CLIENT_PORT

    def listen(self, host: str, port: int) -> MemoryAcceptor:
        """As `ListenerNetwork.listen`."""
        if port in self._ports or port in self._reserved:
            raise ServerError(f"cannot listen on {host}:{port}: Address already in use")
        if not port:
            while self._next_port in self._ports:
                self._next_port += 1
            port = self._next_port
            self._next_port += 1
        if port > PORT_MAX:
            raise ServerError(f"cannot listen on {host}:{port}: no such port")
        opened = self._ports[port] = MemoryAcceptor(self, port)
        return opened

    def reserve(self, host: str, port: int) -> MemoryReservation:
        """As `ListenerNetwork.reserve`."""
        if port in self._ports or port in self._reserved:
            raise ServerError(f"cannot listen on {host}:{port}: Address already in use")
        return MemoryReservation(self._reserved, port)

    async def run(self) -> None:
        """As `ListenerNetwork.run`: nothing, callbacks of the clock carry the bytes."""

    def close(self) -> None:
        """As `ListenerNetwork.close`."""

    async def connect(self, port: int) -> MemoryStream:
        """A connection to a port. Raises ConnectionRefusedError."""
        await trio.lowlevel.checkpoint()
        delay_s = self.delay_s()
        if delay_s:
            await self.clock.sleep(delay_s)
        found = self._ports.get(port)
        if found is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        near, far = self._pair()
        self._next_client_port += 1
        found.connected(far, (CLIENT_HOST, self._next_client_port))
        return MemoryStream(near)

    def _pair(self) -> tuple[End, End]:
        up, down = Pipe(self), Pipe(self)
        return End(down, up), End(up, down)

    def delay_s(self) -> float:
        """The latency of the next piece."""
        low, high = self.wires.latency_ms
        # `randint` takes three times as long.
        return (low + int(self.rng.random() * (high - low + 1))) / 1000 if high else 0.0

    def pieces(self, data: bytes) -> list[bytes]:
        """The bytes of one write, cut into several pieces."""
        wires, rng = self.wires, self.rng
        if len(data) < 2:
            return [data]
        count = rng.randint(1, min(wires.pieces_max, len(data)) - 1)
        cuts = sorted(rng.sample(range(1, len(data)), count))
        return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    def forget(self, number: int) -> None:
        """A port is closed."""
        del self._ports[number]


class MemoryReservation:
    """The port of a stopped broker; a `Reservation`."""

    def __init__(self, reserved: set[int], port: int) -> None:
        """`reserved` has the reserved ports of a network."""
        self._reserved = reserved
        self._port = port
        reserved.add(port)

    def close(self) -> None:
        """As `Reservation.close`."""
        self._reserved.discard(self._port)


class MemoryAcceptor:
    """A port that clients of the same run connect to; an `Acceptor`."""

    def __init__(self, network: MemoryNetwork, port: int) -> None:
        self.port = port
        self._network = network
        self._waiting: deque[tuple[End, tuple[str, int]]] = deque()
        self._woken = trio.Event()
        self._closed = False

    def connected(self, end: End, peer: tuple[str, int]) -> None:
        """Queue a client's connection until it is accepted."""
        self._waiting.append((end, peer))
        self._woken.set()

    async def accept(self, accept: Accept, gate: PauseGate) -> None:
        """As `Acceptor.accept`."""
        while not self._closed:
            while self._waiting:
                if gate.shut:
                    await gate.wait()
                    continue
                end, peer = self._waiting.popleft()
                accept(MemoryLink(end), peer)
            self._woken = trio.Event()
            await self._woken.wait()

    def close(self) -> None:
        """As `Acceptor.close`. Connections that were not accepted are reset."""
        if self._closed:
            return
        self._closed = True
        self._network.forget(self.port)
        for end, _ in self._waiting:
            end.close(reset=True)
        self._waiting.clear()
        self._woken.set()


class Pipe:
    """The bytes of one direction of a connection."""

    __slots__ = (
        "_arrives_s",
        "_network",
        "_reader",
        "_watch",
        "_watches_end",
        "_writer",
        "arrived",
        "broken",
        "ended",
        "gone",
        "on_gone",
        "room",
    )

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._arrives_s = 0.0  # the arrival time of the last piece in flight
        self._reader: trio.lowlevel.Task | None = None
        self._writer: trio.lowlevel.Task | None = None
        self.room = network.wires.buffer_bytes
        self.arrived: deque[memoryview] = deque()
        self.ended = False  # FIN has arrived
        self.broken = False  # RST has
        self.gone = False  # the reader has closed its end
        self.on_gone: Callable[[], None] | None = None  # called if bytes arrive after that
        self._watch: Callable[[], None] | None = None  # called once
        self._watches_end = False  # FIN or RST, not bytes

    # -- writing -----------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send all bytes; the pipe must have room."""
        if not data:
            return
        self.room -= len(data)
        network = self._network
        if network.rng.random() >= network.wires.cut_share:
            self._send(partial(self._arrive, memoryview(data)))
        else:
            for piece in network.pieces(data):
                self._send(partial(self._arrive, memoryview(piece)))

    def end(self) -> None:
        """Send FIN after all bytes."""
        self._send(self._end)

    def _send(self, arrive: Callable[[], None]) -> None:
        clock = self._network.clock
        now_s = clock.current_time()
        at_s = max(now_s + self._network.delay_s(), self._arrives_s)
        if at_s <= now_s:
            arrive()
        else:
            self._arrives_s = at_s
            clock.call_at(at_s, arrive)

    def break_off(self) -> None:
        """RST: bytes in flight are lost, bytes that have arrived may still be read."""
        if not self.broken:
            self.broken = True
            self.wake_reader()
            self.wake_writer()
            self._notify(end=True)

    # -- arriving ----------------------------------------------------------------------------------

    def _arrive(self, piece: memoryview) -> None:
        if self.broken:
            return
        if self.gone:
            assert self.on_gone is not None
            self.on_gone()
            return
        self.arrived.append(piece)
        self.wake_reader()
        self._notify(end=False)

    def _end(self) -> None:
        self.ended = True
        self.wake_reader()
        self._notify(end=True)

    def watch(self, call: Callable[[], None], *, end: bool) -> None:
        """Call `call` once when bytes have arrived, or if `end` FIN or RST, unless `unwatch` comes
        before. If that has happened already, the call comes soon.
        """
        self._watch, self._watches_end = call, end
        has_happened = self.ended or self.broken if end else bool(self.arrived)
        if has_happened:
            clock = self._network.clock
            clock.call_at(clock.current_time(), partial(self._notify, end=end))

    def unwatch(self) -> None:
        """End the watch, if there is one."""
        self._watch = None

    def _notify(self, *, end: bool) -> None:
        call = self._watch
        if call is not None and end is self._watches_end:
            self._watch = None
            call()

    # -- reading -----------------------------------------------------------------------------------

    @property
    def readable(self) -> bool:
        """Whether a read would not wait: bytes have arrived, or none will arrive."""
        return bool(self.arrived) or self.ended or self.broken

    def take(self, bytes_max: int) -> memoryview:
        """At most so many arrived bytes; none at the end of the stream.

        The pipe must be `readable`. Raises ConnectionResetError.
        """
        if not self.arrived:
            if self.broken:
                raise reset_by_peer()
            return _NOTHING
        piece = self.arrived[0]
        if len(piece) > bytes_max:
            self.arrived[0] = piece[bytes_max:]
            piece = piece[:bytes_max]
        else:
            self.arrived.popleft()
        self.room += len(piece)
        # As in Linux, a writer is woken only for a third of the buffer.
        if self._writer is not None and 3 * self.room >= self._network.wires.buffer_bytes:
            self.wake_writer()
        return piece

    # -- waiting -----------------------------------------------------------------------------------

    async def wait_readable(self) -> None:
        """Wait until the pipe is readable."""
        if self._reader is not None:
            raise trio.BusyResourceError("another task reads from this stream already")
        self._reader = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort_reader)

    def _abort_reader(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._reader = None
        return trio.lowlevel.Abort.SUCCEEDED

    async def wait_room(self) -> None:
        """Wait until the pipe may have room."""
        if self._writer is not None:
            raise trio.BusyResourceError("another task writes to this stream already")
        self._writer = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort_writer)

    def _abort_writer(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._writer = None
        return trio.lowlevel.Abort.SUCCEEDED

    def wake_reader(self, error: BaseException | None = None) -> None:
        """Wake the task that waits to read, with `error` if given."""
        task, self._reader = self._reader, None
        if task is not None:
            trio.lowlevel.reschedule(task, _woken(error))

    def wake_writer(self, error: BaseException | None = None) -> None:
        """Wake the task that waits for room, with `error` if given."""
        task, self._writer = self._writer, None
        if task is not None:
            trio.lowlevel.reschedule(task, _woken(error))


_NOTHING = memoryview(b"")


def _woken(error: BaseException | None) -> outcome.Outcome[None]:
    return outcome.Value(None) if error is None else outcome.Error(error)


def reset_by_peer() -> ConnectionResetError:
    """The error of a read after RST."""
    return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


class End:
    """One side of a connection."""

    __slots__ = ("closed", "incoming", "outgoing")

    def __init__(self, incoming: Pipe, outgoing: Pipe) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.closed = False

    def write(self, parts: Sequence[Buffer]) -> Sequence[Buffer]:
        """Send the bytes for which the pipe has room; returns the rest. Raises OSError."""
        pipe = self.outgoing
        if self.closed:
            raise OSError(errno.EBADF, "Bad file descriptor")
        if pipe.broken:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        data = b"".join(parts)
        room = pipe.room
        if len(data) <= room:
            pipe.write(data)
            return ()
        if room > 0:
            pipe.write(data[:room])
        return (memoryview(data)[max(room, 0) :],)

    def close(self, *, reset: bool) -> None:
        """Close with FIN, or with RST if `reset` or if arrived bytes were not read."""
        if self.closed:
            return
        self.closed = True
        incoming, outgoing = self.incoming, self.outgoing
        incoming.wake_reader(trio.ClosedResourceError("this stream was closed meanwhile"))
        outgoing.wake_writer(trio.ClosedResourceError("this stream was closed meanwhile"))
        if reset or incoming.arrived:
            incoming.break_off()
            outgoing.break_off()
        else:
            outgoing.end()
            incoming.gone = True
            incoming.on_gone = self._reset
        incoming.arrived.clear()
        incoming.unwatch()

    def _reset(self) -> None:
        """Send RST, because bytes arrived after the close."""
        self.incoming.break_off()
        self.outgoing.break_off()


class MemoryLink:
    """A broker's side of a connection; an `AcceptedTransport`."""

    __slots__ = ("_end",)

    def __init__(self, end: End) -> None:
        self._end = end

    @property
    def descriptor(self) -> int | None:
        """As `AcceptedTransport.descriptor`."""
        return None

    async def receive_into(self, view: memoryview, *, expect_data: bool = False) -> int:
        """As `Transport.receive_into`."""
        end, pipe = self._end, self._end.incoming
        if not expect_data and pipe.readable:
            await trio.lowlevel.checkpoint()  # other tasks run, as during a read from a socket
        while not end.closed:
            if pipe.readable:
                piece = pipe.take(len(view))
                size = len(piece)
                view[:size] = piece
                return size
            await pipe.wait_readable()
        raise trio.ClosedResourceError

    def send(self, parts: Sequence[Buffer]) -> Sequence[Buffer]:
        """As `Transport.send`."""
        return self._end.write(parts)

    async def send_rest(self, parts: Sequence[Buffer]) -> None:
        """As `Transport.send_rest`."""
        end = self._end
        while parts:
            if end.closed:
                raise trio.ClosedResourceError
            if end.outgoing.room <= 0 and not end.outgoing.broken:
                await end.outgoing.wait_room()
            parts = end.write(parts)

    def close(self, *, reset: bool = False) -> None:
        """As `Transport.close`."""
        self._end.close(reset=reset)

    def expect(self, on_readable: Callable[[], None]) -> None:
        """As `AcceptedTransport.expect`."""
        self._end.incoming.watch(on_readable, end=False)

    def expect_close(self, on_close: Callable[[], None]) -> None:
        """As `AcceptedTransport.expect_close`."""
        self._end.incoming.watch(on_close, end=True)

    def forget(self) -> None:
        """As `AcceptedTransport.forget`."""
        self._end.incoming.unwatch()


class MemoryStream(trio.abc.HalfCloseableStream):
    """A client's side of a connection, as any of trio's streams.

    What is sent may arrive in pieces and later, so what is received comes in pieces as well.
    """

    def __init__(self, end: End) -> None:
        self.end = end
        self._sending = False
        self._eof = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """As `trio.abc.SendStream.send_all`."""
        end = self.end
        with self._one_writer():
            await trio.lowlevel.checkpoint()
            parts: Sequence[Buffer] = (data,)
            while True:
                if end.closed:
                    raise trio.ClosedResourceError("this stream was closed meanwhile")
                try:
                    parts = end.write(parts)
                except OSError as error:
                    raise trio.BrokenResourceError(str(error)) from error
                if not parts:
                    return
                if not end.outgoing.broken:  # RST may have come at once
                    await end.outgoing.wait_room()

    async def wait_send_all_might_not_block(self) -> None:
        """As `trio.abc.SendStream.wait_send_all_might_not_block`."""
        pipe = self.end.outgoing
        with self._one_writer():
            await trio.lowlevel.checkpoint()
            while pipe.room <= 0 and not pipe.broken:
                await pipe.wait_room()

    @contextmanager
    def _one_writer(self) -> Iterator[None]:
        if self._sending:
            raise trio.BusyResourceError("another task writes to this stream already")
        if self.end.closed or self._eof:
            raise trio.ClosedResourceError("this stream was closed already")
        self._sending = True
        try:
            yield
        finally:
            self._sending = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """As `trio.abc.ReceiveStream.receive_some`; after RST raises BrokenResourceError."""
        wanted = sys.maxsize if max_bytes is None else operator.index(max_bytes)
        if wanted < 1:
            raise ValueError(f"so many bytes cannot be received: {wanted}")
        end, pipe = self.end, self.end.incoming
        if end.closed:
            raise trio.ClosedResourceError("this stream was closed already")
        if pipe.readable:
            await trio.lowlevel.checkpoint()
        else:
            await pipe.wait_readable()
        if end.closed:
            raise trio.ClosedResourceError("this stream was closed meanwhile")
        try:
            return bytes(pipe.take(wanted))
        except ConnectionResetError as error:
            raise trio.BrokenResourceError(str(error)) from error

    async def send_eof(self) -> None:
        """As `trio.abc.HalfCloseableStream.send_eof`."""
        if self.end.closed:
            raise trio.ClosedResourceError("this stream was closed already")
        if self._sending:
            raise trio.BusyResourceError("another task writes to this stream already")
        await trio.lowlevel.checkpoint()
        if not self._eof:
            self._eof = True
            self.end.outgoing.end()

    async def aclose(self) -> None:
        """Close with FIN, or with RST where something was not read."""
        self.end.close(reset=False)
        await trio.lowlevel.checkpoint()

    def reset(self) -> None:
        """Close with RST: the broker loses what has not arrived."""
        self.end.close(reset=True)
