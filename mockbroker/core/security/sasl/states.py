"""The states of a SASL connection, from its first frame to an authenticated user, as tables.

A client may send ApiVersions once. Then it selects a mechanism (SaslHandshake), and then it sends
tokens until it is authenticated. Other requests end the connection. In a session with a lifetime,
another SaslHandshake starts a re-authentication, with the same mechanism and the same user
(KIP-368).

A frame is admitted by its API before it is parsed (`ADMISSION`). Its result decides the next state
(`TRANSITIONS`).

Source: SaslServerAuthenticator. Its states that differ only in logging are one state here.
"""

from __future__ import annotations

from enum import Enum


class SaslState(Enum):
    """The state of a connection."""

    INITIAL = "initial"
    HANDSHAKE = "handshake"  # after ApiVersions; only a handshake may follow
    AUTHENTICATE = "authenticate"  # tokens
    COMPLETE = "complete"
    REAUTHENTICATE = "reauthenticate"  # a handshake on an established session
    MECHANISM_CHANGED = "mechanism changed"  # agreed; every frame closes the connection
    FAILED = "failed"  # the connection closes after the response


class FrameKind(Enum):
    """The kind of a frame, by its API key."""

    API_VERSIONS = "ApiVersions"
    HANDSHAKE = "SaslHandshake"
    TOKEN = "SaslAuthenticate"  # noqa: S105 - or a bare token after a handshake of version 0
    OTHER = "other"


class Admission(Enum):
    """Whether a frame is handled."""

    ADMIT = "admit"
    REFUSE = "refuse"  # answer ILLEGAL_SASL_STATE, then close
    CLOSE = "close"  # at once, without an answer


class SaslEvent(Enum):
    """The result of an admitted frame."""

    VERSIONS_ANSWERED = "versions answered"
    VERSIONS_REFUSED = "versions refused"  # the client may send another ApiVersions
    MECHANISM_AGREED = "mechanism agreed"
    MECHANISM_UNKNOWN = "mechanism unknown"
    MECHANISM_CHANGED = "mechanism changed"
    CHALLENGED = "challenged"  # the exchange needs another token
    PROVED = "proved"
    DENIED = "denied"
    REFUSED = "refused"
    SESSION_RENEWED = "session renewed"  # a handshake starts a re-authentication


_A, _R, _C = Admission.ADMIT, Admission.REFUSE, Admission.CLOSE
_KINDS = tuple(FrameKind)


def _row(*admissions: Admission) -> dict[FrameKind, Admission]:
    return dict(zip(_KINDS, admissions, strict=True))


# Columns: ApiVersions, SaslHandshake, SaslAuthenticate, other.
ADMISSION: dict[SaslState, dict[FrameKind, Admission]] = {
    SaslState.INITIAL: _row(_A, _A, _C, _C),
    SaslState.HANDSHAKE: _row(_C, _A, _C, _C),
    SaslState.AUTHENTICATE: _row(_R, _R, _A, _R),
    SaslState.COMPLETE: _row(_A, _A, _A, _A),
    SaslState.REAUTHENTICATE: _row(_C, _A, _C, _C),
    SaslState.MECHANISM_CHANGED: _row(_C, _C, _C, _C),
    SaslState.FAILED: _row(_C, _C, _C, _C),
}

_EVENTS = tuple(SaslEvent)


def _next(**cells: SaslState) -> dict[SaslEvent, SaslState | None]:
    """A row of the table; None for events that cannot happen."""
    return {event: cells.get(event.name.lower()) for event in _EVENTS}


TRANSITIONS: dict[SaslState, dict[SaslEvent, SaslState | None]] = {
    SaslState.INITIAL: _next(
        versions_answered=SaslState.HANDSHAKE,
        versions_refused=SaslState.INITIAL,
        mechanism_agreed=SaslState.AUTHENTICATE,
        mechanism_unknown=SaslState.FAILED,
    ),
    SaslState.HANDSHAKE: _next(
        mechanism_agreed=SaslState.AUTHENTICATE,
        mechanism_unknown=SaslState.FAILED,
    ),
    SaslState.AUTHENTICATE: _next(
        challenged=SaslState.AUTHENTICATE,
        proved=SaslState.COMPLETE,
        denied=SaslState.FAILED,
        refused=SaslState.FAILED,
    ),
    SaslState.COMPLETE: _next(
        versions_answered=SaslState.COMPLETE,
        versions_refused=SaslState.COMPLETE,
        session_renewed=SaslState.REAUTHENTICATE,
    ),
    SaslState.REAUTHENTICATE: _next(
        mechanism_agreed=SaslState.AUTHENTICATE,
        mechanism_unknown=SaslState.FAILED,
        mechanism_changed=SaslState.MECHANISM_CHANGED,
    ),
    SaslState.MECHANISM_CHANGED: _next(),
    SaslState.FAILED: _next(),
}
