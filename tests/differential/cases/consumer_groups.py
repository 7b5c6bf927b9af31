"""Groups of the new protocol (KIP-848): heartbeats, assignors, fencing, static members, regexes.

Member ids are the cases' own, as those of v1 are, and the brokers' assignment interval is 0: so
what an assignor gives to whom is the same on both brokers.
"""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from mockbroker_protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    RequestTopicPartitions,
)
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from tests.differential.dialogue import find_coordinator, make_topic, wait_for_leaders
from tests.differential.registry import case
from tests.differential.session import Session

GROUP_RESOURCE = 32

Owned = dict[bytes, list[int]]


def beat(
    group: str, member: str, epoch: int, owned: Owned | None = None, **options: Any
) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat that says what the member owns, if it does."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        topic_partitions=None
        if owned is None
        else [RequestTopicPartitions(topic_id=t, partitions=ps) for t, ps in owned.items()],
        **options,
    )


def joining(group: str, member: str, *topics: str, **options: Any) -> ConsumerGroupHeartbeatRequest:
    """The heartbeat of a member that joins."""
    defaults: dict[str, Any] = {
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": list(topics),
    }
    return beat(group, member, 0, {}, **{**defaults, **options})


def assigned(answer: Any, before: Owned | None = None) -> Owned:
    """What an answer assigns, to be reported with the next heartbeat; `before` if it is silent."""
    if answer.assignment is None and before is not None:
        return before
    return {bytes(t.topic_id): list(t.partitions) for t in answer.assignment.topic_partitions}


def new_group(session: Session, suffix: str = "", **configs: str) -> str:
    """A group id whose coordinator is ready, with group configs of its own.

    A real coordinator hears of the configs with the metadata: they hold once it knows a topic that
    was made later.
    """
    group = f"{session.name}{suffix}"
    find_coordinator(session, group)
    if configs:
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE,
            resource_name=group,
            configs=[AlterableConfig(name=k, value=v) for k, v in configs.items()],
        )
        session.quietly(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return group


def topic_of(session: Session, suffix: str = "", partitions: int = 4) -> tuple[str, bytes]:
    """A topic that group coordinators know of; its name and id."""
    name = make_topic(session, suffix, partitions)
    topic_id = wait_for_leaders(session, name)
    wait_for_coordinator(session, name, partitions)
    return name, topic_id


def wait_for_coordinator(
    session: Session, topic: str, partitions: int, group: str | None = None
) -> None:
    """Metadata comes to the group coordinator a moment after it comes to clients."""
    group = group or f"{topic}-probe"
    find_coordinator(session, group)
    for attempt in range(2000):
        answer = session.quietly(joining(group, f"probe-{attempt}", topic), 1)
        found = answer.assignment.topic_partitions
        session.quietly(beat(group, f"probe-{attempt}", -1), 1)
        session.quietly(DeleteGroupsRequest(groups_names=[group]), 2)
        if found and len(found[0].partitions) == partitions:
            return
    raise AssertionError(f"the coordinator never saw {topic}")


def describe(session: Session, *groups: str, version: int = 1, label: str = "describe") -> Any:
    return session.ask(ConsumerGroupDescribeRequest(group_ids=list(groups)), version, label=label)


def catch_up(session: Session, group: str, member: str, epoch: int, owned: Owned) -> Any:
    """Beat until the member's epoch moves on; that answer is recorded."""
    return session.until(
        beat(group, member, epoch, owned), 1, lambda answer: answer.member_epoch != epoch
    )


@case()
def consumer_heartbeat_invalid_requests(session: Session) -> None:
    group = new_group(session)
    for version in (0, 1):
        for label, request in {
            "no group": joining("", "m", "t"),
            "blank group": joining(" ", "m", "t"),
            "empty instance": joining(group, "m", "t", instance_id=""),
            "empty rack": joining(group, "m", "t", rack_id=""),
            "no timeout": joining(group, "m", "t", rebalance_timeout_ms=-1),
            "no subscription": joining(group, "m", subscribed_topic_names=None),
            "does not say what it owns": beat(
                group, "m", 0, None, rebalance_timeout_ms=1, subscribed_topic_names=["t"]
            ),
            "owns something": beat(
                group, "m", 0, {bytes(16): [0]}, rebalance_timeout_ms=1, subscribed_topic_names=[]
            ),
            "unknown assignor": joining(group, "m", "t", server_assignor="sticky"),
            "epoch -3": beat(group, "m", -3),
            "no member id, epoch 1": beat(group, "", 1),
            "no member id leaves": beat(group, "", -1),
            "static leave without instance": beat(group, "m", -2),
            "unknown group": beat(group, "m", 1),
            "unknown group, leave": beat(group, "m", -1),
            "unknown group, static leave": beat(group, "m", -2, instance_id="i"),
        }.items():
            session.ask(request, version, label=label)
    session.ask(joining(group, "", "t"), 1, label="v1 without a member id")
    describe(session, group)


@case()
def consumer_group_of_one(session: Session) -> None:
    topic, _ = topic_of(session)
    for version in (0, 1):
        group = new_group(session, f"-{version}")
        member = "" if version == 0 else "member-of-its-own"
        joined = session.ask(joining(group, member, topic), version, label="join")
        member, epoch, owned = joined.member_id, joined.member_epoch, assigned(joined)
        session.ask(beat(group, member, epoch), version, label="nothing new")
        session.ask(beat(group, member, epoch, owned), version, label="owns what it has")
        full = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": [topic]}
        session.ask(beat(group, member, epoch, owned, **full), version, label="full request")
        session.ask(joining(group, member, topic), version, label="joins again")
        for describe_version in (0, 1):
            describe(session, group, version=describe_version)
        for old_version in (0, 5, 6):
            session.ask(DescribeGroupsRequest(groups=[group]), old_version, label="old describe")
        session.ask(
            ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True),
            version,
            label="with operations",
        )
        session.ask(beat(group, member, epoch, owned, rack_id="r"), version, label="other rack")
        session.ask(
            beat(group, member, epoch, owned, server_assignor="range"), version, label="assignor"
        )
        describe(session, group)
        session.ask(
            beat(group, member, epoch, owned, subscribed_topic_names=[]),
            version,
            label="subscribes to nothing",
        )
        describe(session, group)
        session.ask(DeleteGroupsRequest(groups_names=[group]), 2, label="not empty")
        session.ask(beat(group, member, -1), version, label="leaves")
        session.ask(beat(group, member, epoch), version, label="has left")
        describe(session, group)
        session.ask(DeleteGroupsRequest(groups_names=[group]), 2, label="empty")
        describe(session, group, "", label="gone")


