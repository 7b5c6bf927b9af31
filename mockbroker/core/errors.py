"""Refusals as exceptions: one for requests, one for configuration given at start."""

from __future__ import annotations

from mockbroker_protocol import ErrorCode


class ApiError(Exception):
    """A request, or one topic or resource of it, is refused with a Kafka error code.

    The counterpart of Kafka's ApiException: raised where the condition is found, turned into an
    error code and message by the handler that knows the shape of its response.
    """

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message


class ConfigError(ValueError):
    """A configuration key is unknown or its value is not valid. `str()` is one line for people."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class ConfigValueError(ConfigError):
    """A value that a config does not accept. `message` is that of Kafka's ConfigException."""

    def __init__(self, key: str, message: str) -> None:
        ValueError.__init__(self, message)
        self.key = key
        self.reason = message


class ActionError(ValueError):
    """An action on the cluster (stop a broker, move a leader, …) cannot be carried out.

    `str()` is one line for people: what was asked for, and what stands in the way.
    """


def first_error(group: BaseException) -> BaseException:
    """The first error in a group, however deep; an error that is no group is it itself."""
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
