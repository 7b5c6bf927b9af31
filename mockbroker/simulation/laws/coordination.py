"""Laws of groups, of committed offsets, of answers, and of the state at the end."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping

from mockbroker.handlers.base import APIS, FORWARDING_TIMEOUT_MS
from mockbroker.simulation.history import Commit, FetchedOffset
from mockbroker.simulation.laws.base import HistoryLaw
from mockbroker.simulation.script import Call
from mockbroker_protocol import ApiKey

_NEVER = sys.maxsize


class OwnedOnce(HistoryLaw):
    """Within a generation of a classic group, and within an epoch of a consumer group, no partition
    is assigned to two members. The generation or epoch that a client has as a member does not
    decrease. A client whose static member another one has taken may read its answer later.
    """

    name = "partitions are owned once"

    def conclude(self) -> None:
        owners: dict[tuple[str, int, tuple[str, int]], str] = {}
        epochs: dict[tuple[str, str, str], int] = {}
        for owned in self.judge.history.owned:
            if owned.group in self.judge.disrupted_groups:
                continue
            member = (owned.group, owned.member, owned.client)
            if owned.epoch < epochs.get(member, -1):
                self.broken(
                    f"member {owned.member} of {owned.group} was given epoch {owned.epoch} "
                    f"after epoch {epochs[member]}"
                )
            epochs[member] = owned.epoch
            for tp in sorted(owned.partitions):
                key = (owned.group, owned.epoch, tp)
                other = owners.setdefault(key, owned.member)
                if other != owned.member:
                    self.broken(
                        f"epoch {owned.epoch} of {owned.group}: {tp[0]}-{tp[1]} is given to "
                        f"{other} and to {owned.member}"
                    )

    def forget(self) -> None:
        self.judge.history.owned.clear()


class CommitsKept(HistoryLaw):
    """OffsetFetch returns the offset that was acknowledged or returned last, or a later one, unless
    an unclean election, a lost disk or a deletion removed it. A commit by a member that does not
    know of a topic's deletion belongs to the deleted topic. A deposed coordinator with an old image
    returns the offsets that it knows.
    """

    name = "committed offsets are kept"

    def conclude(self) -> None:
        commits: dict[tuple[str, str, int], list[Commit]] = defaultdict(list)
        for commit in self.judge.history.commits:
            commits[commit.group, commit.topic, commit.partition].append(commit)
        seen: dict[Commit, int] = {}  # when a commit was first returned
        for found in self.judge.history.found:
            if found.group in self.judge.disrupted_groups or self.judge.has_former_coordinator(
                found.sent, found.answered
            ):
                continue
            some = commits[found.group, found.topic, found.partition]
            self._judge(found, some, seen)
            fitting = [
                c
                for c in some
                if c.offset == found.offset and c.sent <= found.answered and not c.dropped
            ]
            if found.offset >= 0 and len(fitting) == 1:  # -1 may have been committed, or nothing
                seen.setdefault(fitting[0], found.answered)

    def _judge(self, found: FetchedOffset, commits: list[Commit], seen: dict[Commit, int]) -> None:
        before = [
            c
            for c in commits
            if not (c.voided or c.topic_id in self.judge.deleted)
            and (0 <= c.acked <= found.sent or seen.get(c, _NEVER) <= found.sent)
        ]
        latest = max(before, key=_place, default=None)
        # What may have been written after the latest, or at the same time.
        possible = {
            commit.offset
            for commit in commits
            if commit.sent <= found.answered
            and not commit.dropped
            and (latest is None or commit is latest or not self._is_before(commit, latest))
        }
        if found.offset in possible or (latest is None and found.offset < 0):
            return
        returned = (
            f"group {found.group} got {found.offset} for {found.topic}-{found.partition} "
            f"at {found.at_ms - self.judge.start_ms} ms"
        )
        if latest is not None:
            self.broken(f"{returned}, when {latest.offset} was committed")
        elif not any(commit.voided for commit in commits):
            self.broken(f"{returned}, which nobody has committed")

    @staticmethod
    def _is_before(commit: Commit, latest: Commit) -> bool:
        """Whether a commit was certainly replaced by a later one."""
        if commit.written >= 0:
            return commit.written < latest.sent
        return 0 <= commit.acked < latest.sent and not commit.doubtful

    def forget(self) -> None:
        history = self.judge.history
        history.commits.clear()
        history.found.clear()


class Answered(HistoryLaw):
    """A running broker answers every request in time: a parked one by the deadline in the request,
    or right after a jump of the clock past it.
    """

    name = "requests are answered in time"

    def timed_out(self, client: str, call: Call, since_ms: int) -> None:
        """A call has timed out, and its broker ran all the time."""
        if call.timeout_ms <= longest_ms(call, self.judge.history.rebalance_ms):
            return
        self.broken(
            f"{call.api_key.name} v{call.version} of {client} to broker {call.node_id}, sent at "
            f"{since_ms - self.judge.start_ms} ms, had no answer after {call.timeout_ms} ms"
        )


class FetchesFit(HistoryLaw):
    """A Fetch answer has only partitions of the request or its session, and records from the
    requested offset up to the watermark in the answer.
    """

    name = "fetches return what was requested"

    def conclude(self) -> None:
        for sentence in self.judge.history.misfits:
            self.broken(sentence)


def _place(commit: Commit) -> int:
    """When a commit was sent: of two in a row the later one is in force."""
    return commit.sent


_SLACK_MS = 1_000
_COMMIT_MS = 5_000  # offsets.commit.timeout.ms
_BETWEEN_BROKERS_MS = 30_000  # request.timeout.ms
# Five attempts to write share state, each of share.coordinator.write.timeout.ms, and the backoffs
# of 2, 4, 8 and 16 s between them (PersisterStateManager).
_PERSISTED_MS = 5 * 5_000 + 30_000


def longest_ms(call: Call, rebalance_ms: Mapping[str, int]) -> int:
    """The longest time in ms until a request is answered, with the longest rebalance timeout of
    each group.
    """
    if APIS[call.api_key].forwarded:  # it may wait for a controller
        return FORWARDING_TIMEOUT_MS + _SLACK_MS
    request = call.request
    match call.api_key:
        case ApiKey.FETCH:
            longest_ms: int = request.max_wait_ms
        case ApiKey.PRODUCE if request.transactional_id is None:
            longest_ms = request.timeout_ms
        case ApiKey.PRODUCE:  # first the coordinator verifies the transaction
            longest_ms = request.timeout_ms + _BETWEEN_BROKERS_MS
        case ApiKey.DELETE_RECORDS:
            longest_ms = request.timeout_ms
        case ApiKey.JOIN_GROUP:
            longest_ms = request.rebalance_timeout_ms + request.session_timeout_ms + _COMMIT_MS
        case ApiKey.SYNC_GROUP:
            longest_ms = rebalance_ms.get(request.group_id, _BETWEEN_BROKERS_MS) + _COMMIT_MS
        case ApiKey.INIT_PRODUCER_ID | ApiKey.ADD_PARTITIONS_TO_TXN | ApiKey.END_TXN:
            longest_ms = _BETWEEN_BROKERS_MS
        case ApiKey.ADD_OFFSETS_TO_TXN | ApiKey.TXN_OFFSET_COMMIT:
            longest_ms = _BETWEEN_BROKERS_MS
        case ApiKey.SHARE_FETCH:  # it may carry acknowledgements
            longest_ms = request.max_wait_ms + _PERSISTED_MS
        case ApiKey.SHARE_ACKNOWLEDGE | ApiKey.DELETE_GROUPS:
            longest_ms = _PERSISTED_MS
        case ApiKey.ALTER_SHARE_GROUP_OFFSETS | ApiKey.DELETE_SHARE_GROUP_OFFSETS:
            longest_ms = _PERSISTED_MS
        case _:
            longest_ms = _COMMIT_MS
    return longest_ms + _SLACK_MS


class AtRest(HistoryLaw):
    """After the faults, all running brokers are unfenced, no transaction is open, every replica is
    in sync, and every group is stable or empty. Exception: a reassignment may leave a partition
    without an eligible leader, which only an operator can repair.
    """

    name = "everything comes to rest"

    def conclude(self) -> None:
        for sentence in self.judge.unsettled:
            self.broken(sentence)