@case()
def consumer_groups_listed(session: Session) -> None:
    topic, _ = topic_of(session)
    group, empty = new_group(session), new_group(session, "-empty")
    session.ask(joining(group, "m", topic), 1)
    session.ask(joining(empty, "m", topic), 1)
    session.ask(beat(empty, "m", -1), 1)

    def mine(answer: Any) -> Any:
        answer.groups = sorted(
            (g for g in answer.groups if g.group_id in (group, empty)), key=lambda g: g.group_id
        )
        return answer

    for version in range(6):
        session.ask(ListGroupsRequest(), version, edit=mine)
    for states in (["stable"], ["EMPTY"], ["Assigning"], ["Dead"]):
        session.ask(ListGroupsRequest(states_filter=states), 5, label=f"{states}", edit=mine)
    for types in (["classic"], ["CONSUMER"], ["share"], ["none"]):
        session.ask(ListGroupsRequest(types_filter=types), 5, label=f"{types}", edit=mine)


def play_members(session: Session, assignor: str, partitions: int, members: int) -> None:
    """Members come one after the other and leave again; each settles before the next."""
    topic, _ = topic_of(session, partitions=partitions)
    group = new_group(session)
    state: dict[str, tuple[int, Owned]] = {}

    def settle() -> None:
        """Everybody beats, says what it was told to own, and takes what it is given."""
        for _ in range(3):
            for name, (epoch, owned) in list(state.items()):
                answer = session.ask(beat(group, name, epoch, owned), 1, label=name)
                state[name] = (answer.member_epoch, assigned(answer, owned))
        describe(session, group)

    for number in range(members):
        name = f"member-{number}"
        joined = session.ask(joining(group, name, topic, server_assignor=assignor), 1)
        state[name] = (joined.member_epoch, assigned(joined))
        describe(session, group, label="after a join")
        settle()
    for name in list(state)[::2]:
        session.ask(beat(group, name, -1), 1, label=f"{name} leaves")
        del state[name]
        settle()


