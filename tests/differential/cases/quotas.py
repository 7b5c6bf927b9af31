"""Quotas: told and told back, and enforced by times to wait, by silence, by refusals."""

from __future__ import annotations

import itertools
from typing import Any

from mockbroker_protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from tests.differential.dialogue import batch, make_topic, produce_request
from tests.differential.registry import case
from tests.differential.session import Session

EXACT, DEFAULT, ANY = range(3)
BARRIERS = itertools.count(1)
ENTITIES: tuple[dict[str, str | None], ...] = (
    {"user": "u"},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
)


def alteration(
    *entries: tuple[dict[str, str | None], dict[str, float | None]], validate_only: bool = False
) -> AlterClientQuotasRequest:
    """None removes a quota."""
    return AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[RequestEntityData(kind, name) for kind, name in entity.items()],
                ops=[OpData(key, value or 0.0, value is None) for key, value in values.items()],
            )
            for entity, values in entries
        ],
        validate_only=validate_only,
    )


def allow(session: Session, **quotas: float) -> str:
    """Set quotas of a client id of the case's own; that id."""
    who = f"{session.name}-client"
    session.quietly(alteration(({"client-id": who}, {**quotas})), 1)
    described = DescribeClientQuotasRequest([ComponentData("client-id", EXACT, who)], strict=True)
    while [v.value for e in session.quietly(described, 1).entries for v in e.values] != [
        *quotas.values()
    ]:
        pass
    pass_barrier(session)
    return who


def pass_barrier(session: Session) -> None:
    """Return when a real broker goes by the quotas that it tells of.

    It applies one change of the metadata after the other, and tells of each before it applies it.
    """
    rate = next(BARRIERS)
    entity: dict[str, str | None] = {"client-id": f"{session.name}-barrier"}
    session.quietly(alteration((entity, {"producer_byte_rate": float(rate)})), 1)
    told = DescribeClientQuotasRequest(
        [ComponentData("client-id", EXACT, entity["client-id"])], strict=True
    )
    while [v.value for e in session.quietly(told, 1).entries for v in e.values] != [rate]:
        pass


def describe(
    session: Session, *components: ComponentData, strict: bool = False, version: int = 1
) -> None:
    def own(answer: Any) -> Any:
        """Entities of other cases are left out, and the order does not matter."""
        if answer.entries is not None:
            mine = ("u", "c", "10.1.2.3", None)
            answer.entries = sorted(
                (e for e in answer.entries if all(part.entity_name in mine for part in e.entity)),
                key=str,
            )
            for entry in answer.entries:
                entry.entity.sort(key=str)
                entry.values.sort(key=str)
        return answer

    request = DescribeClientQuotasRequest(components=list(components), strict=strict)
    session.ask(request, version, label=f"{components} {strict}", edit=own)


def sorted_entries(answer: Any) -> Any:
    """Kafka answers by hash order."""
    answer.entries.sort(key=str)
    return answer


def settle(session: Session, entity_type: str, count: int) -> None:
    """Wait until a broker has heard of what the controller took: so many quotas of a type."""
    request = DescribeClientQuotasRequest([ComponentData(entity_type, ANY, None)])
    while sum(len(entry.values) for entry in session.quietly(request, 1).entries) != count:
        pass


def loosely(answer: Any) -> Any:
    """Of the time to wait only that there is one: it shrinks while the case is played."""
    answer.throttle_time_ms = min(answer.throttle_time_ms, 1)
    return answer


