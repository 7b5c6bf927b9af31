"""The assignors of share and streams groups give each member what Kafka's own give it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mockbroker.core.groups.assignors.base import AssignorGroup, AssignorMember, Target
from mockbroker.core.groups.assignors.simple import assign_simple
from mockbroker.core.groups.streams.sticky import (
    AssignedMember,
    AssignedSubtopology,
    assign_sticky,
)
from mockbroker.core.groups.streams.tasks import NO_TASKS, Tasks, TaskSets
from tests.support.java_pipe import JavaPipe

pytestmark = pytest.mark.java

RUNS, ROUNDS = 60, 8


class Group:
    """A share group that changes from round to round; its topics and members are drawn."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        topics = [self.rng.randbytes(16) for _ in range(self.rng.randint(1, 3))]
        self.partitions = {topic: self.rng.randint(1, 12) for topic in topics}
        self.assignable = {topic: frozenset(range(n)) for topic, n in self.partitions.items()}
        self.uniform = bool(seed % 2)
        self.members: dict[str, frozenset[bytes]] = {}
        self.targets: dict[str, Target] = {}

    def change(self) -> None:
        """Members join and leave, topics grow, partitions have no state yet."""
        rng = self.rng
        for _ in range(rng.randint(0, 3)):
            topics = list(self.partitions)
            chosen = topics if self.uniform else rng.sample(topics, rng.randint(1, len(topics)))
            self.members[f"member-{rng.randint(0, 20)}"] = frozenset(chosen)
        for member in rng.sample(sorted(self.members), min(rng.randint(0, 2), len(self.members))):
            del self.members[member]
            self.targets.pop(member, None)
        if rng.random() < 0.3:
            topic = rng.choice(list(self.partitions))
            self.partitions[topic] += 1
        for topic, count in self.partitions.items():
            if rng.random() < 0.8:
                self.assignable[topic] = frozenset(range(count))

    def spec(self) -> AssignorGroup:
        members = {
            each: AssignorMember(None, topics, self.targets.get(each, {}))
            for each, topics in self.members.items()
        }
        return AssignorGroup(members, len(set(self.members.values())) <= 1, self.partitions)

    def item(self) -> dict[str, Any]:
        """The same group for the oracle."""
        spec = self.spec()
        return {
            "members": [
                {
                    "id": each,
                    "topics": sorted(topic.hex() for topic in member.topics),
                    "target": _hex(member.target),
                }
                for each, member in spec.members.items()
            ],
            "uniform": spec.uniform,
            "partitions": {topic.hex(): count for topic, count in self.partitions.items()},
            "assignable": _hex(self.assignable),
        }


def _hex(target: Target) -> dict[str, list[int]]:
    """In the order of ids, which decides between topics of one bucket of a hash table."""
    return {topic.hex(): sorted(ps) for topic, ps in sorted(target.items())}


def test_share_groups_are_assigned_as_by_kafka(kafka43: JavaPipe) -> None:
    """Round by round: the targets of one are the members' partitions in the next."""
    groups = [Group(seed) for seed in range(RUNS)]
    for number in range(ROUNDS):
        for group in groups:
            group.change()
        answers = kafka43.ask("assign.simple", [group.item() for group in groups])
        for seed, (group, answer) in enumerate(zip(groups, answers, strict=True)):
            targets = assign_simple(group.spec(), group.assignable)
            ours = {each: _hex(target) for each, target in targets.items()}
            theirs = {
                each: {topic: sorted(ps) for topic, ps in target.items()}
                for each, target in answer["targets"].items()
            }
            assert ours == theirs, f"group {seed}, round {number}"
            group.targets = dict(targets)


class StreamsGroup:
    """A streams group that changes from round to round; its topology and members are drawn."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.subtopologies = {
            str(number): AssignedSubtopology(self.rng.randint(1, 9), self.rng.random() < 0.7)
            for number in range(self.rng.randint(1, 3))
        }
        self.replicas = seed % 3
        self.members: dict[str, AssignedMember] = {}

    def change(self) -> None:
        """Threads of some processes join and leave; a topic grows."""
        rng = self.rng
        for _ in range(rng.randint(0, 3) if self.members else 2):
            process = f"process-{rng.randint(0, 5)}"
            name = f"{process}-{rng.randint(0, 3)}"
            self.members.setdefault(name, AssignedMember(process, NO_TASKS))
        for member in rng.sample(sorted(self.members), rng.randint(0, len(self.members) - 1)):
            if rng.random() < 0.3:
                del self.members[member]
        if rng.random() < 0.2:
            name = rng.choice(sorted(self.subtopologies))
            tasks, is_stateful = self.subtopologies[name]
            self.subtopologies[name] = AssignedSubtopology(tasks + 1, is_stateful)

    def item(self) -> dict[str, Any]:
        """The same group for the oracle."""
        return {
            "members": [
                {"id": name, "process": member.process_id, **_plain(member.last)}
                for name, member in self.members.items()
            ],
            "subtopologies": [
                {"id": name, "tasks": each.tasks, "stateful": each.is_stateful}
                for name, each in self.subtopologies.items()
            ],
            "replicas": self.replicas,
        }


def _plain(tasks: Tasks) -> dict[str, Any]:
    def lines(sets: TaskSets) -> dict[str, list[int]]:
        return {subtopology: sorted(those) for subtopology, those in sets.items() if those}

    return {"active": lines(tasks.active), "standby": lines(tasks.standby)}


def test_streams_groups_are_assigned_as_by_kafka(kafka43: JavaPipe) -> None:
    """Round by round: the targets of one are the last tasks of the next."""
    groups = [StreamsGroup(seed) for seed in range(RUNS)]
    for number in range(ROUNDS):
        for group in groups:
            group.change()
        answers = kafka43.ask("assign.sticky", [group.item() for group in groups])
        for seed, (group, answer) in enumerate(zip(groups, answers, strict=True)):
            targets = assign_sticky(group.members, group.subtopologies, group.replicas)
            ours = {name: _plain(tasks) for name, tasks in targets.items()}
            theirs = {
                name: {
                    kind: {each: sorted(those) for each, those in sets.items()}
                    for kind, sets in target.items()
                }
                for name, target in answer["targets"].items()
            }
            assert ours == theirs, f"group {seed}, round {number}"
            group.members = {
                name: AssignedMember(member.process_id, targets[name])
                for name, member in group.members.items()
            }
