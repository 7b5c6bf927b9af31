"""Configs: described with source, type and synonyms; altered one way and the other."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages import alter_configs, incremental_alter_configs
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.differential.dialogue import make_topic
from tests.differential.registry import case
from tests.differential.session import Session

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(
    session: Session,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = 4,
    synonyms: bool = True,
    label: str = "",
    edit: Any = lambda answer: answer,
) -> Any:
    item = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[item], include_synonyms=synonyms)
    return session.ask(request, version, label=label or f"{kind} {name}", edit=edit)


def alter(session: Session, kind: int, name: str, *ops: Any, **o: Any) -> Any:
    """Each op is (config, operation, value)."""
    label = o.pop("label", f"{ops}")
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(
                name=config, config_operation=operation, value=value
            )
            for config, operation, value in ops
        ],
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], **o)
    return session.ask(request, 1, label=label)


@case()
def describe_topic_configs(session: Session) -> None:
    name = make_topic(session, configs={"retention.ms": "1000", "cleanup.policy": "compact"})
    for version in range(1, 5):
        describe(session, TOPIC, name, version=version)
        describe(session, TOPIC, name, version=version, synonyms=False)
        describe(session, TOPIC, name, ["retention.ms", "nonsense"], version=version)
        describe(session, TOPIC, name, [], version=version)
    describe(session, TOPIC, "no-such-topic")
    describe(session, TOPIC, "bad name!")
    describe(session, TOPIC, "")


@case()
def describe_other_resources(session: Session) -> None:
    make_topic(session)
    for kind, name in (
        (BROKER, "7"),
        (BROKER, "x"),
        (GROUP, ""),
        (METRICS, ""),
        (METRICS, "nobody"),
        (LOGGER, "7"),
        (LOGGER, ""),
        (0, "x"),
        (1, "x"),
        (99, "x"),
    ):
        describe(session, kind, name)
    describe(session, GROUP, "some-group")


# Where the process lives, and what the two start with.
PLACES = frozenset(
    {
        "advertised.listeners",
        "listeners",
        "log.dirs",
        "log.dir",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "controller.listener.names",
        "listener.security.protocol.map",
        "process.roles",
    }
)
# The real broker is started with a minimum that one broker can reach. Ours keeps Kafka's default,
# for a minimum above the number of replicas is capped by it. Only ours has configs of its own.
GIVEN = frozenset(
    {
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.min.isr",
        "mockbroker.auto.created.at.once",
    }
)
KNOWN_TO_DIFFER = PLACES | GIVEN


@case()
def describe_broker_configs(session: Session) -> None:
    make_topic(session)

    def comparable(answer: Any) -> Any:
        for result in answer.results:
            result.configs = sorted(
                (config for config in result.configs if config.name not in KNOWN_TO_DIFFER),
                key=lambda config: config.name,
            )
        return answer

    describe(session, BROKER, "1", edit=comparable)
    describe(session, BROKER, "", edit=comparable)


@case()
def alter_topic_configs_incrementally(session: Session) -> None:
    name = make_topic(session)
    keys = ["retention.ms", "cleanup.policy", "max.message.bytes", "compression.type"]

    def op(*ops: Any, **o: Any) -> None:
        alter(session, TOPIC, name, *ops, **o)
        # The answer comes before the broker has caught up with the controller; so does the next.
        session.until(
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=TOPIC, resource_name=name, configuration_keys=keys
                    )
                ]
            ),
            4,
            lambda answer: (
                settled(answer, {c: v for c, k, v in ops if k == SET})
                or bool(o)
                or session.exchanges[-1].answer.responses[0].error_code != 0
            ),
        )

    op(("retention.ms", SET, "5000"))
    op(("retention.ms", SET, "6000"), ("max.message.bytes", SET, "4096"))
    op(("cleanup.policy", SET, "compact"))
    op(("retention.ms", SET, "7000"), validate_only=True)
    for bad in (
        [("nonsense", SET, "1")],
        [("retention.ms", SET, "never")],
        [("retention.ms", SET, None)],
        [("retention.ms", APPEND, "1")],
        [("retention.ms", SUBTRACT, "1")],
        [("retention.ms", 9, "1")],
        [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
        [("max.message.bytes", SET, "-1")],
        [("cleanup.policy", APPEND, "burn")],
    ):
        alter(session, TOPIC, name, *bad)
    alter(session, TOPIC, "no-such-topic", ("retention.ms", SET, "1"))
    alter(session, TOPIC, "", ("retention.ms", SET, "1"))
    alter(session, TOPIC, "bad name!", ("retention.ms", SET, "1"))
    alter(session, 0, "x", ("retention.ms", SET, "1"))
    alter(session, 77, "x", ("retention.ms", SET, "1"))
    twice = incremental_alter_configs.AlterConfigsResource(
        resource_type=TOPIC, resource_name=name, configs=[]
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[twice, twice])
    session.ask(request, 1, label="resource twice")


def settled(answer: Any, wanted: dict[str, str]) -> bool:
    values = {config.name: config.value for config in answer.results[0].configs}
    return all(values.get(name) == value for name, value in wanted.items())


@case()
def alter_topic_configs_as_a_whole(session: Session) -> None:
    name = make_topic(session, configs={"retention.ms": "1000"})

    def alter_all(label: str, topic: str = name, **configs: str | None) -> None:
        resource = alter_configs.AlterConfigsResource(
            resource_type=TOPIC,
            resource_name=topic,
            configs=[
                alter_configs.AlterableConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        for version in (0, 2):
            request = alter_configs.AlterConfigsRequest(resources=[resource])
            session.ask(request, version, label=label)

    alter_all("replace", max_message_bytes="2048")
    alter_all("bad value", max_message_bytes="no")
    alter_all("unknown", nonsense="1")
    alter_all("null", max_message_bytes=None)
    alter_all("unknown topic", "no-such-topic", max_message_bytes="1")
    alter_all("nothing")


@case()
def list_config_resources(session: Session) -> None:
    make_topic(session)

    def mine(answer: Any) -> Any:
        answer.config_resources = sorted(
            (
                found
                for found in answer.config_resources
                if found.resource_type != TOPIC or found.resource_name.startswith(session.name)
            ),
            key=lambda found: (found.resource_type, found.resource_name),
        )
        return answer

    session.ask(ListConfigResourcesRequest(), 0)
    for kinds in ([], [TOPIC], [BROKER], [LOGGER], [METRICS], [GROUP], [TOPIC, BROKER], [7]):
        request = ListConfigResourcesRequest(resource_types=kinds)
        session.ask(request, 1, label=f"{kinds}", edit=mine)


@case()
def alter_other_configs_that_cannot_be(session: Session) -> None:
    """Brokers, loggers, groups and subscriptions, one change at a time and as a whole."""
    wrong: tuple[tuple[int, str, tuple[str, int, str | None]], ...] = (
        (BROKER, "1", ("log.cleaner.threads", SET, "0")),
        (BROKER, "1", ("log.cleaner.threads", SET, "3")),
        (BROKER, "", ("log.cleaner.threads", SET, "0")),
        (BROKER, "1", ("log.cleaner.threads", SET, "many")),
        (BROKER, "1", ("log.cleaner.threads", SUBTRACT, "1")),
        (BROKER, "1", ("log.cleaner.threads", SET, None)),
        (BROKER, "1", ("log.cleaner.threads", APPEND, "1")),
        (BROKER, "1", ("no.such.config", APPEND, "1")),
        (BROKER, "1", ("log.cleaner.threads", 9, "1")),
        (BROKER, "1", ("node.id", SET, "2")),
        (BROKER, "1", ("background.threads", SET, "1000")),
        (BROKER, "1", ("background.threads", SET, "1")),
        (BROKER, "1", ("ssl.keystore.location", SET, "/x")),
        (BROKER, "1", ("min.insync.replicas", SET, "1")),
        (BROKER, "", ("ssl.keystore.type", SET, "PEM")),
        (BROKER, "", ("listener.name.plaintext.ssl.keystore.type", SET, "PEM")),
        (BROKER, "", ("min.insync.replicas", SET, "none")),
        (BROKER, "", ("compression.type", SET, "rar")),
        (BROKER, "7", ("log.cleaner.threads", SET, "2")),
        (BROKER, "x", ("log.cleaner.threads", SET, "2")),
        (LOGGER, "1", ("kafka.no.such.logger", SET, "INFO")),
        (LOGGER, "1", ("root", SET, "LOUD")),
        (LOGGER, "1", ("root", DELETE, None)),
        (LOGGER, "1", ("root", APPEND, "INFO")),
        (LOGGER, "1", ("root", 9, "INFO")),
        (LOGGER, "7", ("root", SET, "INFO")),
        (LOGGER, "x", ("root", SET, "INFO")),
        (GROUP, "", ("consumer.session.timeout.ms", SET, "50000")),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "soon")),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "10")),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "10000000")),
        (GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "-1")),
        (GROUP, "g", ("no.such.config", SET, "1")),
        (GROUP, "g", ("share.auto.offset.reset", SET, "never")),
        (METRICS, "", ("interval.ms", SET, "1000")),
        (METRICS, "m", ("interval.ms", SET, "10")),
        (METRICS, "m", ("interval.ms", SET, "often")),
        (METRICS, "m", ("match", SET, "everybody")),
        (METRICS, "m", ("match", SET, "client_id=(")),
        (METRICS, "m", ("no.such.config", SET, "1")),
    )
    for kind, name, change in wrong:
        alter(session, kind, name, change, validate_only=True)
        config, operation, value = change
        if operation == SET:
            alterable = [alter_configs.AlterableConfig(name=config, value=value)]
            resource = alter_configs.AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=alterable
            )
            request = alter_configs.AlterConfigsRequest(resources=[resource], validate_only=True)
            session.ask(request, 2, label=f"whole {change}")


@case()
def a_message_that_is_too_long(session: Session) -> None:
    """The error message repeats the value: it would take more than the 32,767 bytes of a string."""
    name = make_topic(session)
    alter(session, TOPIC, name, ("retention.ms", SET, "x" * 32_760), label="a message too long")
    alter(session, TOPIC, name, ("retention.ms", SET, "1000"), label="the connection goes on")