@case()
def quotas_are_told_back(session: Session) -> None:
    values: dict[str, float | None] = {"producer_byte_rate": 1e9, "consumer_byte_rate": 2e9}
    for version in (0, 1):
        for entity in ENTITIES:
            session.ask(alteration((entity, values)), version, label=str(entity))
        session.ask(
            alteration(
                ({"ip": "10.1.2.3"}, {"connection_creation_rate": 1e6}),
                ({"user": "u"}, {"request_percentage": 250.5, "controller_mutation_rate": 1e6}),
                ({"user": None}, {"producer_byte_rate": None}),
            ),
            version,
            edit=sorted_entries,
        )
        settle(session, "user", 13)
        settle(session, "ip", 1)
        for kind in ("user", "client-id", "ip"):
            for match, name in ((EXACT, "u"), (EXACT, "c"), (DEFAULT, None), (ANY, None)):
                for strict in (False, True):
                    component = ComponentData(kind, match, name)
                    describe(session, component, strict=strict, version=version)
        describe(session, ComponentData("user", ANY, None), ComponentData("client-id", DEFAULT))
        describe(session)
        gone = dict.fromkeys(
            (*values, "request_percentage", "controller_mutation_rate"),
        )
        everything = alteration(*((entity, gone) for entity in ENTITIES))
        session.ask(everything, version, edit=sorted_entries)
        session.ask(alteration(({"ip": "10.1.2.3"}, {"connection_creation_rate": None})), version)
        settle(session, "user", 0)
        settle(session, "ip", 0)
        describe(session, version=version)


@case()
def quotas_that_make_no_sense(session: Session) -> None:
    wrong: tuple[tuple[dict[str, str | None], dict[str, float | None]], ...] = (
        ({}, {"producer_byte_rate": 1.0}),
        ({"bogus": "x"}, {"producer_byte_rate": 1.0}),
        ({"user": ""}, {"producer_byte_rate": 1.0}),
        ({"user": "u", "ip": "10.1.2.3"}, {"producer_byte_rate": 1.0}),
        ({"user": "u"}, {"bogus": 1.0}),
        ({"user": "u"}, {"producer_byte_rate": 0.0}),
        ({"user": "u"}, {"producer_byte_rate": -1.0}),
        ({"user": "u"}, {"producer_byte_rate": 1.5}),
        ({"user": "u"}, {"connection_creation_rate": 1.0}),
        ({"ip": "10.1.2.3"}, {"producer_byte_rate": 1.0}),
        ({"ip": "not an address"}, {"connection_creation_rate": 1.0}),
        ({"user": "u"}, {"bogus": None}),
        ({"user": "u"}, {"producer_byte_rate": 1e19}),
        ({"user": "u"}, {"request_percentage": 1e19, "bogus": 1.0}),
        ({"ip": "10.1.2.3"}, {"connection_creation_rate": 1e10}),
    )
    for entity, values in wrong:
        for validate_only in (False, True):
            request = alteration((entity, values), validate_only=validate_only)
            session.ask(request, 1, label=f"{entity} {values}")
    for twice in ({"user": "u"}, {"user": None}, {"client-id": "c", "user": "u"}):
        entry = (twice, {"producer_byte_rate": 1.0})
        session.ask(alteration(entry, entry, validate_only=True), 1, label=f"{twice} twice")
    for component in (
        ComponentData("bogus", EXACT, "x"),
        ComponentData("", EXACT, "x"),
        ComponentData("user", EXACT, None),
        ComponentData("user", DEFAULT, "x"),
        ComponentData("user", 9, None),
    ):
        describe(session, component)
    describe(session, ComponentData("user", ANY, None), ComponentData("ip", ANY, None))


@case()
def quotas_of_bytes_produced(session: Session) -> None:
    """20,000 bytes at 1,000 a second: the wait is exact, as long as it is the first request."""
    topic = make_topic(session)
    who = allow(session, producer_byte_rate=1_000.0)
    session.ask(produce_request(topic, batch([b"v" * 20_000]), acks=1), 9, who)
    session.no_answer(ApiVersionsRequest(), 0, who, label="muted")
    # The quota counts for all connections of the client, and in every version.
    for version in (3, 9, 11):
        session.ask(produce_request(topic, batch()), version, who, edit=loosely)
        session.drop(who)
    allow(session, producer_byte_rate=1e9)
    session.ask(produce_request(topic, batch()), 9, who, label="enough")
    session.drop(who)


@case()
def quotas_of_bytes_produced_without_acks(session: Session) -> None:
    topic = make_topic(session)
    who = allow(session, producer_byte_rate=1_000.0)
    request = produce_request(topic, batch([b"v" * 100_000]), acks=0)
    session.connection(who).write(request, 9)
    session.no_answer(ApiVersionsRequest(), 0, who, label="muted")


