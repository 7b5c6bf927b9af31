"""The laws of the history, which apply to any cluster: they need a history and the final logs."""

from __future__ import annotations

from mockbroker.handlers import load_all
from mockbroker.simulation.history import History
from mockbroker.simulation.laws.base import HistoryLaw, Judge
from mockbroker.simulation.laws.coordination import (
    Answered,
    AtRest,
    CommitsKept,
    FetchesFit,
    OwnedOnce,
)
from mockbroker.simulation.laws.groups import (
    AssignmentsFit,
    FormerGenerationsEnd,
    FormerSelvesAreFenced,
    HandedOver,
    LeadersAreNotAwaited,
    MemberEpochsRise,
    OnlyWhoJoined,
)
from mockbroker.simulation.laws.records import (
    AbortedTransactionsAreListed,
    AcknowledgedKept,
    CoordinatorsFenced,
    EpochsRise,
    FencedStayFenced,
    OffsetsDense,
    ProducersFenced,
    ReadsKept,
    SequencesTaken,
    SequencesWhole,
    TransactionsWhole,
)
from mockbroker.simulation.logs import LogView
from mockbroker.simulation.script import Call

HISTORY_LAWS: tuple[type[HistoryLaw], ...] = (
    EpochsRise,
    OffsetsDense,
    AcknowledgedKept,
    SequencesWhole,
    SequencesTaken,
    ProducersFenced,
    CoordinatorsFenced,
    FencedStayFenced,
    TransactionsWhole,
    AbortedTransactionsAreListed,
    ReadsKept,
    FetchesFit,
    OwnedOnce,
    FormerGenerationsEnd,
    LeadersAreNotAwaited,
    AssignmentsFit,
    OnlyWhoJoined,
    FormerSelvesAreFenced,
    HandedOver,
    MemberEpochsRise,
    CommitsKept,
    Answered,
    AtRest,
)


class HistoryLaws(Judge):
    """All laws of the history over one history, of any cluster."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        load_all()  # the laws of answers ask the contracts of APIs
        self._answered = Answered(self)

    def timed_out(self, client: str, call: Call, since_ms: int) -> None:
        """A call has timed out, and its broker ran all the time."""
        self._answered.timed_out(client, call, since_ms)

    def conclude(self, logs: list[LogView], unsettled: list[str]) -> None:
        """Everything is over, with these logs and what is not at rest: judge it as a whole."""
        self.logs, self.unsettled = logs, unsettled
        for law in HISTORY_LAWS:
            law(self).conclude()
