"""AlterUserScramCredentials (51): set and delete SCRAM credentials (KIP-554)."""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.core.errors import ApiError
from mockbroker.core.security.sasl.scram_credential import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    from_salted_password,
)
from mockbroker.handlers.base import RequestContext, api
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialUpsertion,
)

_MECHANISMS = frozenset(int(mechanism) for mechanism in ScramMechanism)


@api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=(0, 0))
def alter_user_scram_credentials(
    ctx: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Change the credentials of each user, all of them or none, or say why not."""
    credentials = ctx.cluster.scram_credentials
    # (user, mechanism, upsertion), None for deletion
    changes: list[tuple[str, int, ScramCredentialUpsertion | None]] = [
        *((d.name, d.mechanism, None) for d in request.deletions),
        *((u.name, u.mechanism, u) for u in request.upsertions),
    ]
    altered = [(name, mechanism) for name, mechanism, _ in changes]
    results: dict[str, AlterUserScramCredentialsResult] = {}
    for name, mechanism, upsertion in changes:
        try:
            if altered.count((name, mechanism)) > 1:
                raise ApiError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "The credential stands twice in the request.",
                )
            _check(name, mechanism, upsertion, credentials.get(name, {}))
        except ApiError as error:
            results[name] = AlterUserScramCredentialsResult(name, error.error, error.message)
        else:
            results.setdefault(name, AlterUserScramCredentialsResult(name, error_message=None))
    for name, mechanism, upsertion in changes:
        if results[name].error_code == ErrorCode.NONE:
            _apply(credentials, name, mechanism, upsertion)
            ctx.cluster.metadata_changed()
    return AlterUserScramCredentialsResponse(results=list(results.values()))


def _check(
    name: str,
    mechanism: int,
    upsertion: ScramCredentialUpsertion | None,
    present: Mapping[int, ScramCredential],
) -> None:
    if not name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "A user needs a name.")
    if mechanism not in _MECHANISMS:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "There is no such SCRAM mechanism.")
    if upsertion is None:
        if mechanism not in present:
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND,
                "The user has no such credential.",
            )
    elif upsertion.iterations < ITERATIONS_MIN:
        raise ApiError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, f"It takes {ITERATIONS_MIN} iterations or more."
        )
    elif upsertion.iterations > ITERATIONS_MAX:
        raise ApiError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, f"It takes {ITERATIONS_MAX} iterations or fewer."
        )


def _apply(
    credentials: dict[str, dict[int, ScramCredential]],
    name: str,
    mechanism: int,
    upsertion: ScramCredentialUpsertion | None,
) -> None:
    mechanisms = credentials.setdefault(name, {})
    if upsertion is None:
        mechanisms.pop(mechanism, None)
    else:
        mechanisms[mechanism] = from_salted_password(
            ScramMechanism(mechanism),
            bytes(upsertion.salted_password),
            bytes(upsertion.salt),
            upsertion.iterations,
        )
    if not mechanisms:
        del credentials[name]