@case()
def quotas_of_bytes_fetched(session: Session) -> None:
    """A throttled Fetch brings nothing, and costs nothing."""
    topic = make_topic(session)
    session.quietly(produce_request(topic, batch([b"v" * 50_000])), 9)
    session.quietly(produce_request(topic, batch([b"w" * 50])), 9)
    who = allow(session, consumer_byte_rate=100.0)

    def fetch(offset: int, label: str, edit: Any = lambda answer: answer) -> None:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
        )
        session.ask(request, 12, who, label=label, edit=edit)
        session.drop(who)

    fetch(0, "too much")
    fetch(1, "little")
    fetch(0, "again too much", loosely)
    allow(session, consumer_byte_rate=1e9)
    fetch(0, "enough")


@case()
def quotas_of_time(session: Session) -> None:
    """Whatever a handler took is too much; the wait is one window, and a Fetch brings nothing."""
    topic = make_topic(session)
    session.quietly(produce_request(topic, batch()), 9)
    who = allow(session, request_percentage=1e-7)
    for version in (0, 1, 4):
        session.ask(ListGroupsRequest(), version, who, edit=without_groups)
        session.drop(who)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic=topic, partitions=[partition])])
    session.ask(fetch, 12, who)
    session.drop(who)
    session.ask(produce_request(topic, batch()), 9, who)
    session.drop(who)
    allow(session, request_percentage=10_000.0)
    session.ask(fetch, 12, who, label="enough")
    session.ask(ListGroupsRequest(), 4, who, label="enough", edit=without_groups)
    session.drop(who)


def without_groups(answer: Any) -> Any:
    answer.groups = []
    return answer


@case()
def quotas_of_mutations(session: Session) -> None:
    """Strict versions refuse while the tokens are in debt; older ones do it and tell to wait."""
    name = session.name
    topic = make_topic(session, "-grown")
    who = allow(session, controller_mutation_rate=0.01)

    def ask(request: Any, version: int, label: str) -> None:
        session.ask(request, version, who, label=label, edit=loosely)
        session.drop(who)

    def create(suffix: str, *, validate_only: bool = False) -> CreateTopicsRequest:
        wanted = CreatableTopic(name=f"{name}-{suffix}", num_partitions=2, replication_factor=1)
        return CreateTopicsRequest([wanted], timeout_ms=10_000, validate_only=validate_only)

    def grow(count: int) -> CreatePartitionsRequest:
        wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        return CreatePartitionsRequest([wanted], timeout_ms=10_000)

    ask(create("first"), 7, "there are tokens")
    ask(create("second"), 7, "strict")
    ask(create("second"), 6, "strict")
    ask(create("second", validate_only=True), 7, "strict, not even meant")
    ask(create("second"), 5, "permissive")
    ask(create("second"), 7, "there already, which is looked at first")
    ask(grow(2), 3, "strict")
    ask(grow(2), 2, "permissive")
    first = DeleteTopicsRequest(topics=[DeleteTopicState(name=f"{name}-first")], timeout_ms=10_000)
    ask(first, 6, "strict")
    old = DeleteTopicsRequest(topic_names=[f"{name}-first"], timeout_ms=10_000)
    ask(old, 5, "strict")
    ask(old, 4, "permissive")
    session.quietly(alteration(({"client-id": who}, {"controller_mutation_rate": None})), 1)


@case()
def quotas_of_connections(session: Session) -> None:
    """At one a second ten connections are served at once, and the eleventh is closed."""
    address: dict[str, str | None] = {"ip": "127.0.0.1"}
    session.quietly(alteration((address, {"connection_creation_rate": 1.0})), 1)
    described = DescribeClientQuotasRequest([ComponentData("ip", ANY, None)])
    while not session.quietly(described, 1).entries:
        pass
    pass_barrier(session)
    try:
        for number in range(11):
            session.ask(ApiVersionsRequest(), 0, f"{number}", edit=lambda answer: answer.error_code)
    finally:
        session.quietly(alteration((address, {"connection_creation_rate": None})), 1)
        settle(session, "ip", 0)
        pass_barrier(session)
        for number in range(11):
            session.drop(f"{number}")
