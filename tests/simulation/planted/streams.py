"""Bugs of streams groups."""

from __future__ import annotations

from mockbroker.core.groups.streams import reconcile, records, sticky
from tests.simulation.planted.planting import Planting, planted, rewritten


@planted("An active task is assigned while another member still has it.")
def active_tasks_are_not_awaited() -> Planting:
    return rewritten(
        reconcile._advance,
        "return owners.active(subtopology, partition) is not None or",
        "return False and",
    )


@planted("A member that is to revoke tasks is taken for one that has done so.")
def revocation_is_not_awaited() -> Planting:
    return rewritten(
        reconcile._is_due,
        "return reported is not None and not owns_any(reported, member.revoking)",
        "return True",
    )


@planted("The tasks of one partition are assigned to nobody.")
def last_tasks_are_left_out() -> Planting:
    return rewritten(
        sticky._Assignment.assign_active,
        "for task in sorted(tasks):",
        "for task in sorted(tasks)[1:]:",
    )


@planted("The tasks that a member has to revoke are not in its record.")
def revoked_tasks_are_not_stored() -> Planting:
    return rewritten(
        records._write_current,
        "active_tasks_pending_revocation=_epoch_lines(current.revoking.active)",
        "active_tasks_pending_revocation=_epoch_lines({})",
    )
