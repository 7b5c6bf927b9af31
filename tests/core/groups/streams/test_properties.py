"""Random lives of streams groups: no task is active twice, and all are assigned in the end.

A member whose answer was lost joins again. If it went on with its former epoch, it would never hear
of the tasks in that answer: Kafka 4.3 sends tasks only when they change or the member joins.
"""

from __future__ import annotations

import random

import pytest

from mockbroker.core.groups.streams.events import SentTopology
from mockbroker.core.groups.streams.group import StreamsGroup, StreamsSettings
from mockbroker.core.groups.streams.states import StreamsGroupState
from mockbroker.core.groups.streams.topology import InternalTopic, Subtopology
from mockbroker_protocol import ErrorCode
from tests.support.streams_playbook import StreamsPlay

TOPOLOGY = SentTopology(
    0,
    (Subtopology("0", ("t",), changelogs=(InternalTopic("c"),)), Subtopology("1", ("u",))),
)
TASKS = {("0", n) for n in range(5)} | {("1", n) for n in range(3)}
Owned = dict[str, set[int]]


class Client:
    """A member that gives tasks up late."""

    def __init__(self, play: StreamsPlay, name: str, process: str) -> None:
        self.play = play
        self.name = name
        self.process = process
        self.epoch = 0
        self.active: Owned = {}
        self.standby: Owned = {}
        self.wanted: tuple[Owned, Owned] | None = None

    def join(self) -> None:
        answer = self.play.join(self.name, TOPOLOGY, process_id=self.process)
        assert answer.error is ErrorCode.NONE
        self._take(answer)

    def beat(self, *, is_lost: bool = False) -> None:
        active = {each: sorted(ps) for each, ps in self.active.items()}
        standby = {each: sorted(ps) for each, ps in self.standby.items()}
        answer = self.play.beat(self.name, self.epoch, active, standby)
        assert answer.error is ErrorCode.NONE
        if is_lost:
            self.active, self.standby, self.wanted = {}, {}, None
            self.join()
        else:
            self._take(answer)

    def _take(self, answer: object) -> None:
        self.epoch = answer.epoch  # type: ignore[attr-defined]
        assigned = answer.assigned  # type: ignore[attr-defined]
        if assigned is not None:
            active, standby, _ = assigned
            self.wanted = (
                {each: set(ps) for each, ps in active},
                {each: set(ps) for each, ps in standby},
            )
            # What it must give up it keeps until `obey`.
            _add(self.active, self.wanted[0])
            _add(self.standby, self.wanted[1])

    def obey(self) -> None:
        """Give up the tasks that were not assigned any more."""
        if self.wanted is not None:
            self.active, self.standby = self.wanted
            self.wanted = None


def _add(owned: Owned, more: Owned) -> None:
    for subtopology, partitions in more.items():
        owned.setdefault(subtopology, set()).update(partitions)


def check(clients: list[Client]) -> None:
    """No task is active at two clients, nor in two kinds in one process."""
    active = [(s, p) for each in clients for s, ps in each.active.items() for p in ps]
    assert len(active) == len(set(active))
    copies = [
        (each.process, s, p)
        for each in clients
        for kind in (each.active, each.standby)
        for s, ps in kind.items()
        for p in ps
    ]
    assert len(copies) == len(set(copies))


@pytest.mark.parametrize("seed", range(40))
def test_a_random_life(seed: int) -> None:
    rng = random.Random(seed)
    settings = StreamsSettings(
        initial_rebalance_delay_ms=rng.choice((0, 3000)),
        assignment_interval_ms=rng.choice((0, 1000)),
        standby_replicas=rng.randrange(3),
    )
    play = StreamsPlay(settings, t=5, u=3, c=5)
    clients: list[Client] = []
    for number in range(60):
        play.now_ms += rng.randrange(500)
        what = rng.random()
        if not clients or (what < 0.15 and len(clients) < 6):
            clients.append(Client(play, f"m{number}", f"p{rng.randrange(4)}"))
            clients[-1].join()
        elif what < 0.22:
            gone = clients.pop(rng.randrange(len(clients)))
            play.leave(gone.name)
        elif what < 0.55:
            rng.choice(clients).obey()
        else:
            rng.choice(clients).beat(is_lost=rng.random() < 0.15)
        check(clients)
        assert_replayed(play, settings)
    for _ in range(12):
        play.advance(1000)
        for client in clients:
            client.obey()
            client.beat()
            check(clients)
    assert {(s, p) for c in clients for s, ps in c.active.items() for p in ps} == TASKS
    assert play.group.state is StreamsGroupState.STABLE


def assert_replayed(play: StreamsPlay, settings: StreamsSettings) -> None:
    """Loading makes the same group."""
    again = StreamsGroup("g", settings, play.topics)
    again.apply(play.stored)
    group = play.group
    assert again.members == group.members
    assert (again.epoch, again.assignment_epoch) == (group.epoch, group.assignment_epoch)
    assert (again.targets, again.topology) == (group.targets, group.topology)
