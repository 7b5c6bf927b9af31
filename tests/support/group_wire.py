"""Groups over real sockets under a clock that the test moves: raw bytes in, raw bytes out.

    @scenario(brokers=1, topics={"t": 3})
    async def test_something(world: World) -> None:
        member = await world.member("g")
        assert (await member.heartbeat()).error_code == 0
        await world.advance(10_000)

The cluster runs in the test's own trio run, on a MockClock: nothing waits for real time. `advance`
goes from deadline to deadline, as time does.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio
import trio.testing

from mockbroker import Cluster
from mockbroker.client.connection import decode_response, encode_request
from mockbroker.server.cluster_server import ClusterServer, open_server
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.records import Record, read_records
from tests.support.group_node import (
    api_of,
    commit_request,
    fetch_request,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)

NEWEST = {ApiKey.OFFSET_COMMIT: 9, ApiKey.OFFSET_FETCH: 9, ApiKey.FETCH: 12}
LISTENER = "PLAINTEXT"
OFFSETS = "__consumer_offsets"


class Link:
    """One connection; a request at a time. `client_id` is that of its requests."""

    def __init__(self, world: World, stream: trio.SocketStream, client_id: str) -> None:
        self.world = world
        self.client_id = client_id
        self._stream = stream
        self._correlation_id = 0
        self._asked: tuple[ApiKey, int] | None = None

    async def write(self, request: object, version: int | None = None) -> None:
        """Send a request; its answer is read later."""
        assert self._asked is None
        key = api_of(request)
        if version is None:
            version = NEWEST.get(key, self.world.newest(key))
        self._correlation_id += 1
        self._asked = (key, version)
        frame = encode_request(request, version, self._correlation_id, self.client_id)
        await self._stream.send_all(frame)

    async def read(self) -> Any:
        """The answer to what was written."""
        assert self._asked is not None
        key, version = self._asked
        size = struct.unpack(">i", await self._exactly(4))[0]
        response = decode_response(await self._exactly(size), key, version, self._correlation_id)
        self._asked = None
        return response

    async def send(self, request: object, version: int | None = None) -> Any:
        """Send a request and read its answer."""
        await self.write(request, version)
        return await self.read()

    async def silent(self) -> bool:
        """Whether the broker has not answered, with everything that was sent dealt with."""
        await self.world.settle()
        try:
            return not self._stream.socket._sock.recv(1, 2)  # MSG_PEEK: leave it there
        except BlockingIOError:
            return True

    async def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = await self._stream.receive_some(size - len(data))
            assert chunk, "the broker closed the connection"
            data += chunk
        return data


class Member:
    """A client that is, or wants to be, a member of a group; it keeps what it was told."""

    def __init__(self, link: Link, group: str, fields: Mapping[str, Any]) -> None:
        self.link = link
        self.group = group
        self.fields = dict(fields)
        self.member_id = ""
        self.generation = -1
        self.leader = ""
        self.protocol: dict[str, str] = {}
        self.listing: list[str] = []
        self.assignment = b""

    @property
    def leads(self) -> bool:
        return self.leader == self.member_id

    @property
    def instance(self) -> dict[str, str]:
        instance = self.fields.get("group_instance_id")
        return {} if instance is None else {"group_instance_id": instance}

    async def start_join(self) -> None:
        """Get an id if needed, and send the JoinGroup that waits."""
        request = join_request(self.group, self.member_id, **self.fields)
        await self.link.write(request)
        if not self.member_id and not self.instance:
            response = await self.link.read()
            assert response.error_code == 79, response
            self.member_id = response.member_id
            await self.link.write(join_request(self.group, self.member_id, **self.fields))

    async def end_join(self) -> Any:
        response = await self.link.read()
        if not response.error_code:
            self.member_id = response.member_id
            self.generation = response.generation_id
            self.leader = response.leader
            self.protocol = {
                "protocol_type": response.protocol_type,
                "protocol_name": response.protocol_name,
            }
            self.listing = [line.member_id for line in response.members]
        return response

    async def join(self) -> Any:
        await self.start_join()
        return await self.end_join()

    def sync_request(self, assignments: Mapping[str, bytes] | None = None) -> Any:
        parts = assignments
        if parts is None:
            parts = {name: name.encode() for name in self.listing}
        return sync_request(
            self.group, self.member_id, self.generation, parts, **self.protocol, **self.instance
        )

    async def start_sync(self, assignments: Mapping[str, bytes] | None = None) -> None:
        await self.link.write(self.sync_request(assignments))

    async def end_sync(self) -> Any:
        response = await self.link.read()
        self.assignment = response.assignment
        return response

    async def heartbeat(self) -> int:
        request = heartbeat_request(self.group, self.member_id, self.generation, **self.instance)
        code: int = (await self.link.send(request)).error_code
        return code

    async def leave(self) -> Any:
        return await self.link.send(leave_request(self.group, self.member_id))

    async def commit(self, offsets: Mapping[tuple[str, int], int]) -> list[int]:
        request = commit_request(
            offsets, self.group, self.member_id, self.generation, **self.instance
        )
        response = await self.link.send(request)
        return [p.error_code for topic in response.topics for p in topic.partitions]

    async def committed(self) -> dict[tuple[str, int], int]:
        response = await self.link.send(fetch_request(None, self.group))
        return {
            (topic.name, p.partition_index): p.committed_offset
            for topic in response.groups[0].topics
            for p in topic.partitions
        }


class World:
    """A cluster, its clock, and links to its brokers."""

    def __init__(self, server: ClusterServer, clock: trio.testing.MockClock) -> None:
        self.server = server
        self.clock = clock
        self.control: Link

    def newest(self, key: ApiKey) -> int:
        from mockbroker.handlers.base import APIS

        return APIS[int(key)].max_version

    @property
    def now_ms(self) -> int:
        return self.server.clock.now_ms()

    async def link(self, node_id: int | None = None, client_id: str = "raw") -> Link:
        node = min(self.server.cluster.brokers) if node_id is None else node_id
        endpoint = self.server.cluster.brokers[node].endpoints[LISTENER]
        stream = await trio.open_tcp_stream(endpoint.host, endpoint.port)
        return Link(self, stream, client_id)

    async def coordinator(self, key: str, key_type: int = 0) -> int:
        """The node id that FindCoordinator gives."""
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        (found,) = (await self.control.send(request)).coordinators
        assert found.error_code == 0, found
        node_id: int = found.node_id
        return node_id

    async def client(self, group: str, client_id: str = "raw", **fields: Any) -> Member:
        """A client connected to the group's coordinator, which has not joined."""
        link = await self.link(await self.coordinator(group), client_id)
        return Member(link, group, fields)

    async def stable(self, group: str, count: int = 1, **fields: Any) -> list[Member]:
        """Members that joined one after the other and have each been assigned their own name."""
        members: list[Member] = []
        for _ in range(count):
            newcomer = await self.client(group, **fields)
            await newcomer.start_join()
            members.append(newcomer)
            await self.round(members, started=[newcomer])
        return members

    async def round(self, members: list[Member], started: list[Member] | None = None) -> None:
        """All members join and sync; those in `started` have sent their JoinGroup already."""
        for member in members:
            if member not in (started or []):
                await member.start_join()
        for member in members:
            response = await member.end_join()
            assert response.error_code == 0, response
        for member in members:
            await member.start_sync()
        for member in members:
            response = await member.end_sync()
            assert response.error_code == 0, response

    async def describe(self, group: str) -> Any:
        link = await self.link(await self.coordinator(group))
        (described,) = (await link.send(DescribeGroupsRequest(groups=[group]), 5)).groups
        return described

    async def state(self, group: str) -> str:
        state: str = (await self.describe(group)).group_state
        return state

    async def listed(self, group: str, *states: str) -> bool:
        """Whether ListGroups, filtered by states, shows the group."""
        link = await self.link(await self.coordinator(group))
        response = await link.send(ListGroupsRequest(states_filter=list(states)))
        return group in {line.group_id for line in response.groups}

    async def settle(self) -> None:
        """Return once everything that was sent has been dealt with."""
        await self.control.send(ListGroupsRequest())
        await trio.testing.wait_all_tasks_blocked()

    async def advance(self, by_ms: int) -> None:
        """Let the cluster's time pass, from deadline to deadline."""
        await self.settle()
        end_ms = self.now_ms + by_ms
        while self.now_ms < end_ms:
            due_ms = self.server.cluster.runtime.timers.deadline_ms()
            until_ms = end_ms if due_ms is None else min(max(due_ms, self.now_ms + 1), end_ms)
            self.clock.jump((until_ms - self.now_ms) / 1000 + 2e-5)
            await trio.testing.wait_all_tasks_blocked()


