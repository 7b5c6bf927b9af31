"""Errors between bytes and structs. They name the field by path: `topics[2].name`."""

from __future__ import annotations


class ProtocolError(ValueError):
    """Base of this package's errors."""


class DecodeError(ProtocolError):
    """Bytes that Kafka's own parser would refuse.

    `path` names the unreadable field, `byte` is the offset of its first byte in the given buffer,
    `reason` the error.
    """

    def __init__(self, path: str, byte: int, reason: str) -> None:
        super().__init__(f"{path} at byte {byte}: {reason}")
        self.path = path
        self.byte = byte
        self.reason = reason


class TooManyElementsError(DecodeError):
    """A message holds more elements than the caller of `Codec.decode_untrusted` allows."""


class EncodeError(ProtocolError):
    """A struct that the wire cannot carry: a null that may not be, a number out of range."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class StringTooLongError(EncodeError):
    """A string takes more bytes than a message may carry (32,767)."""


class UnknownVersionError(ProtocolError):
    """A message that is not declared in this version."""
