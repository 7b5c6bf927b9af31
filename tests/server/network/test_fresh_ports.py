"""A client of a stopped cluster reaches no other: not of this process, nor of another worker."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from mockbroker.server.config import ServerError
from mockbroker.server.network import fresh_ports
from mockbroker.server.network.fresh_ports import FreshPorts, is_for_this_worker

HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def no_recent_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_ports, "_recent_ports", {})


def be_worker(monkeypatch: pytest.MonkeyPatch, name: str | None, count: str | None) -> None:
    for variable, value in (("PYTEST_XDIST_WORKER", name), ("PYTEST_XDIST_WORKER_COUNT", count)):
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)


def ports_of(count: int) -> Iterator[int]:
    """The ports of clusters that come one after another."""
    for _ in range(count):
        acceptor = FreshPorts().listen(HOST, 0)
        yield acceptor.port
        acceptor.close()


def test_workers_have_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[set[int]] = []
    for number in range(4):
        be_worker(monkeypatch, f"gw{number}", "4")
        monkeypatch.setattr(fresh_ports, "_recent_ports", {})
        found.append(set(ports_of(50)))
        assert all(is_for_this_worker(port) for port in found[-1])
    assert [len(each) for each in found] == [50] * 4
    assert len(set.union(*found)) == 200


@pytest.mark.parametrize(
    ("worker", "count"),
    [(None, None), ("master", None), ("gw0", None), ("gw0", "1"), ("gw0", "0"), ("gwx", "4")],
)
def test_without_other_workers_all_ports_are_free(
    monkeypatch: pytest.MonkeyPatch, worker: str | None, count: str | None
) -> None:
    be_worker(monkeypatch, worker, count)
    assert all(is_for_this_worker(port) for port in range(40_000, 40_100))


def test_each_port_belongs_to_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the odd ports as of the even ones each has its share."""
    for first in (40_000, 40_001):
        ports, shares = range(first, first + 120, 2), []
        for number in range(3):
            be_worker(monkeypatch, f"gw{number}", "3")
            shares.append([port for port in ports if is_for_this_worker(port)])
        assert [len(each) for each in shares] == [20] * 3
        assert sorted(port for each in shares for port in each) == list(
            range(first, first + 120, 2)
        )


def test_a_port_is_avoided_for_some_thousand_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_ports, "PORTS_AVOIDED_MAX", 3)
    for port in ports_of(5):
        assert list(fresh_ports._recent_ports)[-1] == port
        assert len(fresh_ports._recent_ports) <= 3


def test_if_no_fresh_port_is_found_another_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_ports, "is_for_this_worker", lambda _: False)
    acceptor = FreshPorts().listen(HOST, 0)
    with socket.create_connection((HOST, acceptor.port)):
        pass
    acceptor.close()


def test_the_same_ports_come_again_on_request() -> None:
    ports: list[int] = []
    first = FreshPorts(ports)
    opened = [first.listen(HOST, 0), first.listen(HOST, 0)]
    assert [each.port for each in opened] == ports
    for each in opened:
        each.close()
    again = FreshPorts(ports)
    opened = [again.listen(HOST, 0) for _ in range(3)]
    assert [each.port for each in opened] == ports
    assert len(set(ports)) == 3
    for each in opened:
        each.close()


def test_a_port_that_is_asked_for_is_taken_whosever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = ports_of(1)
    monkeypatch.setattr(fresh_ports, "is_for_this_worker", lambda _: False)
    acceptor = FreshPorts().listen(HOST, port)
    assert acceptor.port == port
    with pytest.raises(ServerError, match=f"cannot listen on {HOST}:{port}"):
        FreshPorts().listen(HOST, port)
    acceptor.close()
