"""A client of a cluster, in virtual time mostly."""

from __future__ import annotations

from struct import Struct
from typing import Any, Protocol

import trio

from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.framing import request_frame
from mockbroker_protocol.headers import RequestHeader, decode_response_header
from tests.fuzz.work import Broken

ANSWER_S = 0.05  # of virtual time: a request may be parked for long
CANARY_S = 3_600.0
_SIZE = Struct(">i")


class Stream(Protocol):
    """A connection in memory, or over TLS."""

    async def send_all(self, data: bytes) -> None: ...
    async def receive_some(self) -> bytes:
        """The next bytes; empty at the end."""
        ...

    def reset(self) -> None: ...


class Client:
    """One connection, with one request in flight."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._received = bytearray()
        self._asked: tuple[ApiKey, int] | None = None
        self._number = 0
        self.answer: Any = None
        self.is_waiting = False
        self.closed = False

    async def send(self, frame: bytes) -> None:
        self._asked = None
        self.is_waiting = True
        self.answer = None
        try:
            await self._stream.send_all(frame)
        except trio.BrokenResourceError:
            self.close()

    async def ask(self, key: ApiKey, version: int, frame: bytes) -> None:
        self._number += 1
        await self.send(frame[:8] + _SIZE.pack(self._number) + frame[12:])
        self._asked = key, version

    async def answer_to(self, key: ApiKey, version: int, request: Any) -> Any:
        """The answer, which has to come."""
        header = RequestHeader(key, version, 0, "canary")
        await self.ask(key, version, b"".join(request_frame(header, request)))
        if not await self.wait(CANARY_S) or self.answer is None:
            raise Broken(f"the canary gets no answer to {key.name}")
        return self.answer

    async def wait(self, seconds: float = ANSWER_S) -> bool:
        """Wait for the answer, or the end of the connection; returns whether it came."""
        with trio.move_on_after(seconds):
            while not self.closed and not self._whole():
                try:
                    data = await self._stream.receive_some()
                except trio.BrokenResourceError:
                    data = b""
                if not data:
                    self.close()
                self._received += data
        return not self.is_waiting or self.closed

    def _whole(self) -> bool:
        data = self._received
        if len(data) < 4:
            return False
        size = _SIZE.unpack_from(data)[0]
        if len(data) < size + 4:
            return False
        frame = bytes(data[4 : size + 4])
        del data[: size + 4]
        self.is_waiting = False
        if self._asked is not None:
            self._open(frame, *self._asked)
        return True

    def _open(self, frame: bytes, key: ApiKey, version: int) -> None:
        header, position = decode_response_header(frame, key, version)
        if header.correlation_id != self._number:
            raise Broken(f"correlation id {header.correlation_id}, asked {self._number}")
        self.answer, end = response_codec(key, version).decode(memoryview(frame), position)
        if end != len(frame):
            raise Broken(f"{len(frame) - end} bytes after an answer of {key.name} v{version}")

    def close(self) -> None:
        self.closed = True
        self._stream.reset()