@case()
def consumer_group_uniform(session: Session) -> None:
    play_members(session, "uniform", partitions=7, members=3)


@case()
def consumer_group_uniform_many(session: Session) -> None:
    # Not more than 16: in Java's sets, 8 and 24 come in the order in which they were put in.
    play_members(session, "uniform", partitions=16, members=9)


@case()
def consumer_group_range(session: Session) -> None:
    play_members(session, "range", partitions=7, members=3)


@case()
def consumer_group_of_different_subscriptions(session: Session) -> None:
    """How many partitions a topic has for each subscriber differs, so the order of topics is
    given.
    """
    for assignor in ("uniform", "range"):
        small, _ = topic_of(session, f"-{assignor}-small", 2)
        large, _ = topic_of(session, f"-{assignor}-large", 16)
        group = new_group(session, f"-{assignor}")
        subscriptions = {
            "only-small": [small],
            "both": [small, large],
            "only-large": [large],
            "nothing": ["no-such-topic"],
        }
        state: dict[str, tuple[int, Owned]] = {}
        for name, topics in subscriptions.items():
            joined = session.ask(joining(group, name, *topics, server_assignor=assignor), 1)
            state[name] = (joined.member_epoch, assigned(joined))
        for _ in range(4):
            for name, (epoch, owned) in list(state.items()):
                answer = session.ask(beat(group, name, epoch, owned), 1, label=name)
                state[name] = (answer.member_epoch, assigned(answer, owned))
        describe(session, group)


@case()
def consumer_group_reconciles(session: Session) -> None:
    """Nothing is given to a second member before the first has let go of it."""
    topic, topic_id = topic_of(session, partitions=4)
    group = new_group(session)
    first = session.ask(joining(group, "first", topic), 1, label="first joins")
    second = session.ask(joining(group, "second", topic), 1, label="second joins")
    describe(session, group, label="first has yet to hear")
    session.ask(beat(group, "second", second.member_epoch, {}), 1, label="second waits")
    told = session.ask(beat(group, "first", first.member_epoch), 1, label="first is told")
    describe(session, group, label="first has yet to let go")
    epoch = told.member_epoch
    session.ask(beat(group, "first", epoch), 1, label="first does not say")
    everything = {topic_id: [0, 1, 2, 3]}
    session.ask(beat(group, "first", epoch, everything), 1, label="first still owns all")
    session.ask(beat(group, "second", second.member_epoch, {}), 1, label="second still waits")
    done = session.ask(beat(group, "first", epoch, assigned(told)), 1, label="first lets go")
    describe(session, group, label="free")
    session.ask(beat(group, "second", second.member_epoch), 1, label="second gets")
    session.ask(beat(group, "first", done.member_epoch), 1, label="first beats")
    describe(session, group, label="stable")


@case()
def consumer_group_fencing(session: Session) -> None:
    topic, topic_id = topic_of(session, partitions=4)
    group = new_group(session)
    first = session.ask(joining(group, "first", topic), 1)
    epoch = first.member_epoch
    session.ask(beat(group, "first", epoch + 1), 1, label="from the future")
    session.ask(beat(group, "first", epoch - 1), 1, label="smaller")
    session.ask(beat(group, "nobody", epoch), 1, label="unknown")
    session.ask(beat(group, "nobody", -1), 1, label="unknown leaves")
    session.ask(beat(group, "first", epoch, instance_id="i"), 1, label="not static")
    second = session.ask(joining(group, "second", topic), 1)
    told = session.ask(beat(group, "first", epoch), 1)
    done = session.ask(beat(group, "first", told.member_epoch, assigned(told)), 1)
    session.ask(beat(group, "first", epoch), 1, label="previous, does not say what it owns")
    everything = {topic_id: [0, 1, 2, 3]}
    session.ask(beat(group, "first", epoch, everything), 1, label="previous, owns too much")
    session.ask(beat(group, "first", epoch, assigned(told)), 1, label="previous, answer lost")
    session.ask(beat(group, "first", epoch, {bytes(16): [1]}), 1, label="previous, other topic")
    session.ask(beat(group, "first", done.member_epoch), 1, label="current")
    session.ask(beat(group, "second", second.member_epoch), 1, label="second")
    session.ask(joining(group, "first", topic), 1, label="joins again")
    describe(session, group)


