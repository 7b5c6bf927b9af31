"""Tables of the converter that would grow with the clients and topics of a run."""

from __future__ import annotations

import pytest

from mockbroker.core.events import GroupMoved
from mockbroker.core.journal.entries import EventEntry
from mockbroker.pipeline.convert import recent, transactions
from mockbroker.pipeline.convert.cluster_state import RunClient, RunState
from mockbroker.pipeline.convert.groups import GroupTables
from mockbroker.pipeline.convert.readers import GroupReaders, Member
from mockbroker.pipeline.convert.recent import Recent
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.transactions import Transactions
from tests.pipeline.convert.support import Kept

CLIENT = RunClient("c", "127.0.0.1")
PLACE = ("t", 0)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "ENTRIES_MAX", 3)
    monkeypatch.setattr(transactions, "ENTRIES_MAX", 3)


def test_entries_that_were_set_last_are_kept() -> None:
    seen: Recent[str, int] = Recent()
    for number, name in enumerate("abacde"):
        seen[name] = number
    assert list(seen.items()) == [("c", 3), ("d", 4), ("e", 5)]
    assert RunState().rebalances == Recent()


def test_counts_of_producers_without_an_open_transaction_are_forgotten() -> None:
    found = Transactions(Rows(Kept()))
    found.wrote(1)
    for producer_id in range(2, 50):
        found.wrote(producer_id)
        found._end(f"{producer_id}/1", committed=True)
    assert len(found._counts) <= 3 + 2  # and the two that were open at the last beginning
    assert found.current(1) == "1/1"  # it is open


def test_a_producer_that_was_forgotten_repeats_no_number() -> None:
    found = Transactions(Rows(Kept()))
    names = []
    for _ in range(3):
        for producer_id in range(10):
            found.wrote(producer_id)
            name = found.current(producer_id)
            assert name is not None
            names.append(name)
            found._end(name, committed=True)
    assert len(set(names)) == len(names)
    numbers = [int(name.partition("/")[2]) for name in names if name.startswith("4/")]
    assert numbers == sorted(numbers)


def readers_with(*members: Member) -> GroupReaders:
    readers = GroupReaders(RunState())
    for member in members:
        member.given[PLACE] = 1
        readers._members.setdefault(member.group, {})[member.name] = member
        readers._of_client.setdefault(member.client, []).append(member)
        readers._owners[member.group, PLACE] = member
    return readers


def member(name: str, generation: int, group: str = "g") -> Member:
    found = Member(group, name, CLIENT)
    found.generation = generation
    return found


def test_a_member_that_is_gone_leaves_no_entry() -> None:
    gone, there = member("gone", 1, "other"), member("there", 1)
    readers = readers_with(gone, there)
    readers.left(gone)
    assert readers._members == {"g": {"there": there}}
    assert readers._of_client == {CLIENT: [there]}
    assert readers._owners == {("g", PLACE): there}
    readers.left(there)
    assert not readers._members
    assert not readers._of_client
    assert not readers._owners


def test_where_entries_are_missing_all_members_are_forgotten() -> None:
    readers = readers_with(member("m", 1), member("n", 1, "other"))
    readers.forget()
    assert not readers._members
    assert not readers._of_client
    assert not readers._owners


@pytest.mark.parametrize(
    ("state", "generation", "left"),
    [("PreparingRebalance", 5, ["five"]), ("Stable", 6, ["five"]), ("Stable", 5, ["four", "five"])],
)
def test_members_of_generations_before_the_one_that_ends_are_gone(
    state: str, generation: int, left: list[str]
) -> None:
    readers = readers_with(member("four", 4), member("five", 5))
    rows, cluster = Rows(Kept()), RunState()
    groups = GroupTables(rows, cluster, Transactions(rows), readers)
    event = GroupMoved(
        at_ms=0, node_id=1, group="g", former="Stable", state=state, generation=generation,
        members=2, reason="", protocol="classic",
    )  # fmt: skip
    groups.moved(EventEntry(1, 0, 0, event), event)
    assert [each.name for each in readers.members_of("g")] == left
