"""Exceptions for requests, configs and actions that are refused."""

from __future__ import annotations

from mockbroker_protocol import ErrorCode


class ApiError(Exception):
    """A request, or one topic or resource of it, is refused with a Kafka error code.

    The handler puts the code and the message into its response (ApiException).
    """

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message


class LimitError(ApiError):
    """What a request asks for exceeds a protective limit, whose config is `limit`."""

    def __init__(self, error: ErrorCode, message: str, limit: str) -> None:
        super().__init__(error, message)
        self.limit = limit


class ConfigError(ValueError):
    """A config key is unknown or its value is invalid. `str()` is one line."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class ConfigValueError(ConfigError):
    """An invalid value of a config. `message` is that of Kafka's ConfigException."""

    def __init__(self, key: str, message: str) -> None:
        ValueError.__init__(self, message)
        self.key = key
        self.reason = message


class ActionError(ValueError):
    """An action on the cluster (stop a broker, move a leader, …) cannot be carried out.

    `str()` is one line: the action and the obstacle.
    """


def first_error(group: BaseException) -> BaseException:
    """The first error in nested groups; an error that is not a group is returned."""
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
