"""What can go wrong between a client and a cluster, each in one sentence for a human."""

from __future__ import annotations

from mockbroker_protocol import ErrorCode

_BY_CODE = {int(error): error for error in ErrorCode}


class ClientError(Exception):
    """Base of what this package raises. `retriable`: trying again, elsewhere or later, may help."""

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
    """The broker closed the connection. `bytes_read` of the frame at hand had come by then."""

    def __init__(self, peer: str, bytes_read: int, reason: str = "closed the connection") -> None:
        after = f" after {bytes_read} bytes of an answer" if bytes_read else ""
        super().__init__(f"{peer} {reason}{after}")
        self.bytes_read = bytes_read
        self.retriable = True


class RequestTimeoutError(ClientError):
    """No answer within the timeout."""


class ResponseError(ClientError):
    """An answer that does not fit its request: another correlation id, or bytes left over."""


class UnsupportedVersionError(ClientError):
    """The broker and this client have no version of an API in common."""


class UnknownTopicError(ClientError):
    """The topic or the partition does not exist."""


class BrokerError(ClientError):
    """An error code in an answer. `what` says which request, topic or group it is about."""

    def __init__(self, code: int, what: str, message: str | None = None) -> None:
        self.code = code
        known = _BY_CODE.get(code)
        if known is None:
            name, sentence = f"error {code}", "This client does not know the error code."
        else:
            name, sentence = known.name, known.sentence
            self.retriable = known.retriable
        super().__init__(f"{what}: {message or sentence} ({name})")


def check(code: int, what: str, message: str | None = None) -> None:
    """Raise `BrokerError` unless `code` is 0."""
    if code:
        raise BrokerError(code, what, message)
