"""Groups for the assignors' tests, in a few words, and what every assignment has to fulfil."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from mockbroker.core.groups.assignors.base import Assignor, AssignorGroup, AssignorMember, Target

Shares = dict[str, dict[str, list[int]]]


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


def group(
    partitions: Mapping[str, int],
    subscriptions: Mapping[str, str],
    before: Mapping[str, Target] | None = None,
    instances: Mapping[str, str] | None = None,
) -> AssignorGroup:
    """Members by what they subscribe to, a letter for a topic: {"a": "tu"}."""
    wanted = {m: frozenset(topic_id(t) for t in topics) for m, topics in subscriptions.items()}
    members = {
        member: AssignorMember(
            (instances or {}).get(member), topics, (before or {}).get(member, {})
        )
        for member, topics in wanted.items()
    }
    counts = {topic_id(t): n for t, n in partitions.items()}
    return AssignorGroup(members, len(set(wanted.values())) <= 1, counts)


def shares(targets: Mapping[str, Target]) -> Shares:
    """Targets by topic name, readable."""
    return {
        member: {t.rstrip(b"\0").decode(): sorted(ps) for t, ps in sorted(target.items())}
        for member, target in targets.items()
    }


def sizes(targets: Mapping[str, Target]) -> list[int]:
    return sorted(sum(map(len, target.values())) for target in targets.values())


def check(assignor: Assignor, spec: AssignorGroup) -> dict[str, Target]:
    """Each partition has one owner, and that owner subscribes to it; returns the targets."""
    targets = assignor(spec)
    owners: dict[tuple[bytes, int], str] = {}
    for member, target in targets.items():
        for topic, partitions in target.items():
            assert partitions, "an empty set is left out"
            assert topic in spec.members[member].topics
            for partition in partitions:
                assert owners.setdefault((topic, partition), member) == member
    wanted = {t for member in spec.members.values() for t in member.topics}
    assert set(owners) == {(t, p) for t in wanted for p in range(spec.partitions[t])}
    return targets


def moved(before: Mapping[str, Target], after: Mapping[str, Target]) -> int:
    """How many partitions a member lost that is still there."""
    return sum(
        len(ps - after[member].get(topic, frozenset()))
        for member, target in before.items()
        if member in after
        for topic, ps in target.items()
    )


subscriptions = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=3),
    st.text("tuvw", min_size=1, max_size=4),
    min_size=1,
    max_size=7,
)
partition_counts = st.fixed_dictionaries(dict.fromkeys("tuvw", st.integers(1, 9)))
