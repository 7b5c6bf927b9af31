"""Client telemetry: who is asked for what, when, and which pushes are taken."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
)
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.push_telemetry import PushTelemetryRequest
from tests.differential.registry import case
from tests.differential.session import Session

CLIENT_METRICS = 16
SET, DELETE = 0, 1


def subscribe(session: Session, name: str, **configs: str | None) -> None:
    """Set the configs of a subscription; None deletes one."""
    resource = AlterConfigsResource(
        resource_type=CLIENT_METRICS,
        resource_name=f"{session.name}-{name}",
        configs=[
            AlterableConfig(
                name=key.replace("_", "."),
                config_operation=DELETE if value is None else SET,
                value=value,
            )
            for key, value in configs.items()
        ],
    )
    session.quietly(IncrementalAlterConfigsRequest(resources=[resource]), 1)


def instance(number: int) -> bytes:
    return bytes(15) + bytes([100 + number])


def asked(session: Session, who: str, number: int, metrics: int, label: str = "") -> Any:
    """Ask under a fresh id until so many metrics are asked for; the id changes with each try."""
    session.quietly(ApiVersionsRequest("apache-kafka-java", "4.3.1"), 3, who)
    for attempt in range(200):
        probe = instance(number)[:-2] + bytes([attempt + 1, 1])
        answer = session.quietly(GetTelemetrySubscriptionsRequest(probe), 0, who)
        if len(answer.requested_metrics) == metrics:
            break
    request = GetTelemetrySubscriptionsRequest(instance(number))
    return session.ask(request, 0, who, label=label)


@case()
def telemetry_nobody_asks_for(session: Session) -> None:
    who = session.name
    first = session.ask(GetTelemetrySubscriptionsRequest(instance(0)), 0, who)
    session.ask(GetTelemetrySubscriptionsRequest(instance(0)), 0, who, label="too soon")
    push = PushTelemetryRequest(instance(0), first.subscription_id, metrics=b"")
    session.ask(push, 0, who, label="at once after asking")
    session.ask(push, 0, who, label="too soon")

    def own(answer: Any) -> Any:
        """The id that a client without one is given is drawn, and so is what follows from it."""
        answer.client_instance_id = answer.client_instance_id != bytes(16)
        answer.subscription_id = 0
        return answer

    session.ask(GetTelemetrySubscriptionsRequest(), 0, who, edit=own)


@case()
def telemetry_by_subscriptions(session: Session) -> None:
    who = f"{session.name}-java"
    subscribe(
        session,
        "some",
        metrics="org.apache.kafka.producer.,org.apache.kafka.consumer.fetch.manager.,a,b,c,d,e",
        interval_ms="60000",
        match=f"client_software_name=apache-kafka-.*, client_id={who}",
    )
    subscribe(session, "others", metrics="never", match="client_id=nobody")
    asked(session, who, 1, 7, "one subscription")
    more = ",".join(f"org.apache.kafka.number.{n}" for n in range(9))
    subscribe(session, "more", metrics=f"{more},a", interval_ms="30000", match=f"client_id={who}")
    asked(session, who, 2, 16, "two of them together")
    asked(session, f"{session.name}-other", 3, 0, "a client that none matches")
    subscribe(session, "all", metrics="*", match=f"client_id={who}")
    asked(session, who, 4, 1, "all metrics")
    for name in ("some", "others", "more", "all"):
        subscribe(session, name, metrics=None, interval_ms=None, match=None)


@case()
def telemetry_pushed_wrongly(session: Session) -> None:
    who = session.name
    for reserved in (bytes(16), bytes(15) + b"\1"):
        session.ask(PushTelemetryRequest(reserved, 0), 0, who, label="no client")

    def ask(number: int) -> int:
        request = GetTelemetrySubscriptionsRequest(instance(number))
        return int(session.ask(request, 0, who, label=f"{number}").subscription_id)

    def push(number: int, wanted: int, label: str, **fields: Any) -> None:
        fields.setdefault("metrics", b"x")
        request = PushTelemetryRequest(instance(number), wanted, **fields)
        session.ask(request, 0, who, label=label)

    push(10, 1, "never asked")
    ask(11)
    push(11, 1, "not what was asked for")
    ask(11)
    push(11, ask(12), "another client's subscription")
    push(13, ask(13), "a codec that nobody knows", compression_type=9)
    ask(13)
    push(14, ask(14), "too large", metrics=bytes((1 << 20) + 1))
    push(15, ask(15), "just right", metrics=bytes(1 << 20))
    wanted = ask(16)
    push(16, wanted, "taken")
    push(16, wanted, "the last one may come at any time", terminating=True)
    push(16, wanted, "nothing comes after the last one", terminating=True)
    push(16, wanted, "nothing at all")
