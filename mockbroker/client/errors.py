"""The errors of the client, each in one sentence."""

from __future__ import annotations

from mockbroker_protocol.errors import ERROR_CODES


class ClientError(Exception):
    """Base of this package's errors. `retriable`: a retry, elsewhere or later, may succeed."""

    retriable = False


class ConnectError(ClientError):
    """No connection to a broker: refused, unresolvable or timed out."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"cannot connect to {host}:{port}: {reason}")
        self.host = host
        self.port = port
        self.retriable = True


class BootstrapError(ClientError):
    """None of the bootstrap servers could be reached."""


class ConnectionClosedError(ClientError):
    """The broker closed the connection after `bytes_read` bytes of a frame."""

    def __init__(self, peer: str, bytes_read: int, reason: str = "closed the connection") -> None:
        after = f" after {bytes_read} bytes of an answer" if bytes_read else ""
        super().__init__(f"{peer} {reason}{after}")
        self.bytes_read = bytes_read
        self.retriable = True


class RequestTimeoutError(ClientError):
    """No answer within the timeout."""


class ResponseError(ClientError):
    """A response that does not fit its request: wrong correlation id, or bytes left over."""


class UnsupportedVersionError(ClientError):
    """The broker and this client have no version of an API in common."""


class UnknownTopicError(ClientError):
    """The topic or the partition does not exist."""


class BrokerError(ClientError):
    """An error code in a response. `what` names the request, topic or group."""

    def __init__(self, code: int, what: str, message: str | None = None) -> None:
        self.code = code
        known = ERROR_CODES.get(code)
        if known is None:
            name, default = f"error {code}", "This client does not know the error code."
        else:
            name, default = known.name, known.message
            self.retriable = known.retriable
        super().__init__(f"{what}: {message or default} ({name})")


def check(code: int, what: str, message: str | None = None) -> None:
    """Raise `BrokerError` unless `code` is 0."""
    if code:
        raise BrokerError(code, what, message)
