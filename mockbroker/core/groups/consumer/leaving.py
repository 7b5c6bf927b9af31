"""How members leave a consumer group, or are sent away, and what that does to the group.

Whoever goes takes the group epoch up by one. When only members of the classic protocol stay, the
group may become a classic one (KIP-848, online downgrade).

Source: GroupMetadataManager, consumerGroupLeave, consumerGroupFenceMembers.
"""

from __future__ import annotations

import msgspec

from mockbroker.core.groups.consumer.base import NO_VERSION
from mockbroker.core.groups.consumer.events import (
    Change,
    ConsumerLeave,
    Downgrade,
    GroupChange,
    MemberChange,
    RegexChange,
    SetTimer,
    Store,
    SubscriptionMetadataGone,
    TargetChange,
    TargetEpochChange,
    TimerKind,
    current_change,
    removal,
)
from mockbroker.core.groups.consumer.states import STATIC_LEAVE_EPOCH
from mockbroker.core.groups.consumer.steps import ConsumerGroupSteps, Draft, Refused
from mockbroker.core.groups.consumer.topics import metadata_hash
from mockbroker.core.groups.events import ConsumerResult, Reply


class ConsumerGroupLeaving(ConsumerGroupSteps):
    """How what was worked out is handed over, and how members go."""

    __slots__ = ()

    # ------------------------------------------------------------------------ handing it over

    def _submit(self, draft: Draft, answer: Reply) -> None:
        if draft.changes:
            changes, timers = tuple(draft.changes), tuple(draft.timers)
            self._out.append(Store(changes=changes, answer=answer, timers=timers))
            return
        for timer in draft.timers:
            self._timers.set(timer)
        self._out.append(answer)

    def _fence(
        self, gone: frozenset[str], answer: Reply | None, retry: SetTimer | None = None
    ) -> None:
        """Members leave, or are sent away: the epoch rises, or the group becomes a classic one."""
        if self._may_downgrade(gone):
            self._out.append(
                Downgrade(
                    leaving=gone,
                    rebalance="the last member of the new protocol has left",
                    answer=answer,
                    retry=retry,
                )
            )
            return
        changes: list[Change] = []
        timers: list[SetTimer] = []
        for member_id in gone:
            changes += removal(member_id)
            timers += (SetTimer(kind, member_id, None) for kind in TimerKind)
        staying = [m for m in self.members.values() if m.member_id not in gone]
        regexes = {m.regex for m in staying}
        for regex in self.resolved:
            if regex not in regexes:
                changes.append(RegexChange(regex, None))
        names = {name for m in staying for name in m.topic_names}
        for regex, resolved in self.resolved.items():
            if regex in regexes:
                names |= resolved.topics
        changes.append(GroupChange(self.epoch + 1, metadata_hash(self.topics, names)))
        self._out.append(
            Store(changes=tuple(changes), answer=answer, timers=tuple(timers), retry=retry)
        )

    def _may_downgrade(self, gone: frozenset[str], joining: int = 0) -> bool:
        """Whether only classic members stay, and the brokers let the group become a classic one.

        `joining` counts a classic member that takes the place of one that is gone.
        """
        staying = len(self.members) - len(gone)
        classic_gone = sum(self.members[m].classic is not None for m in gone)
        if self.classic_count - classic_gone != staying or staying + joining == 0:
            return False
        if joining and classic_gone:
            return False  # a classic member in place of a classic one changes nothing
        if not self.settings.migration.downgrade:
            return False
        return staying + joining <= self.settings.classic_size_max

    def _forget_version(self) -> None:
        """What was compared with the metadata was not stored: compare again."""
        self._seen_version = NO_VERSION

    # ------------------------------------------------------------------------------------ leaving

    def _on_consumer_leave(self, leave: ConsumerLeave, _: int) -> None:
        result = ConsumerResult(member_id=leave.member_id, epoch=leave.epoch)
        try:
            if leave.instance_id is None:
                member = self._dynamic(leave.member_id, create=False)
            else:
                member = self._known_static(leave.member_id, leave.instance_id)
        except Refused as refused:
            result = ConsumerResult(error=refused.error, message=refused.message)
            self._out.append(Reply(leave.slot, result))
            return
        answer = Reply(leave.slot, result)
        if leave.instance_id is None or leave.epoch != STATIC_LEAVE_EPOCH:
            self._fence(frozenset({member.member_id}), answer)
            return
        # Its partitions stay its own, as of epoch 0: whoever comes back in its place may commit.
        away = msgspec.structs.replace(
            member,
            epoch=STATIC_LEAVE_EPOCH,
            assigned={t: dict.fromkeys(ps, 0) for t, ps in member.assigned.items()},
            revoking={},
        )
        self._out.append(Store(changes=(current_change(away),), answer=answer))

    def tombstones(self) -> tuple[Change, ...]:
        """The changes that end the group, with whoever is in it."""
        members = list(self.members)
        changes: list[Change] = []
        changes += (removal(member_id)[0] for member_id in members)
        changes += (TargetChange(member_id, None) for member_id in members)
        changes.append(TargetEpochChange(None))
        changes += (MemberChange(member_id, None) for member_id in members)
        changes += (RegexChange(regex, None) for regex in self.resolved)
        changes.append(SubscriptionMetadataGone())
        changes.append(GroupChange(None))
        return tuple(changes)
