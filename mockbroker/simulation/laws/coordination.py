"""Laws of groups, committed offsets, answers, and of how it all ends."""

from __future__ import annotations

from collections import defaultdict

from mockbroker.simulation.history import Commit, Found
from mockbroker.simulation.laws.base import Law

OFFSETS_TOPIC = "__consumer_offsets"


class OwnedOnce(Law):
    """Within a generation of a classic group no partition is given to two members, and no member
    goes back to an earlier generation or epoch.
    """

    name = "partitions are owned once"

    def conclude(self) -> None:
        owners: dict[tuple[str, int, tuple[str, int]], str] = {}
        epochs: dict[tuple[str, str], int] = {}
        for owned in self.laws.history.owned:
            if owned.group in self.laws.meddled_groups:
                continue
            member = (owned.group, owned.member_id)
            if owned.epoch < epochs.get(member, -1):
                self.broken(
                    f"member {owned.member_id} of {owned.group} was given epoch {owned.epoch} "
                    f"after epoch {epochs[member]}"
                )
            epochs[member] = owned.epoch
            if owned.protocol != "classic":
                continue
            for tp in sorted(owned.partitions):
                key = (owned.group, owned.epoch, tp)
                other = owners.setdefault(key, owned.member_id)
                if other != owned.member_id:
                    self.broken(
                        f"generation {owned.epoch} of {owned.group}: {tp[0]}-{tp[1]} is given to "
                        f"{other} and to {owned.member_id}"
                    )

    def forget(self) -> None:
        self.laws.history.owned.clear()


class CommitsKept(Law):
    """Whoever asks for a committed offset is told the one that was acknowledged last, or one that
    came after it, unless an unclean election, a lost disk or a deletion took it.
    """

    name = "committed offsets are kept"

    def conclude(self) -> None:
        commits: dict[tuple[str, str, int], list[Commit]] = defaultdict(list)
        for commit in self.laws.history.commits:
            commits[commit.group, commit.topic, commit.partition].append(commit)
        for found in self.laws.history.found:
            where = (found.group, found.topic, found.partition)
            if found.group not in self.laws.meddled_groups:
                self._judge(found, commits[where])

    def _judge(self, found: Found, commits: list[Commit]) -> None:
        # Acknowledged before the question was asked, and sent last of those.
        before = [c for c in commits if 0 <= c.acked_ms <= found.asked_ms and not c.voided]
        if not before:
            return
        latest_ms = max(commit.sent_ms for commit in before)
        possible = {
            commit.offset
            for commit in commits
            if commit.sent_ms <= found.told_ms
            and (commit.acked_ms < 0 or commit.acked_ms >= latest_ms)
        }
        if found.offset not in possible:
            self.broken(
                f"group {found.group} was told {found.offset} for {found.topic}-{found.partition} "
                f"at {found.told_ms - self.laws.start_ms} ms, when the last acknowledged was "
                f"{sorted({c.offset for c in before if c.sent_ms == latest_ms})}"
            )

    def forget(self) -> None:
        history = self.laws.history
        history.commits.clear()
        history.found.clear()


class Answered(Law):
    """A broker that runs answers every request in time: what it parks, by the deadline that the
    request gives it.
    """

    name = "requests are answered in time"


class AtRest(Law):
    """Once faults stop and time passes, everything comes to rest: brokers that run are not fenced,
    no transaction is open, every replica is in sync, and every group is stable or empty.
    """

    name = "everything comes to rest"

    def conclude(self) -> None:
        for sentence in self.laws.world.unsettled():
            self.broken(sentence)