@case()
def consumer_group_static_members(session: Session) -> None:
    topic, _ = topic_of(session, partitions=4)
    group = new_group(session)
    one = {"instance_id": "one"}
    first = session.ask(joining(group, "first", topic, **one), 1, label="joins")
    epoch, owned = first.member_epoch, assigned(first)
    session.ask(joining(group, "second", topic, **one), 1, label="another while it is there")
    session.ask(joining(group, "first", topic, **one), 1, label="itself again")
    session.ask(beat(group, "second", epoch, **one), 1, label="another beats")
    session.ask(beat(group, "first", epoch, instance_id="two"), 1, label="another instance")
    session.ask(beat(group, "first", epoch, owned, **one), 1, label="beats")
    session.ask(beat(group, "first", epoch, owned), 1, label="without its instance id")
    session.ask(beat(group, "second", -2, **one), 1, label="another leaves for it")
    session.ask(beat(group, "first", -2, instance_id="two"), 1, label="unknown instance leaves")
    session.ask(beat(group, "first", -2, **one), 1, label="leaves for a while")
    describe(session, group, label="away")
    session.ask(beat(group, "first", epoch, owned, **one), 1, label="beats while away")
    again = session.ask(joining(group, "second", topic, **one), 1, label="comes back")
    describe(session, group, label="back")
    session.ask(beat(group, "first", epoch, owned, **one), 1, label="its former self")
    session.ask(beat(group, "second", again.member_epoch, **one), 1, label="its new self")
    session.ask(beat(group, "second", -2, **one), 1, label="leaves for a while again")
    session.ask(joining(group, "second", topic, **one), 1, label="comes back as it was")
    session.ask(beat(group, "second", -2, **one), 1, label="and again")
    other, _ = topic_of(session, "-other", partitions=2)
    session.ask(joining(group, "third", other, **one), 1, label="with another subscription")
    describe(session, group, label="changed")
    session.ask(beat(group, "third", -1, **one), 1, label="for good")
    describe(session, group, label="empty")


@case()
def consumer_group_regex(session: Session) -> None:
    topic, _ = topic_of(session, "-regex-1", partitions=2)
    group = new_group(session)
    no_names = {"subscribed_topic_names": None}
    for regex in ("(", "a**", "[b", "(?=a)", "\\1", "a{2000}", "(?<n>a)(?P>n)", "\\y"):
        request = joining(group, "m", subscribed_topic_regex=regex, **no_names)
        session.ask(request, 1, label=regex)
    regex = f"{session.name}-regex-[0-9]"
    join = joining(group, "m", subscribed_topic_regex=regex, **no_names)
    joined = session.ask(join, 1, label="joins")
    answer = catch_up(session, group, "m", joined.member_epoch, {})
    describe(session, group)
    second = joining(group, "second", subscribed_topic_regex=regex, **no_names)
    session.ask(second, 1, label="same regex")
    describe(session, group)
    told = session.ask(beat(group, "m", answer.member_epoch, assigned(answer)), 1, label="told")
    session.ask(beat(group, "m", told.member_epoch, assigned(told)), 1, label="let go")
    session.ask(beat(group, "second", -1), 1, label="leaves")
    by_name = beat(group, "m", 0, {}, rebalance_timeout_ms=1, subscribed_topic_names=[topic])
    session.ask(by_name, 1, label="by name as well")
    describe(session, group)
    by_name.subscribed_topic_regex = ""
    session.ask(by_name, 1, label="by name only")
    describe(session, group)
    nothing = joining(group, "m", subscribed_topic_regex="")
    session.ask(nothing, 1, label="by an empty regex")
    describe(session, group)


