"""The connections of group members, which end with the connection."""

from __future__ import annotations

from mockbroker.core.groups.member_connections import MemberConnections
from mockbroker.handlers.base import ConnectionInfo


def connection(number: int) -> ConnectionInfo:
    return ConnectionInfo(number, "127.0.0.1", 50_000 + number)


def test_a_member_is_connected_until_its_connection_is_closed() -> None:
    connections = MemberConnections()
    connections.record("g", "a", connection(1))
    connections.record("g", "b", connection(2))
    connections.connection_closed(1)
    assert [connections.connected("g")(member) for member in ("a", "b", "c")] == [
        False,
        True,
        False,
    ]
    assert not connections.connected("h")("b")


def test_the_connection_of_the_last_request_counts() -> None:
    """The close of the one before does not disconnect the member."""
    connections = MemberConnections()
    for number in (1, 2, 2):
        connections.record("g", "a", connection(number))
    connections.connection_closed(1)
    assert connections.connected("g")("a")
    connections.connection_closed(2)
    assert not connections.connected("g")("a")


def test_members_that_come_and_go_leave_no_entry() -> None:
    connections = MemberConnections()
    for number in range(100):
        connections.record("g", f"m{number}", connection(number))
        connections.connection_closed(number)
    assert len(connections) == 0


def test_a_request_that_a_rule_held_back_until_its_connection_closed_records_nothing() -> None:
    connections, closed = MemberConnections(), connection(1)
    closed.closed = True
    connections.record("g", "a", closed)
    assert len(connections) == 0


def test_one_connection_has_a_thousand_members_at_most() -> None:
    """A client may name members that do not exist; the newest ones stay."""
    connections, one = MemberConnections(), connection(1)
    for number in range(1005):
        connections.record("g", f"m{number}", one)
    connected = connections.connected("g")
    assert len(connections) == 1000
    assert (connected("m4"), connected("m5")) == (False, True)
