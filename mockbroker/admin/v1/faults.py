"""Rules: add, look at, wait for, take away; what they hold, and cluster actions by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import trio
from starlette.responses import Response

from mockbroker.admin.v1.api import Api, Signal
from mockbroker.admin.v1.endpoint import Call, Endpoint
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.faults.actions import parse_action, perform
from mockbroker.core.faults.convert import Ms, Range, to_data
from mockbroker.core.faults.engine import ActiveRule, FaultEngine, engine_of
from mockbroker.core.faults.errors import RuleError
from mockbroker.core.faults.export import Format, exported
from mockbroker.core.faults.holds import Held
from mockbroker.core.faults.rules import api_name, parse_plan
from mockbroker.core.faults.schemas import InputSchemas
from mockbroker.core.journal.plain import plain

T = TypeVar("T")

EXPORT_MEDIA: Mapping[Format, str] = {"yaml": "application/yaml", "python": "text/x-python"}


class RuleView(msgspec.Struct, frozen=True):
    """A rule in force. `left` is None where its hits are not limited; `why` is one sentence.

    `failed` counts, by condition, the requests for which it was the first that did not hold, and
    `stopped` those that matched and were held back by a part of `when`.
    """

    name: str
    set: str
    hits: int
    left: int | None
    asked: int
    matched: int
    failed: dict[str, int]
    stopped: dict[str, int]
    last: dict[str, Any] | None
    why: str


class SetView(msgspec.Struct, frozen=True):
    """A set as it was given, and its rules as they are."""

    name: str
    plan: dict[str, Any]
    rules: list[RuleView]


class ExportQuery(msgspec.Struct):
    format: Format = "yaml"


class HitsWait(msgspec.Struct, frozen=True):
    hits: Annotated[int, Range(1, 2**31 - 1)] = 1
    timeout_ms: Ms = 10_000


class HeldView(msgspec.Struct, frozen=True):
    """An exchange that a rule holds: before it is applied, or (`after`) with its answer made."""

    id: int
    rule: str
    phase: str
    held_ms: int
    api: str
    client_id: str
    request: dict[str, Any]
    response: dict[str, Any] | None


class Release(msgspec.Struct, frozen=True):
    """What becomes of what is held: fields of it changed by path first, then the verdict.

    `error` is the code's name or number, for the verdict "answer".
    """

    verdict: Literal["release", "answer", "drop", "close", "reset"] = "release"
    edit: dict[str, object] | None = None
    error: str | int | None = None


class FaultEndpoints:
    """The endpoints of one cluster's rules."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def _engine(self, function: Callable[[FaultEngine], T]) -> T:
        return await self._api.cluster(lambda cluster: function(engine_of(cluster)))

    async def sets(self, call: Call) -> list[SetView]:  # noqa: ARG002
        return await self._engine(lambda engine: [_set(engine, name) for name in engine.plans])

    async def add(self, call: Call) -> SetView:
        def put(engine: FaultEngine) -> SetView:
            plan = parse_plan(call.body, engine.free_name())
            engine.add(plan)
            return _set(engine, plan.name)

        return await self._engine(put)

    async def show(self, call: Call) -> SetView:
        name = call.path["name"]
        return await self._engine(
            lambda engine: _set(
                engine, name if name in engine.plans else engine.rule(name).set_name
            )
        )

    async def wait(self, call: Call) -> RuleView:
        wanted: HitsWait = call.body
        signal = Signal()

        def watch(engine: FaultEngine) -> ActiveRule:
            rule = engine.rule(call.path["name"])
            rule.when_hit(wanted.hits, signal.set)
            return rule

        rule = await self._engine(watch)
        with trio.move_on_after(wanted.timeout_ms / 1000) as waiting:
            await signal.wait()
        view = await self._engine(lambda engine: _rule(engine, rule))
        if waiting.cancelled_caught:
            detail = f"not {wanted.hits} hits in {wanted.timeout_ms} ms: {view.why}"
            raise ProblemError(408, "it has not fired", detail)
        return view

    async def remove(self, call: Call) -> None:
        await self._engine(lambda engine: engine.remove(call.path["name"]))

    async def clear(self, call: Call) -> None:  # noqa: ARG002
        await self._engine(FaultEngine.clear)

    async def export(self, call: Call) -> Response:
        format_: Format = call.query.format
        text = await self._engine(lambda engine: exported(engine, format_))
        return Response(text, media_type=EXPORT_MEDIA[format_])

    async def held(self, call: Call) -> list[HeldView]:  # noqa: ARG002
        return await self._engine(lambda engine: [_held(each) for each in engine.held.values()])

    async def decide(self, call: Call) -> None:
        await self._engine(lambda engine: _decide(engine, call.path["id"], call.body))

    async def act(self, call: Call) -> dict[str, Any]:
        if len(call.body) != 1:
            raise RuleError("", "give one action: {NAME: {arguments}}")
        [(name, data)] = call.body.items()
        arguments = parse_action(name, data)
        await self._api.cluster(lambda cluster: perform(cluster, name, arguments))
        return {name: to_data(arguments)}


