"""Errors as problem documents (RFC 9457): a status, a sentence, and the field, if any."""

from __future__ import annotations

import msgspec

from mockbroker.admin.bridge import ClusterUnavailableError
from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.faults.errors import NameTakenError, UnknownNameError
from mockbroker.core.journal.verify import JournalGapError
from mockbroker.core.validation import ValidationError
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.exceptions import EncodeError

MEDIA_TYPE = "application/problem+json"
_NOT_FOUND = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


class Problem(msgspec.Struct, omit_defaults=True):
    """The error of a request. `field` is the path of the wrong field in the body or query.

    After a problem nothing has changed, except that `appended` records are stored. `line` is the
    line of an NDJSON body, from 1.
    """

    title: str
    status: int
    detail: str
    field: str = ""
    error: str = ""
    line: int = 0
    appended: int = 0


class ProblemError(Exception):
    """A problem as an exception."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.problem = Problem(title, status, detail)

    @classmethod
    def of(cls, problem: Problem) -> ProblemError:
        """The error with this problem."""
        made = cls(problem.status, problem.title, problem.detail)
        made.problem = problem
        return made


def problem_of(error: Exception) -> Problem | None:
    """The problem of an exception; None for an unexpected one."""
    match error:
        case ProblemError():
            return error.problem
        case ValidationError() | EncodeError():
            return Problem("not valid", 400, str(error), field=error.path)
        case UnknownNameError():
            return Problem("not found", 404, str(error))
        case NameTakenError():
            return Problem("the name is taken", 409, str(error))
        case ApiError():
            status = 404 if error.error in _NOT_FOUND else 409
            return Problem("cluster error", status, str(error), error=error.error.name)
        case ActionError():
            return Problem("impossible", 409, str(error))
        case JournalGapError():
            return Problem("journal gap", 409, str(error))
        case ClusterUnavailableError():
            return Problem("the cluster does not answer", 503, str(error))
        case _:
            return None