# What RE2 has and Java or Python have not, and the other way round.
REGEXES = (
    *(
        r"\pL+",
        r"\p{Lu}",
        r"\PL",
        r"\p{^Lu}",
        r"[\pN.]+",
        "[[:alpha:]]",
        "[[:^alpha:]]",
        r"\Qa.b\E",
    ),
    *(
        r"\Qa.b",
        r"a\z",
        "(?i)abc",
        "(?P<n>a)b",
        "(?<n>a)b",
        "a{2,3}",
        "[]a]",
        "a|b|",
        r"\C",
        "a??b",
    ),
    *(")", "[b-a]", "*a", "a**", "a++", "a*+", "a{2}{3}", "a{1000}", "a{1001}", "a{2,1001}"),
    *("(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?P=n)", "(?P>n)", r"\Z", "[[:nope:]]", r"\p{Nope}"),
    *(
        "\\",
        "(?U)a",
        "(?s).",
        "(?m)^a$",
        "(?-i)a",
        "(?x)a",
        "(?#a)",
        "(?L)a",
        r"\A",
        r"\b",
        r"\B",
        r"\h",
    ),
    *(
        "a{,2}",
        "a{",
        "{",
        "}",
        "]",
        "^*",
        "(?:a",
        "(?i",
        "(|a)*",
        "x{2}*",
        "(a){0}",
        r"\x41",
        r"\x{41}",
    ),
    *(
        r"\07",
        r"\8",
        r"\e",
        r"\cA",
        r"\u0041",
        r"\N",
        r"[\b]",
        "[a-\\d]",
        "[[.a.]]",
        "[a&&b]",
        r"\G",
        r"\R",
    ),
)


@case()
def consumer_group_regex_syntax(session: Session) -> None:
    for number, regex in enumerate(REGEXES):
        group = new_group(session, f"-{number}")
        request = joining(group, "m", subscribed_topic_names=None, subscribed_topic_regex=regex)
        session.ask(request, 1, label=regex)


@case()
def consumer_group_metadata_changes(session: Session) -> None:
    topic, _ = topic_of(session, "-a", partitions=2)
    late = f"{session.name}-late"
    group = new_group(session)
    joined = session.ask(joining(group, "m", topic, late), 1)
    epoch, owned = joined.member_epoch, assigned(joined)
    more = CreatePartitionsTopic(name=topic, count=5, assignments=None)
    session.quietly(CreatePartitionsRequest(topics=[more], timeout_ms=10_000), 3)
    grown = catch_up(session, group, "m", epoch, owned)
    describe(session, group, label="grown")
    make_topic(session, "-late", 1)
    created = catch_up(session, group, "m", grown.member_epoch, assigned(grown))
    describe(session, group, label="created")
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000)
    session.quietly(gone, 6)
    owned = assigned(created)
    answer = session.until(
        beat(group, "m", created.member_epoch, owned), 1, lambda a: a.assignment is not None
    )
    session.ask(beat(group, "m", answer.member_epoch, assigned(answer)), 1, label="deleted")
    describe(session, group, label="deleted")


@case()
def consumer_group_waits_to_assign(session: Session) -> None:
    """A new target comes only once the assignment interval is over, even in an empty group."""
    group = new_group(session, **{"consumer.assignment.interval.ms": "15000"})
    topic, _ = topic_of(session, partitions=4)
    first = session.ask(joining(group, "first", topic), 1, label="first")
    describe(session, group)
    session.ask(joining(group, "second", topic), 1, label="second")
    describe(session, group)
    session.ask(beat(group, "first", first.member_epoch, assigned(first)), 1, label="first beats")
    session.ask(beat(group, "second", 0 + first.member_epoch, {}), 1, label="second beats")
    session.ask(beat(group, "first", -1), 1, label="first leaves")
    describe(session, group)
    session.ask(beat(group, "second", -1), 1, label="second leaves")
    session.ask(joining(group, "third", topic), 1, label="third")
    describe(session, group)
