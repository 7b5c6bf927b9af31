"""Connections in memory behave as TCP's do."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from mockbroker.server.config import ServerError
from mockbroker.server.network.acceptor import AcceptedTransport
from mockbroker.server.network.pause_gate import PauseGate
from mockbroker.simulation.memory_network import MemoryLink, MemoryNetwork, MemoryStream, Wires
from mockbroker.simulation.virtual_run import virtual_clock, virtual_run

AT_ONCE = Wires((0, 0), 0.0)
SLOW = Wires((5, 20), 0.5, buffer_bytes=1000)


def network_of(wires: Wires = AT_ONCE, seed: int = 1) -> MemoryNetwork:
    return MemoryNetwork(virtual_clock(), random.Random(seed), wires)


Connected = tuple[MemoryStream, Any]  # a client's stream and the broker's link


async def connected(network: MemoryNetwork) -> Connected:
    """A client's stream and the broker's link, by a port that is closed again."""
    port = network.listen("127.0.0.1", 0)
    links: list[AcceptedTransport] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(port.accept, lambda link, _: links.append(link), PauseGate())
        stream = await network.connect(port.port)
        await trio.testing.wait_all_tasks_blocked()
        port.close()
    return stream, links[0]


def with_pair(test: Callable[..., Awaitable[None]], wires: Wires = AT_ONCE, seed: int = 1) -> None:
    async def main() -> None:
        stream, link = await connected(network_of(wires, seed))
        await test(stream, link)

    virtual_run(main, seed=seed)


@pytest.mark.parametrize("wires", [AT_ONCE, SLOW._replace(buffer_bytes=20_000)])
@pytest.mark.parametrize("seed", range(3))
def test_streams_keep_to_the_contract_of_trio(wires: Wires, seed: int) -> None:
    """`check_half_closeable_stream` is what trio tests its own streams with."""

    async def main() -> None:
        network = network_of(wires, seed)

        async def pair() -> tuple[MemoryStream, MemoryStream]:
            near, far = network._pair()
            return MemoryStream(near), MemoryStream(far)

        async def clogged() -> tuple[MemoryStream, MemoryStream]:
            near, far = await pair()
            for stream in (near, far):
                stream.end.write((bytes(network.wires.buffer_bytes),))
            return near, far

        await trio.testing.check_half_closeable_stream(pair, clogged)

    virtual_run(main, seed=seed)


@pytest.mark.parametrize("seed", range(10))
def test_bytes_come_in_order_in_pieces_and_later(seed: int) -> None:
    sent = random.Random(seed).randbytes(5000)
    sizes: list[int] = []

    async def test(stream: MemoryStream, link: MemoryLink) -> None:
        received = bytearray()
        view = memoryview(bytearray(700))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, sent)
            while len(received) < len(sent):
                size = await link.receive_into(view, expect_data=seed % 2 == 0)
                sizes.append(size)
                received += view[:size]
        assert received == sent
        assert trio.current_time() > 0.0

    with_pair(test, SLOW, seed)
    assert len(sizes) > 5


def test_a_full_pipe_holds_its_sender_up() -> None:
    """`send` takes what there is room for; the rest goes when somebody has read."""

    async def test(stream: MemoryStream, link: MemoryLink) -> None:
        rest = link.send([b"a" * 600, b"b" * 600])
        assert b"".join(rest) == b"b" * 200
        assert link.send([b"c"]) != ()
        received = bytearray()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.send_rest, rest)
            while len(received) < 1200:
                received += await stream.receive_some(100)
        assert received == b"a" * 600 + b"b" * 600

    with_pair(test, AT_ONCE._replace(buffer_bytes=1000))


def test_fin_comes_behind_what_was_sent_and_rst_overtakes_it() -> None:
    async def ended(stream: MemoryStream, link: MemoryLink) -> None:
        link.send([b"last words"])
        link.close()
        link.close(reset=True)  # too late
        received = b""
        while more := await stream.receive_some():
            received += more
        assert received == b"last words"

    async def reset(stream: MemoryStream, link: MemoryLink) -> None:
        link.send([b"lost"])
        link.close(reset=True)
        with pytest.raises(trio.BrokenResourceError, match="reset by peer"):
            await stream.receive_some()
        with pytest.raises(trio.BrokenResourceError, match="Broken pipe"):
            await stream.send_all(b"x")

    with_pair(ended, SLOW)
    with_pair(reset, SLOW)


def test_closing_with_bytes_unread_resets_as_a_kernel_does() -> None:
    async def test(stream: MemoryStream, link: MemoryLink) -> None:
        await stream.send_all(b"never read")
        link.close()
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()

    with_pair(test)


def test_sending_to_an_end_that_is_closed_is_answered_by_rst() -> None:
    """The first bytes are lost, and then both sides know."""

    async def test(stream: MemoryStream, link: MemoryLink) -> None:
        link.close()
        await stream.send_all(b"into the void")
        await virtual_clock().sleep(1.0)
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"x")

    with_pair(test, SLOW)


def test_a_link_raises_what_a_socket_raises() -> None:
    """OSError for what the client did, ClosedResourceError for what the broker did itself."""

    async def test(stream: MemoryStream, link: MemoryLink) -> None:
        view = memoryview(bytearray(10))

        async def wait_for_bytes() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await link.receive_into(view)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_bytes)
            await trio.testing.wait_all_tasks_blocked()
            link.close()
        for sending in (link.receive_into(view), link.send_rest([b"x"])):
            with pytest.raises(trio.ClosedResourceError):
                await sending
        with pytest.raises(OSError, match="Bad file descriptor"):
            link.send([b"x"])

    async def client_gone(stream: MemoryStream, link: MemoryLink) -> None:
        stream.reset()
        with pytest.raises(ConnectionResetError):
            await link.receive_into(memoryview(bytearray(10)))
        with pytest.raises(BrokenPipeError):
            link.send([b"x"])
        with pytest.raises(trio.ClosedResourceError):
            await stream.receive_some()

    with_pair(test)
    with_pair(client_gone)


def test_who_expects_bytes_is_told_once_and_not_of_the_end() -> None:
    async def test(stream: MemoryStream, link: MemoryLink) -> None:
        told: list[str] = []
        link.expect(lambda: told.append("first"))
        await stream.send_all(b"x")
        await stream.send_all(b"y")
        assert told == ["first"]
        link.expect(lambda: told.append("there already"))
        assert told == ["first"]  # nobody is called from within
        await virtual_clock().sleep(0.0)
        assert told == ["first", "there already"]
        link.expect(lambda: told.append("forgotten"))
        link.forget()
        await stream.send_eof()
        await virtual_clock().sleep(1.0)
        assert told == ["first", "there already"]

    with_pair(test)


def test_a_port_is_free_taken_or_closed() -> None:
    async def main() -> None:
        network = network_of()
        first, second = network.listen("127.0.0.1", 0), network.listen("127.0.0.1", 0)
        assert first.port != second.port
        with pytest.raises(ServerError, match=f"{first.port}: Address already in use"):
            network.listen("127.0.0.1", first.port)
        with pytest.raises(ServerError, match="no such port"):
            network.listen("127.0.0.1", 70_000)
        early = await network.connect(first.port)  # nobody accepts yet, and nobody will
        first.close()
        first.close()
        with pytest.raises(trio.BrokenResourceError):
            await early.receive_some()
        with pytest.raises(ConnectionRefusedError):
            await network.connect(first.port)
        kept = network.reserve("127.0.0.1", first.port)
        takes: list[Callable[[str, int], object]] = [network.listen, network.reserve]
        for taken in takes:
            with pytest.raises(ServerError, match=f"{first.port}: Address already in use"):
                taken("127.0.0.1", first.port)
        with pytest.raises(ConnectionRefusedError):
            await network.connect(first.port)
        kept.close()
        assert network.listen("127.0.0.1", first.port).port == first.port

    virtual_run(main, seed=1)


def test_clients_have_addresses_of_their_own() -> None:
    async def main() -> None:
        network = network_of()
        port = network.listen("127.0.0.1", 0)
        peers: list[tuple[str, int]] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(port.accept, lambda _, peer: peers.append(peer), PauseGate())
            for _ in range(3):
                await network.connect(port.port)
            await trio.testing.wait_all_tasks_blocked()
            port.close()
        assert len(set(peers)) == 3

    virtual_run(main, seed=1)


def test_a_writer_whose_first_bytes_are_answered_by_rst_does_not_wait_for_room() -> None:
    """They arrive at once, at an end that is closed."""

    async def test(stream: MemoryStream, link: MemoryLink) -> None:
        link.close()
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(bytes(AT_ONCE.buffer_bytes + 1))

    with_pair(test)