async def group_log(world: World, group: str) -> list[Record]:
    """The records of a group's partition of `__consumer_offsets`, fetched like any others."""
    node = await world.coordinator(group)
    index = world.server.cluster.find_coordinator_partition(group)
    wanted = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
    link = await world.link(node)
    request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(OFFSETS, partitions=[wanted])])
    (answer,) = (await link.send(request)).responses[0].partitions
    assert answer.error_code == 0
    return list(read_records(answer.records))


def scenario(**options: Any) -> Callable[[Callable[[World], Awaitable[None]]], Callable[[], None]]:
    """Run an async test in a cluster of its own, under a clock that stands still by itself.

    `options` are those of `mockbroker.Cluster`.
    """

    def decorate(play: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
        async def main(clock: trio.testing.MockClock) -> None:
            chosen: dict[str, Any] = {"brokers": 1, "topics": {"t": 3}} | options
            # The clock jumps by days here, and the links are to outlive that.
            chosen["configs"] = {"connections.max.idle.ms": -1} | chosen.get("configs", {})
            config = Cluster(**chosen).config
            async with open_server(config) as server:
                world = World(server, clock)
                world.control = await world.link()
                await play(world)

        def test() -> None:
            clock = trio.testing.MockClock()
            trio.run(main, clock, clock=clock)

        test.__name__ = play.__name__
        test.__qualname__ = play.__name__
        test.__module__ = play.__module__
        test.__doc__ = play.__doc__
        return test

    return decorate