def endpoints(api: Api) -> list[Endpoint]:
    do = FaultEndpoints(api)
    one = "/v1/faults/{name}"
    gone, taken = (404,), (409,)
    return [
        Endpoint("GET", "/v1/faults", "The sets in force", do.sets, list[SetView]),
        Endpoint(
            "POST",
            "/v1/faults",
            "Add a set",
            do.add,
            SetView,
            body=dict,
            body_schema=InputSchemas.plan,
            status=201,
            problems=taken,
        ),
        Endpoint("DELETE", "/v1/faults", "Take all away", do.clear, None, status=204),
        Endpoint("GET", one, "A set, or the set of a rule", do.show, SetView, problems=gone),
        Endpoint(
            "DELETE",
            one,
            "Take a set or a rule away",
            do.remove,
            None,
            status=204,
            problems=gone,
        ),
        Endpoint(
            "POST",
            f"{one}/wait",
            "Wait until it has fired",
            do.wait,
            RuleView,
            body=HitsWait,
            problems=(404, 408),
        ),
        Endpoint(
            "GET",
            "/v1/export/faults",
            "The sets in force, as a file of rules or as Python",
            do.export,
            None,
            ExportQuery,
            media=tuple(EXPORT_MEDIA.values()),
        ),
        Endpoint("GET", "/v1/held", "What rules hold", do.held, list[HeldView]),
        Endpoint(
            "POST",
            "/v1/held/{id:int}",
            "Let it go",
            do.decide,
            None,
            body=Release,
            status=204,
            problems=gone,
        ),
        Endpoint(
            "POST",
            "/v1/actions",
            "Do something to the cluster",
            do.act,
            dict[str, Any],
            body=dict,
            body_schema=InputSchemas.action,
            problems=(404, 409),
        ),
    ]


def _set(engine: FaultEngine, name: str) -> SetView:
    plan = engine.plans[name]
    rules = [engine.rules[each.name] for each in plan.rules if each.name in engine.rules]
    return SetView(name, dict(plan.to_data()), [_rule(engine, rule) for rule in rules])


def _rule(engine: FaultEngine, rule: ActiveRule) -> RuleView:
    told = engine.explain_rule(rule)
    return RuleView(
        name=rule.name,
        set=rule.set_name,
        hits=rule.hits,
        left=rule.left,
        asked=told.asked,
        matched=told.matched,
        failed=told.failed,
        stopped=told.stopped,
        last=None if rule.last is None else rule.last._asdict(),
        why=str(told),
    )


def _held(held: Held) -> HeldView:
    facts = held.facts
    return HeldView(
        id=held.id,
        rule=held.rule,
        phase=held.phase,
        held_ms=held.held_ms,
        api=api_name(facts.api_key),
        client_id=facts.client_id,
        request=plain(held.request),
        response=None if held.response is None else plain(held.response),
    )


def _decide(engine: FaultEngine, held_id: int, wanted: Release) -> None:
    held = engine.held.get(held_id)
    if held is None:
        known = ", ".join(map(str, engine.held)) or "none"
        raise ProblemError(404, "not found", f"nothing is held as {held_id}; there are: {known}")
    if (wanted.error is not None) is not (wanted.verdict == "answer"):
        raise RuleError("error", 'it goes with the verdict "answer", and only with that')
    if wanted.edit:
        held.edit(wanted.edit)
    match wanted.verdict:
        case "release":
            held.release()
        case "answer":
            assert wanted.error is not None
            held.answer(wanted.error)
        case "drop":
            held.drop()
        case "close" | "reset":
            held.close(reset=wanted.verdict == "reset")
