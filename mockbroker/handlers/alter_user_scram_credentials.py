"""AlterUserScramCredentials (51): set and delete SCRAM credentials (KIP-554)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from mockbroker.core.errors import ApiError
from mockbroker.core.security.acls import AclOperation
from mockbroker.handlers.authorization import clusterwide
from mockbroker.handlers.base import Parked, RequestContext, api
from mockbroker.handlers.refusals import ErrorDetails, Refusal
from mockbroker.handlers.slices import in_slices
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialUpsertion,
)

if TYPE_CHECKING:
    from mockbroker.core.security.sasl.scram_credential import ScramCredential

CREDENTIALS_PER_SLICE = 500


def _refuse_users(
    response: AlterUserScramCredentialsResponse,
    request: AlterUserScramCredentialsRequest,
    details: ErrorDetails,
) -> None:
    """One result for each user, also for one with deletions and upsertions."""
    users = {*(d.name for d in request.deletions), *(u.name for u in request.upsertions)}
    response.results = [
        AlterUserScramCredentialsResult(user, details.error, details.message)
        for user in sorted(users)
    ]


@api(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    authorize=clusterwide(AclOperation.ALTER),
    forwarded=True,
    refusal=Refusal(rows=None, finish=_refuse_users),
)
def alter_user_scram_credentials(
    ctx: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse | Parked[AlterUserScramCredentialsResponse]:
    """Apply all changes of each user, or none and answer the error."""
    return in_slices(ctx, request, _alter(ctx, request), changes=True)


def _alter(
    ctx: RequestContext, request: AlterUserScramCredentialsRequest
) -> Generator[Parked[Any] | None, None, AlterUserScramCredentialsResponse]:
    credentials = ctx.cluster.scram_credentials
    # (user, mechanism, upsertion); None deletes
    changes: list[tuple[str, int, ScramCredentialUpsertion | None]] = [
        *((d.name, d.mechanism, None) for d in request.deletions),
        *((u.name, u.mechanism, u) for u in request.upsertions),
    ]
    altered = Counter((name, mechanism) for name, mechanism, _ in changes)
    results: dict[str, AlterUserScramCredentialsResult] = {}
    for name, mechanism, upsertion in changes:
        try:
            if altered[name, mechanism] > 1:
                raise ApiError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            _check(name, mechanism, upsertion, credentials.get(name, {}))
        except ApiError as error:
            results[name] = AlterUserScramCredentialsResult(name, error.error, error.message)
        else:
            results.setdefault(name, AlterUserScramCredentialsResult(name, error_message=None))
    made: list[tuple[str, int, ScramCredential | None]] = []
    for name, mechanism, upsertion in changes:
        if results[name].error_code != ErrorCode.NONE:
            continue
        if len(made) % CREDENTIALS_PER_SLICE == CREDENTIALS_PER_SLICE - 1:
            yield None  # digests take time
        made.append((name, mechanism, _credential(mechanism, upsertion)))
    for name, mechanism, credential in made:
        _apply(credentials, name, mechanism, credential)
    if made:
        ctx.cluster.metadata.changed()
    return AlterUserScramCredentialsResponse(results=list(results.values()))


def _check(
    name: str,
    mechanism: int,
    upsertion: ScramCredentialUpsertion | None,
    present: Mapping[int, ScramCredential],
) -> None:
    # A cluster without SASL imports nothing of it.
    from mockbroker.core.security.sasl.scram_credential import (
        ITERATIONS_MAX,
        ITERATIONS_MIN,
        ScramMechanism,
    )

    if not name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if all(mechanism != known for known in ScramMechanism):
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if upsertion is None:
        if mechanism not in present:
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            )
    elif upsertion.iterations < ITERATIONS_MIN:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif upsertion.iterations > ITERATIONS_MAX:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _credential(
    mechanism: int, upsertion: ScramCredentialUpsertion | None
) -> ScramCredential | None:
    from mockbroker.core.security.sasl.scram_credential import ScramMechanism, from_salted_password

    if upsertion is None:
        return None
    return from_salted_password(
        ScramMechanism(mechanism),
        bytes(upsertion.salted_password),
        bytes(upsertion.salt),
        upsertion.iterations,
    )


def _apply(
    credentials: dict[str, dict[int, ScramCredential]],
    name: str,
    mechanism: int,
    credential: ScramCredential | None,
) -> None:
    mechanisms = credentials.setdefault(name, {})
    if credential is None:
        mechanisms.pop(mechanism, None)
    else:
        mechanisms[mechanism] = credential
    if not mechanisms:
        del credentials[name]
