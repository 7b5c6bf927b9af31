"""What can go wrong between bytes and structs. Errors name the field by path: `topics[2].name`."""

from __future__ import annotations


class ProtocolError(ValueError):
    """Base of this package's errors."""


class DecodeError(ProtocolError):
    """Bytes that Kafka's own parser would refuse.

    `path` names the field that could not be read, `byte` is the offset of its first byte in the
    buffer that was handed in, `reason` says what is wrong with it.
    """

    def __init__(self, path: str, byte: int, reason: str) -> None:
        super().__init__(f"{path} at byte {byte}: {reason}")
        self.path = path
        self.byte = byte
        self.reason = reason


class EncodeError(ProtocolError):
    """A struct that the wire cannot carry: a null that may not be, a number out of range."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class UnknownVersionError(ProtocolError):
    """A message that is not declared in the version asked for."""
