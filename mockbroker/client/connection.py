"""One blocking TCP connection to one broker.

`send` sends typed requests. `send_raw` writes any bytes, such as invalid requests, and `read_frame`
returns the next frame. Both raise when the broker has closed the connection.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Self

from mockbroker.client.errors import (
    ConnectError,
    ConnectionClosedError,
    RequestTimeoutError,
    ResponseError,
)
from mockbroker.client.versions import VersionRange, choose_version
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.framing import request_frame
from mockbroker_protocol.headers import RequestHeader, decode_response_header
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

DEFAULT_TIMEOUT_S = 30.0
# A Fetch response of a real broker stays below 55 MiB unless one batch is larger.
FRAME_BYTES_MAX = 256 * 1024 * 1024
API_VERSIONS_VERSION = 4

_size = struct.Struct(">i")
_error_code = struct.Struct(">h")


def api_key_of(message: object) -> ApiKey:
    """The API of a generated struct: its module bears the API's name."""
    return ApiKey[type(message).__module__.rpartition(".")[2].upper()]


class Connection:
    """A connection whose responses are read in the order of the requests.

    Raises `ConnectError`. `timeout_s` limits connecting and each wait for bytes.
    """

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str | None = "mockbroker-client",
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
    ) -> None:
        self.peer = f"{host}:{port}"
        self.client_id = client_id
        self._next_correlation_id = 0
        self._versions: dict[int, VersionRange] | None = None
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except TimeoutError:
            raise ConnectError(host, port, f"no answer within {timeout_s} s") from None
        except OSError as error:
            raise ConnectError(host, port, (error.strerror or str(error)).lower()) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def timeout_s(self) -> float | None:
        """The limit of each wait for bytes, in seconds; None without one. It can be set."""
        return self._socket.gettimeout()

    @timeout_s.setter
    def timeout_s(self, timeout_s: float | None) -> None:
        self._socket.settimeout(timeout_s)

    def close(self) -> None:
        """Close this side; may be called again."""
        self._socket.close()

    def fileno(self) -> int:
        """For `select`: readable once an answer, or the broker's close, has arrived."""
        return self._socket.fileno()

    # ---- typed requests

    def send(self, message: object, version: int | None = None) -> Any:
        """Send a typed request and return the typed response.

        The default `version` is the newest that both sides have. Raises
        `ConnectionClosedError`, `RequestTimeoutError`, `UnsupportedVersionError`, `ResponseError`
        and the codec's `DecodeError`.
        """
        api_key = api_key_of(message)
        if version is None:
            version = self.version_of(api_key)
        correlation_id = self.write(message, version)
        return self.read(api_key, version, correlation_id)

    def write(self, message: object, version: int) -> int:
        """Send a typed request without waiting for the answer; returns its correlation id."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        self.send_raw(encode_request(message, version, correlation_id, self.client_id))
        return correlation_id

    def read(self, api_key: int, version: int, correlation_id: int | None = None) -> Any:
        """The next answer, decoded as that to (`api_key`, `version`).

        Raises `ResponseError` if it has another correlation id than the given one, or more bytes
        than the message.
        """
        return decode_response(self.read_frame(), api_key, version, correlation_id)

    def version_of(self, api_key: ApiKey) -> int:
        """The newest version of an API that the broker and this client have in common.

        Raises `UnsupportedVersionError` when there is none.
        """
        return choose_version(api_key, self.api_versions().get(int(api_key)), self.peer)

    def api_versions(self) -> dict[int, VersionRange]:
        """The versions that the broker supports, requested once for each connection."""
        if self._versions is None:
            response = self._ask_api_versions(API_VERSIONS_VERSION)
            self._versions = {
                api.api_key: VersionRange(api.min_version, api.max_version)
                for api in response.api_keys
            }
        return self._versions

    def _ask_api_versions(self, version: int) -> ApiVersionsResponse:
        request = ApiVersionsRequest(client_software_name="mockbroker", client_software_version="1")
        correlation_id = self.write(request, version)
        frame = self.read_frame()
        if _error_code.unpack_from(frame, 4)[0] == ErrorCode.UNSUPPORTED_VERSION and version > 0:
            return self._ask_api_versions(_highest_offered(frame, correlation_id))
        response: ApiVersionsResponse = decode_response(
            frame, ApiKey.API_VERSIONS, version, correlation_id
        )
        return response

    # ---- any bytes

    def send_raw(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes unchanged. Raises `ConnectionClosedError` if the broker is gone."""
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise RequestTimeoutError(
                f"{self.peer} took no more bytes for {self.timeout_s} s"
            ) from None
        except OSError as error:
            raise ConnectionClosedError(self.peer, 0, f"broke the connection: {error}") from None

    def shutdown_write(self) -> None:
        """Send FIN; responses can still be read."""
        self._socket.shutdown(socket.SHUT_WR)

    def read_frame(self) -> bytearray:
        """The next frame without its size, as bytes.

        Raises `ConnectionClosedError` at the broker's close, `RequestTimeoutError` when nothing
        comes, and `ResponseError` for a size that no frame has.
        """
        size = _size.unpack(self._read_exactly(_size.size, 0))[0]
        if not 0 <= size <= FRAME_BYTES_MAX:
            raise ResponseError(f"{self.peer} sent a frame of {size} bytes")
        return self._read_exactly(size, _size.size)

    def wait_closed(self, timeout_s: float | None = None) -> bool:
        """Whether the broker closes the connection, sending nothing, within the timeout."""
        usual_s = self.timeout_s
        if timeout_s is not None:
            self.timeout_s = timeout_s
        try:
            return self._socket.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True  # a reset is a close too
        finally:
            self.timeout_s = usual_s

    def _read_exactly(self, size: int, read_before: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        at = 0
        while at < size:
            try:
                count = self._socket.recv_into(view[at:])
            except TimeoutError:
                raise RequestTimeoutError(
                    f"no answer from {self.peer} within {self.timeout_s} s"
                ) from None
            except OSError as error:
                reason = f"broke the connection: {error}"
                raise ConnectionClosedError(self.peer, read_before + at, reason) from None
            if count == 0:
                raise ConnectionClosedError(self.peer, read_before + at)
            at += count
        return data


def _highest_offered(frame: bytearray, correlation_id: int) -> int:
    """The ApiVersions version that an older broker offers when it refuses a newer one.

    Kafka answers in version 0 then (KIP-511). For other answers this is 0.
    """
    try:
        answer = decode_response(frame, ApiKey.API_VERSIONS, 0, correlation_id)
    except (DecodeError, ResponseError):
        return 0
    return max((api.max_version for api in answer.api_keys), default=0)


def encode_request(
    message: object, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The whole frame of a typed request, size included."""
    header = RequestHeader(
        api_key=api_key_of(message),
        api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return b"".join(request_frame(header, message))


def decode_response(
    frame: bytes | bytearray, api_key: int, version: int, correlation_id: int | None = None
) -> Any:
    """The message in a response frame. Raises `ResponseError` and `DecodeError`."""
    codec = response_codec(api_key, version)
    header, pos = decode_response_header(frame, api_key, version)
    if correlation_id is not None and header.correlation_id != correlation_id:
        raise ResponseError(
            f"the answer has correlation id {header.correlation_id} instead of {correlation_id}"
        )
    message, end = codec.decode(frame, pos)
    if end != len(frame):
        raise ResponseError(f"{len(frame) - end} bytes after the {type(message).__name__}")
    return message
