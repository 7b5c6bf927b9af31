"""Laws of groups: generations, assignments, and the owners of partitions.

They apply to any cluster: they check the requests of members and the answers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from mockbroker.simulation.history import GroupCall
from mockbroker.simulation.laws.base import HistoryLaw, Judge
from mockbroker_protocol import ErrorCode

# A session is at least that long (group.min.session.timeout.ms and the clients' settings): a client
# with a request in that time is a member.
_SESSION_MS = 3_000
_SLACK_MS = 1_000
_TAKEN_FOR_ANYBODY = frozenset(
    int(error)
    for error in (
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
    )
)


class _GroupLaw(HistoryLaw):
    """A law that judges the requests of one group at a time, in the order they were sent.

    A Heartbeat that a loading coordinator may have answered is left out: Kafka answers it without
    an error before the group is read. Source: GroupCoordinatorService.heartbeat.
    """

    protocols: tuple[str, ...] = ("classic",)

    def conclude(self) -> None:
        groups: dict[str, list[GroupCall]] = defaultdict(list)
        for call in self.judge.history.group_calls:
            if (
                call.protocol in self.protocols
                and call.group not in self.judge.disrupted_groups
                and not self._is_blind(call)
            ):
                groups[call.group].append(call)
        for calls in groups.values():
            self.judge_group(calls)

    def _is_blind(self, call: GroupCall) -> bool:
        """Whether a loading coordinator may have answered a Heartbeat."""
        if call.what != "heartbeat" or call.protocol != "classic" or not call.succeeded:
            return False
        return self.judge.is_blind(call.sent, call.answered)

    def judge_group(self, calls: list[GroupCall]) -> None:
        """Judge the requests of one group."""
        raise NotImplementedError

    def forget(self) -> None:
        self.judge.history.group_calls.clear()

    def at(self, at_ms: int) -> str:
        """A time of the history, as people read it."""
        return f"at {at_ms - self.judge.start_ms} ms"


class FormerGenerationsEnd(_GroupLaw):
    """Once a member has its assignment of a generation of a classic group, JoinGroup, SyncGroup,
    OffsetCommit and Heartbeat of an earlier generation get an error. Exceptions: a coordinator that
    loads answers Heartbeat, and a deposed coordinator with an old image answers requests that write
    no record (JoinGroup, Heartbeat, SyncGroup without assignments).
    """

    name = "earlier generations are refused"

    def judge_group(self, calls: list[GroupCall]) -> None:
        turns: list[int] = []  # when a generation was first known to be in force
        generations: list[int] = []
        for call in sorted(_synced(calls), key=_told):
            if not generations or call.generation > generations[-1]:
                turns.append(call.answered)
                generations.append(call.generation)
        for call in calls:
            if not call.succeeded or self._may_be_former(call):
                continue
            generation = call.answered_generation if call.what == "join" else call.generation
            before = bisect_left(turns, call.sent)
            if call.what != "leave" and 0 <= generation < _last(generations, before):
                self.broken(
                    f"group {call.group}: {call.what} of {call.client} was answered under "
                    f"generation {generation} {self.at(call.answered_ms)}, after an assignment of "
                    f"generation {generations[before - 1]}"
                )

    def _may_be_former(self, call: GroupCall) -> bool:
        """Whether a coordinator that was deposed may have answered, from its memory."""
        is_written = call.what == "commit" or (call.what == "sync" and call.assignments)
        return not is_written and (
            self.judge.former_leaders is None
            or self.judge.has_former_coordinator(call.sent, call.answered)
        )


def _last(generations: list[int], before: int) -> int:
    return generations[before - 1] if before else -1


def _told(call: GroupCall) -> int:
    return call.answered


def _synced(calls: list[GroupCall]) -> Iterator[GroupCall]:
    """The requests by which members got their assignments."""
    return (call for call in calls if call.what == "sync" and call.succeeded)


class LeadersAreNotAwaited(_GroupLaw):
    """A leader of a classic group that does not send SyncGroup within the rebalance timeout is
    removed from the group: its heartbeats are refused.
    """

    name = "silent group leaders are removed"

    def judge_group(self, calls: list[GroupCall]) -> None:
        longest_ms = self.judge.history.rebalance_ms.get(calls[0].group, 0) + _SLACK_MS
        joined: dict[str, GroupCall] = {}  # the last request of each client, if it is to assign
        for call in calls:
            join = joined.get(call.client)
            if call.what == "join":
                joined.pop(call.client, None)
                if call.leads:
                    joined[call.client] = call
            elif join is None or call.generation != join.answered_generation:
                continue
            elif call.what == "sync":
                del joined[call.client]
            elif (
                call.what == "heartbeat"
                and call.succeeded
                and call.sent_ms > join.answered_ms + longest_ms
                and call.group not in self.judge.groups_with_removals
            ):
                self.broken(
                    f"group {call.group}: {call.client} leads generation {call.generation} since "
                    f"{join.answered_ms - self.judge.start_ms} ms, has not sent SyncGroup, and its "
                    f"heartbeat was welcome {self.at(call.answered_ms)}"
                )


class AssignmentsFit(_GroupLaw):
    """A member of a classic group gets the assignment that the leader of its generation has sent
    for it.
    """

    name = "assignments belong to their generation"

    def judge_group(self, calls: list[GroupCall]) -> None:
        made: dict[int, list[GroupCall]] = defaultdict(list)
        selves: dict[str | None, set[str]] = defaultdict(set)  # the member ids of an instance
        for call in calls:
            if call.what == "sync" and call.assignments:
                made[call.generation].append(call)
            if call.what == "join" and call.answered_member and call.instance is not None:
                selves[call.instance].add(call.answered_member)
            for instance, member in call.instances:
                selves[instance].add(member)
        for call in _synced(calls):
            if not isinstance(call.assigned, bytes):
                continue
            # A static member that comes back is given what its former self was to have.
            members = selves[call.instance] if call.instance is not None else {call.member}
            possible = {
                each.assignments.get(member, b"")
                for each in made[call.generation]
                if each.sent <= call.answered
                for member in members
            }
            if call.assigned not in possible:
                self.broken(
                    f"group {call.group}: {call.client} got {self.at(call.answered_ms)} what "
                    f"no leader of generation {call.generation} has sent for it"
                )


class OnlyWhoJoined(_GroupLaw):
    """The members that the leader of a generation gets have joined that generation. A dynamic
    member is not among them without a JoinGroup since its earlier generation.
    """

    name = "generations consist of joined members"

    def judge_group(self, calls: list[GroupCall]) -> None:
        joins: dict[str, list[GroupCall]] = defaultdict(list)
        for call in calls:
            if call.what == "join":
                joins[call.answered_member or call.member].append(call)
        for call in calls:
            if call.what != "join" or not call.succeeded:
                continue
            for member in call.listed:
                if member != call.answered_member and self._is_absent(joins[member], call):
                    self.broken(
                        f"group {call.group}: {call.client} got {self.at(call.answered_ms)} an "
                        f"answer with {member} in generation {call.answered_generation}, which it "
                        "had not joined"
                    )

    @staticmethod
    def _is_absent(joins: list[GroupCall], leader: GroupCall) -> bool:
        """Whether a member has joined an earlier generation, and did not ask for this one."""
        sent = [join for join in joins if join.sent < leader.answered]
        if not sent or any(join.doubtful or join.answered < 0 for join in sent):
            return False
        last = max(sent, key=lambda join: join.sent)
        return (
            last.succeeded
            and last.answered < leader.answered
            and (last.answered_generation < leader.answered_generation)
        )


class FormerSelvesAreFenced(_GroupLaw):
    """Once another process with the same instance id has its assignment, requests of the replaced
    static member get FENCED_INSTANCE_ID, so that it ends and does not join again. Exception: a
    deposed coordinator with an old image still has the replaced member.
    """

    name = "replaced static members are fenced"

    def judge_group(self, calls: list[GroupCall]) -> None:
        by_instance: dict[str, list[GroupCall]] = defaultdict(list)
        for call in calls:
            if call.instance is not None:
                by_instance[call.instance].append(call)
        for some in by_instance.values():
            selves = sorted(_synced(some), key=_told)
            turns = [each.answered for each in selves]
            leaves = [each.sent for each in some if each.what == "leave"]
            for call in some:
                if call.what in ("heartbeat", "sync", "commit") and call.answered >= 0:
                    before = bisect_left(turns, call.sent)
                    if before and not any(leave < call.answered for leave in leaves):
                        self._judge(call, selves[before - 1], some)

    def _judge(self, call: GroupCall, self_: GroupCall, calls: list[GroupCall]) -> None:
        was_before = any(
            each.answered_member == call.member and each.succeeded and each.answered < self_.sent
            for each in calls
            if each.what == "join"
        )
        if (
            call.member == self_.member
            or not was_before
            or call.answered_ms - self_.sent_ms >= _SESSION_MS
            or call.group in self.judge.groups_with_removals
            or call.error not in _TAKEN_FOR_ANYBODY
            or self.judge.has_former_coordinator(call.sent, call.answered)
        ):
            return
        self.broken(
            f"group {call.group}: {call.what} of the former self of {call.instance} was answered "
            f"with error {call.error} {self.at(call.answered_ms)}"
        )


class _Life:
    """One member of a consumer group, from its first epoch to the last answer without an error.

    `held` are the partitions that it was given and has not reported to be without, and since when;
    `spans` those that it had, each with the turns between which it was sure to have it.
    """

    def __init__(self, client: str, member: str) -> None:
        self.client = client
        self.member = member
        self.epoch = -1
        self.confirmed = -1  # when a request was sent that was answered without an error
        self.held: dict[tuple[bytes, int], int] = {}

    def confirm(self, call: GroupCall, judge: Judge) -> None:
        """A request was answered without an error."""
        if not judge.has_former_coordinator(call.sent, call.answered):
            self.confirmed = call.sent

    def release(
        self, some: list[tuple[bytes, int]], turn: int
    ) -> Iterator[tuple[tuple[bytes, int], int, int]]:
        for each in some:
            yield each, self.held.pop(each), turn


class HandedOver(_GroupLaw):
    """A member of a consumer group gets a partition, and a member of a streams group an active
    task, only after its former owner has reported that it has revoked it, or has left the group.
    Heartbeats that a deposed coordinator answers from its memory do not keep a member in the group.
    """

    name = "partitions are revoked before they are assigned"
    protocols = ("consumer", "streams")

    def judge_group(self, calls: list[GroupCall]) -> None:
        lives: dict[str, _Life] = {}
        spans: dict[tuple[bytes, int], list[tuple[int, int, str]]] = defaultdict(list)
        given: list[tuple[tuple[bytes, int], GroupCall]] = []

        def over(life: _Life, some: list[tuple[bytes, int]], turn: int) -> None:
            for key, since, until in life.release(some, turn):
                spans[key].append((since, until, life.member))

        for call in calls:
            life = lives.get(call.member)
            if life is None or call.what == "join":
                if life is not None:
                    over(life, list(life.held), life.confirmed)
                life = lives[call.member] = _Life(call.client, call.member)
            if not call.succeeded:  # its member may have been none any more when it was sent
                over(life, list(life.held), life.confirmed)
                continue
            life.confirm(call, self.judge)
            if call.owned is not None or call.what == "leave":
                owned = call.owned or frozenset()
                over(life, [key for key in life.held if key not in owned], call.sent)
            if isinstance(call.assigned, frozenset):
                for key in sorted(call.assigned):
                    if key not in life.held:
                        life.held[key] = call.answered
                        given.append((key, call))
        for life in lives.values():
            over(life, list(life.held), life.confirmed)
        for key, call in given:
            for since, until, member in spans[key]:
                if member != call.member and since < call.sent and call.answered < until:
                    self.broken(
                        f"group {call.group}: partition {key[1]} of {key[0].hex()} was given to "
                        f"{call.client} {self.at(call.answered_ms)}, while {member} still had it"
                    )


class MemberEpochsRise(_GroupLaw):
    """The epoch of a member of a consumer, share or streams group does not decrease."""

    name = "member epochs rise"
    protocols = ("consumer", "share", "streams")

    def judge_group(self, calls: list[GroupCall]) -> None:
        epochs: dict[str, int] = {}
        for call in calls:
            if not call.succeeded or call.what == "leave":
                epochs.pop(call.member, None)
                continue
            before = -1 if call.what == "join" else epochs.get(call.member, -1)
            if call.answered_generation < before:
                self.broken(
                    f"group {call.group}: {call.client} got epoch {call.answered_generation} "
                    f"{self.at(call.answered_ms)}, after epoch {before}"
                )
            epochs[call.member] = call.answered_generation
