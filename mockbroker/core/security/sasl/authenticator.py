"""The SASL authentication of one connection: the interpreter of the tables in `states`."""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.core.security.principals import ANONYMOUS, user
from mockbroker.core.security.sasl.mechanism import DeniedError, Mechanism
from mockbroker.core.security.sasl.realm import Realm
from mockbroker.core.security.sasl.states import (
    ADMISSION,
    TRANSITIONS,
    Admission,
    FrameKind,
    SaslEvent,
    SaslState,
)
from mockbroker_protocol import ApiKey, ErrorCode

_KINDS = {
    int(ApiKey.API_VERSIONS): FrameKind.API_VERSIONS,
    int(ApiKey.SASL_HANDSHAKE): FrameKind.HANDSHAKE,
    int(ApiKey.SASL_AUTHENTICATE): FrameKind.TOKEN,
}
_API_KEYS = frozenset(map(int, ApiKey))
# An earlier re-authentication is an ordinary request: ILLEGAL_SASL_STATE (KafkaChannel).
REAUTHENTICATION_INTERVAL_MIN_MS = 1000


class SaslResponse(NamedTuple):
    """The response to a handshake or a token; it has a message only with an error."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    token: bytes = b""
    session_lifetime_ms: int = 0


class Authenticator:
    """The SASL authentication of one connection (SaslServerAuthenticator).

    `reason` is the reason of a failure for the log; it has no secret. `expires_ms` is the end of
    the session (ms since the epoch), or None.
    """

    __slots__ = (
        "_mechanism",
        "_realm",
        "_renewed_ms",
        "by_token",
        "denied_next",
        "expires_ms",
        "mechanism_name",
        "principal",
        "reason",
        "speaks_raw",
        "state",
    )

    def __init__(self, realm: Realm) -> None:
        self.state = SaslState.INITIAL
        self.principal = ANONYMOUS
        self.mechanism_name = ""
        self.expires_ms: int | None = None
        self.reason = ""
        self.by_token = False  # authenticated by a delegation token
        self.denied_next = ""  # the message with which a rule refuses the next token
        self.speaks_raw = False  # after a handshake of version 0, frames are bare tokens
        self._realm = realm
        self._mechanism: Mechanism | None = None
        self._renewed_ms: int | None = None

    @property
    def complete(self) -> bool:
        return self.state is SaslState.COMPLETE

    @property
    def failed(self) -> bool:
        return self.state is SaslState.FAILED

    @property
    def is_reauthenticating(self) -> bool:
        """Whether this is a re-authentication."""
        return self._renewed_ms is not None

    @property
    def expects_handshake(self) -> bool:
        """Whether a SaslHandshake is allowed now."""
        return self.state in (SaslState.INITIAL, SaslState.HANDSHAKE, SaslState.REAUTHENTICATE)

    @property
    def expects_token(self) -> bool:
        """Whether a token is allowed now."""
        return self.state is SaslState.AUTHENTICATE

    # -- requests ----------------------------------------------------------------------------------

    def admit(self, api_key: int, now_ms: int) -> Admission:
        """The admission of a frame by its API key.

        A handshake in a session with a lifetime starts a re-authentication.
        """
        kind = _KINDS.get(api_key, FrameKind.OTHER)
        if self.state is SaslState.COMPLETE and self.expires_ms is not None:
            if kind is FrameKind.HANDSHAKE and self._may_renew(now_ms):
                self._renewed_ms = now_ms
                self._step(SaslEvent.SESSION_RENEWED)
            elif now_ms > self.expires_ms:
                self.reason = "the session has expired and was not renewed"
                return Admission.CLOSE
        admission = ADMISSION[self.state][kind]
        if admission is not Admission.ADMIT and self.state is not SaslState.MECHANISM_CHANGED:
            name = ApiKey(api_key).name if api_key in _API_KEYS else f"API key {api_key}"
            self.reason = (
                f"{name} in the state {self.state.value!r}: the client has to authenticate"
            )
        if admission is Admission.REFUSE:
            self._step(SaslEvent.REFUSED)
        return admission

    def _may_renew(self, now_ms: int) -> bool:
        last = self._renewed_ms
        return last is None or now_ms - last >= REAUTHENTICATION_INTERVAL_MIN_MS

    def versions_answered(self, error: int) -> None:
        """Handle the answer of ApiVersions; after an error the client may send it again."""
        event = SaslEvent.VERSIONS_REFUSED if error else SaslEvent.VERSIONS_ANSWERED
        if TRANSITIONS[self.state][event] is not None:
            self._step(event)

    def handshake(self, mechanism: str, version: int) -> SaslResponse:
        """Handle an admitted SaslHandshake.

        In a session it must have the session's mechanism. With another mechanism the connection is
        closed: now if the mechanism is not enabled, else at the first token.
        """
        if mechanism not in self.mechanisms:
            self.reason = f"the mechanism {mechanism!r} is not enabled"
            self._step(SaslEvent.MECHANISM_UNKNOWN)
            return SaslResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
        self.speaks_raw = version == 0
        if self.state is SaslState.REAUTHENTICATE and mechanism != self.mechanism_name:
            self.reason = (
                f"SASL mechanism '{mechanism}' requested by client is not supported for"
                f" re-authentication of mechanism '{self.mechanism_name}'"
            )
            self._step(SaslEvent.MECHANISM_CHANGED)
            return SaslResponse()
        self.mechanism_name = mechanism
        self._mechanism = self._realm.mechanism(mechanism)
        self._step(SaslEvent.MECHANISM_AGREED)
        return SaslResponse()

    @property
    def mechanisms(self) -> list[str]:
        """The enabled mechanisms of the listener."""
        return list(self._realm.mechanisms())

    def token(self, token: bytes, now_ms: int) -> SaslResponse:
        """Handle an admitted token."""
        mechanism = self._mechanism
        assert mechanism is not None
        try:
            if self.denied_next:
                message, self.denied_next = self.denied_next, ""
                raise DeniedError("refused by a rule", message=message)
            answer = mechanism.respond(token, now_ms)
            if mechanism.user is not None:
                self._set_principal(user(mechanism.user))
        except DeniedError as error:
            return self._denied(error)
        if mechanism.user is None:
            self._step(SaslEvent.CHALLENGED)
            return SaslResponse(token=answer)
        self.by_token = bool(getattr(mechanism, "by_token", False))
        lifetime_ms = self._session_lifetime_ms(mechanism, now_ms)
        self.expires_ms = None if lifetime_ms is None else now_ms + lifetime_ms
        self._mechanism = None
        self._step(SaslEvent.PROVED)
        return SaslResponse(token=answer, session_lifetime_ms=lifetime_ms or 0)

    # -- results -----------------------------------------------------------------------------------

    def _set_principal(self, principal: str) -> None:
        """Set the principal. Raises DeniedError if a re-authentication changes it (KIP-368)."""
        if self.is_reauthenticating and principal != self.principal:
            message = (
                "Cannot change principals during re-authentication from"
                f" {self.principal.replace(':', '.', 1)}: {principal.replace(':', '.', 1)}"
            )
            raise DeniedError(message, message=message)
        self.principal = principal

    def _denied(self, error: DeniedError) -> SaslResponse:
        self.reason = error.reason
        self._mechanism = None
        self._step(SaslEvent.DENIED)
        again = "re-authentication" if self.is_reauthenticating else "authentication"
        message = error.message or (
            f"Authentication failed during {again} due to invalid credentials with SASL mechanism"
            f" {self.mechanism_name}"
        )
        return SaslResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, message)

    def _session_lifetime_ms(self, mechanism: Mechanism, now_ms: int) -> int | None:
        """The lifetime of the session by the limits of credential and broker, or None."""
        reauth_ms = self._realm.max_reauth_ms(self.mechanism_name)
        limits = [reauth_ms] if reauth_ms > 0 else []
        if mechanism.expires_ms is not None:
            limits.append(mechanism.expires_ms - now_ms)
        return max(0, min(limits)) if limits else None

    def _step(self, event: SaslEvent) -> None:
        following = TRANSITIONS[self.state][event]
        assert following is not None, f"{event} in {self.state}"
        self.state = following
