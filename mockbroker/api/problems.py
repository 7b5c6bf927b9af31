"""Problems of the admin API as exceptions."""

from __future__ import annotations

from mockbroker.admin.v1.problems import Problem
from mockbroker.api.transport import ClusterError
from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.faults.errors import NameTakenError, UnknownNameError
from mockbroker.core.journal.verify import JournalGapError
from mockbroker.core.validation import ValidationError
from mockbroker_protocol import ErrorCode


def error_of(problem: Problem) -> Exception:
    """The exception of a problem, the same for every transport."""
    detail = problem.detail
    if problem.error:
        return ApiError(ErrorCode[problem.error], detail)
    match problem.title:
        case "not valid":
            prefix = f"{problem.field}: "
            reason = detail.removeprefix(prefix) if problem.field else detail
            return ValidationError(problem.field, reason)
        case "timeout":
            return TimeoutError(detail)
        case "impossible":
            return ActionError(detail)
        case "journal gap":
            return JournalGapError(detail)
        case "not found":
            return UnknownNameError(detail)
        case "the name is taken":
            return NameTakenError(detail)
        case "no journal":
            return RuntimeError(f"this cluster keeps no journal: {detail}")
        case _:
            return ClusterError(f"{problem.title}: {detail}" if problem.title else detail)
