"""Many groups that rebalance at once, as after a deployment of everything."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from bench import process, raw, swarm
from bench.model import MILLISECONDS, Figures, Measure, Running, Scale
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from mockbroker_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

FIND_COORDINATOR, JOIN, SYNC, HEARTBEAT = 4, 5, 3, 3  # versions that every peer serves
MEMBERS = 2
ASSIGNMENT = bytes(32)  # about what a consumer with one partition gets
SUBSCRIPTION = bytes(24)
COORDINATOR_TIMEOUT_S = 30.0
PAUSE_S = 0.02
# What a coordinator says that is about to be one.
NOT_YET = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)

T = TypeVar("T")
_Asking: TypeAlias = "Generator[bytes, bytes, T]"


class Rebalance:
    """Groups of two members, each on a connection of its own, from nothing to Stable.

    The first member of a group is alone in it at first, hears of the second by a heartbeat, and
    joins again.
    """

    name = "groups"
    fresh = True
    excluded: Mapping[str, str] = {
        "librdkafka-mock": "knows neither these versions nor so many groups",
    }
    measures: tuple[Measure, ...] = (
        Measure("groups-time", "1,000 groups, 2,000 members to Stable: time", MILLISECONDS),
        Measure("groups-cpu", "1,000 groups, 2,000 members to Stable: CPU", MILLISECONDS),
    )

    def prepare(self) -> None:
        """Nothing to build."""

    def run(self, running: Running, scale: Scale) -> Figures:
        groups = [f"bench-group-{number}" for number in range(scale.groups)]
        coordinators = find_coordinators(running.address, groups)
        cpu_s = process.cpu_seconds(running.pids)
        seconds = swarm.drive(
            (coordinators[group], member(group)) for _ in range(MEMBERS) for group in groups
        )
        cpu_s = process.cpu_seconds(running.pids) - cpu_s
        return {"groups-time": seconds, "groups-cpu": cpu_s}


def find_coordinators(address: swarm.Address, groups: Sequence[str]) -> dict[str, swarm.Address]:
    """Where each group is coordinated. A peer that makes the groups' topic by then may take a while
    to know; RuntimeError if it does not in the end.
    """
    request = FindCoordinatorRequest(coordinator_keys=list(groups))
    frame = raw.request(ApiKey.FIND_COORDINATOR, FIND_COORDINATOR, request)
    with raw.RawConnection(address) as connection:
        deadline = time.monotonic() + COORDINATOR_TIMEOUT_S
        while time.monotonic() < deadline:
            found = raw.answer(
                ApiKey.FIND_COORDINATOR, FIND_COORDINATOR, connection.round_trip(frame)
            )
            if not any(each.error_code for each in found.coordinators):
                return {each.key: (each.host, each.port) for each in found.coordinators}
            time.sleep(PAUSE_S)
    raise RuntimeError("the coordinators are not available")


def alone(group: str) -> _Asking[JoinGroupResponse]:
    """Be the only member of a group that is Stable; how it was joined."""
    joined = yield from _join(group, "")
    error = yield from _sync(group, joined)
    if error != ErrorCode.NONE:
        raise RuntimeError(f"{group}: SyncGroup: error {error}")
    return joined


def play(connection: raw.RawConnection, script: _Asking[T]) -> T:
    """Play a script on one connection; what it returns."""
    request = next(script)
    while True:
        answer = bytes(connection.round_trip(request))
        try:
            request = script.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value


def member(group: str) -> swarm.Script:
    """Join and sync until the group has all its members and is Stable."""
    member_id = ""
    while True:
        joined = yield from _join(group, member_id)
        member_id = joined.member_id
        error = yield from _sync(group, joined)
        if error == ErrorCode.NONE:
            # A follower need not ask whether there is a leader besides it.
            if joined.leader != member_id or len(joined.members) == MEMBERS:
                return
            error = yield from _heartbeats(group, joined)
        if error != ErrorCode.REBALANCE_IN_PROGRESS:
            raise RuntimeError(f"{group}: error {error}")


def _join(group: str, member_id: str) -> _Asking[JoinGroupResponse]:
    while True:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )
        frame = yield raw.request(ApiKey.JOIN_GROUP, JOIN, request)
        joined: JoinGroupResponse = raw.answer(ApiKey.JOIN_GROUP, JOIN, frame)
        if joined.error_code == ErrorCode.NONE:
            return joined
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            member_id = joined.member_id
        elif joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            member_id = ""  # the check for expired offsets removes groups without members
        elif joined.error_code not in NOT_YET:
            raise RuntimeError(f"{group}: JoinGroup: error {joined.error_code}")


def _sync(group: str, joined: JoinGroupResponse) -> _Asking[int]:
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=each.member_id, assignment=ASSIGNMENT)
            for each in joined.members
        ],
    )
    frame = yield raw.request(ApiKey.SYNC_GROUP, SYNC, request)
    error: int = raw.answer(ApiKey.SYNC_GROUP, SYNC, frame).error_code
    return error


def _heartbeats(group: str, joined: JoinGroupResponse) -> _Asking[int]:
    """Until one is answered with an error."""
    request = HeartbeatRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
    )
    beat = raw.request(ApiKey.HEARTBEAT, HEARTBEAT, request)
    error = 0
    while error == ErrorCode.NONE:
        frame = yield beat
        error = raw.answer(ApiKey.HEARTBEAT, HEARTBEAT, frame).error_code
    return error
