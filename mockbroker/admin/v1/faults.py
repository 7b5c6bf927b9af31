"""Fault plans: add, list, wait for, remove. Held exchanges, and cluster actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall, Text
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.admin.v1.waiting import Stop, observe, until
from mockbroker.core.actions import ACTIONS, parse_action
from mockbroker.core.cluster import Cluster
from mockbroker.core.faults.engine import ActiveRule, FaultEngine, engine_of
from mockbroker.core.faults.export import Format, exported
from mockbroker.core.faults.holds import Held
from mockbroker.core.faults.rules import api_name, parse_plan
from mockbroker.core.faults.schemas import InputSchemas
from mockbroker.core.journal.plain import plain
from mockbroker.core.log.compaction import CompactionJob, CompactionResult
from mockbroker.core.validation import Ms, Range, ValidationError, to_data

T = TypeVar("T")

# Real time.
COMPACTION_TIMEOUT_S = 300.0

EXPORT_MEDIA: Mapping[Format, str] = {"yaml": "application/yaml", "python": "text/x-python"}

endpoints = ApiEndpoints()

FAULTS, HELD = "/v1/faults", "/v1/held"
ONE = f"{FAULTS}/{{name}}"
GONE = (404,)


class RuleView(msgspec.Struct, frozen=True):
    """A rule in force. `left` is None without a limit of its hits; `why` is one sentence.

    `evaluated` and `matched` count requests. `failed` counts them by the first condition that
    failed, `stopped` those that matched by the part of `when` that stopped the rule.
    """

    name: str
    plan: str
    hits: int
    left: int | None
    evaluated: int
    matched: int
    failed: dict[str, int]
    stopped: dict[str, int]
    last: dict[str, Any] | None
    why: str

    def __str__(self) -> str:
        return self.why


class PlanView(msgspec.Struct, frozen=True):
    """A plan as it was added, and the present state of its rules."""

    name: str
    plan: dict[str, Any]
    rules: list[RuleView]


class ExportQuery(msgspec.Struct):
    format: Format = "yaml"


class HitsWait(msgspec.Struct, frozen=True):
    hits: Annotated[int, Range(1, 2**31 - 1)] = 1
    timeout_ms: Ms = 10_000


class HeldView(msgspec.Struct, frozen=True):
    """An exchange that a rule holds: before it is applied, or (`after`) with its answer. `seq` is
    the request's number in the journal; 0 without one.
    """

    id: int
    seq: int
    rule: str
    phase: str
    held_ms: int
    api: str
    client_id: str
    request: dict[str, Any]
    response: dict[str, Any] | None


class HeldWait(msgspec.Struct, frozen=True):
    """The limit of the wait, in real time."""

    timeout_ms: Ms = 10_000


class ActionView(msgspec.Struct, frozen=True):
    """An action that was carried out, its arguments, and its result, if any."""

    action: str
    arguments: dict[str, Any]
    result: Any = None


class Release(msgspec.Struct, frozen=True):
    """`edit` changes fields by path; then `verdict` decides about the held exchange; "hold" keeps
    it held.

    `error` is the code's name or number, for the verdict "answer".
    """

    verdict: Literal["release", "hold", "answer", "drop", "close", "reset"] = "release"
    edit: dict[str, object] | None = None
    error: str | int | None = None


@endpoints.get(FAULTS, "Rules in force, by plan")
async def plans(backend: AdminBackend, _: EndpointCall) -> list[PlanView]:
    return await _engine(backend, lambda engine: [_plan(engine, name) for name in engine.plans])


@endpoints.post(
    FAULTS,
    "Add a plan, or one rule",
    body=dict,
    body_schema=InputSchemas.plan,
    created=True,
    problems=(409,),
)
async def add(backend: AdminBackend, call: EndpointCall) -> PlanView:
    def put(engine: FaultEngine) -> PlanView:
        plan = parse_plan(call.body, engine.free_name())
        engine.add(plan)
        return _plan(engine, plan.name)

    return await _engine(backend, put)


@endpoints.delete(FAULTS, "Remove all rules")
async def clear(backend: AdminBackend, _: EndpointCall) -> None:
    await _engine(backend, FaultEngine.clear)


@endpoints.get(ONE, "A plan, or the plan of a rule", problems=GONE)
async def show(backend: AdminBackend, call: EndpointCall) -> PlanView:
    name = call.path["name"]
    return await _engine(
        backend,
        lambda engine: _plan(engine, name if name in engine.plans else engine.rule(name).plan_name),
    )


@endpoints.delete(ONE, "Remove a plan or a rule", problems=GONE)
async def remove(backend: AdminBackend, call: EndpointCall) -> None:
    await _engine(backend, lambda engine: engine.remove(call.path["name"]))


@endpoints.post(f"{ONE}/wait", "Wait until a rule has fired", body=HitsWait, problems=(404, 408))
async def wait(backend: AdminBackend, call: EndpointCall) -> RuleView:
    wanted: HitsWait = call.body
    rule = await _engine(backend, lambda engine: engine.rule(call.path["name"]))

    def fired(cluster: Cluster) -> RuleView | None:
        return _rule(engine_of(cluster), rule) if rule.hits >= wanted.hits else None

    view = await until(
        backend,
        lambda _, changed: rule.when_hit(wanted.hits, changed),
        fired,
        wanted.timeout_ms / 1000,
    )
    if view is None:
        why = await _engine(backend, lambda engine: str(engine.explain_rule(rule)))
        detail = f"not {wanted.hits} hits in {wanted.timeout_ms} ms: {why}"
        raise ProblemError(408, "timeout", detail)
    return view


@endpoints.get(
    "/v1/export/faults",
    "The rules in force, as YAML or Python",
    query=ExportQuery,
    media=tuple(EXPORT_MEDIA.values()),
)
async def export(backend: AdminBackend, call: EndpointCall) -> Text:
    format_: Format = call.query.format
    text = await _engine(backend, lambda engine: exported(engine, format_))
    return Text(text, EXPORT_MEDIA[format_])


@endpoints.get(HELD, "Held requests")
async def held(backend: AdminBackend, _: EndpointCall) -> list[HeldView]:
    return await _engine(backend, lambda engine: [_held(each) for each in engine.held.values()])


@endpoints.post(f"{HELD}/wait", "Wait until a request is held", body=HeldWait, problems=(408,))
async def wait_held(backend: AdminBackend, call: EndpointCall) -> HeldView:
    """The oldest held exchange, as soon as there is one."""
    wanted: HeldWait = call.body

    def watch(cluster: Cluster, changed: Callable[[], None]) -> Stop:
        return observe(engine_of(cluster).on_fault, lambda *_: changed())

    def oldest(cluster: Cluster) -> HeldView | None:
        return next((_held(each) for each in engine_of(cluster).held.values()), None)

    found = await until(backend, watch, oldest, wanted.timeout_ms / 1000)
    if found is None:
        raise ProblemError(408, "timeout", f"nothing is held after {wanted.timeout_ms} ms")
    return found


@endpoints.post(f"{HELD}/{{id:number}}", "Release a held request", body=Release, problems=GONE)
async def decide(backend: AdminBackend, call: EndpointCall) -> None:
    await _engine(backend, lambda engine: _decide(engine, call.path["id"], call.body))


@endpoints.post(
    "/v1/actions",
    "Carry out an action",
    body=dict,
    body_schema=InputSchemas.action,
    problems=(404, 408, 409),
)
async def act(backend: AdminBackend, call: EndpointCall) -> ActionView:
    if len(call.body) != 1:
        raise ValidationError("", "give one action: {NAME: {arguments}}")
    [(name, data)] = call.body.items()
    arguments = parse_action(name, data)
    result: object = await backend.cluster(
        lambda cluster: cluster.perform(ACTIONS[name], arguments)
    )
    if isinstance(result, CompactionJob):
        result = await _compacted(backend, result)
    return ActionView(name, cast("dict[str, Any]", to_data(arguments)), result)


async def _compacted(backend: AdminBackend, job: CompactionJob) -> list[CompactionResult]:
    """The results of a compaction, once it is done. Raises ProblemError after a time limit."""
    results = await until(
        backend,
        lambda _, changed: observe(job.on_done, changed),
        lambda _: job.results if job.done else None,
        COMPACTION_TIMEOUT_S,
    )
    if results is None:
        raise ProblemError(
            408, "timeout", f"the compaction goes on after {COMPACTION_TIMEOUT_S:.0f} s"
        )
    return results


async def _engine(backend: AdminBackend, function: Callable[[FaultEngine], T]) -> T:
    """Call it with the cluster's rules, in the cluster's run."""
    return await backend.cluster(lambda cluster: function(engine_of(cluster)))


def _plan(engine: FaultEngine, name: str) -> PlanView:
    plan, known = engine.plans[name], engine.rules
    rules = [known[each.name] for each in plan.rules if each.name in known]
    return PlanView(name, dict(plan.to_data()), [_rule(engine, rule) for rule in rules])


def _rule(engine: FaultEngine, rule: ActiveRule) -> RuleView:
    explanation = engine.explain_rule(rule)
    return RuleView(
        name=rule.name,
        plan=rule.plan_name,
        hits=rule.hits,
        left=rule.left,
        evaluated=explanation.evaluated,
        matched=explanation.matched,
        failed=explanation.failed,
        stopped=explanation.stopped,
        last=None if rule.last is None else rule.last._asdict(),
        why=str(explanation),
    )


def _held(held: Held) -> HeldView:
    facts = held.facts
    return HeldView(
        id=held.id,
        seq=facts.seq,
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
        raise ProblemError(404, "not found", f"nothing is held as {held_id}; held: {known}")
    if (wanted.error is not None) is not (wanted.verdict == "answer"):
        raise ValidationError(
            "error", 'it is required with the verdict "answer" and forbidden without it'
        )
    if wanted.edit:
        held.edit(wanted.edit)
    match wanted.verdict:
        case "hold":
            return
        case "release":
            held.release()
        case "answer":
            assert wanted.error is not None
            held.answer(wanted.error)
        case "drop":
            held.drop()
        case "close" | "reset":
            held.close(reset=wanted.verdict == "reset")
