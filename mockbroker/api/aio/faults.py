"""Rules: add them, wait until they fire, release held exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self, Unpack, cast, get_args, overload

from mockbroker.admin.v1.faults import HeldView, PlanView, RuleView
from mockbroker.api.aio.handle import AsyncHandle
from mockbroker.api.transport import AsyncTransport
from mockbroker.api.types import PlanDict, RuleDict
from mockbroker.core.faults.errors import UnknownNameError
from mockbroker.core.faults.export import Format
from mockbroker.core.validation import nearest

# In real time.
WAIT_TIMEOUT_S = 30.0

FAULTS = "/v1/faults"
FAULT = "/v1/faults/{name}"


class AsyncRules(AsyncHandle):
    """The rules of a cluster, as data."""

    @overload
    async def add(self, plan: PlanDict | RuleDict, /) -> AsyncFaultPlan: ...
    @overload
    async def add(self, **rule: Unpack[RuleDict]) -> AsyncFaultPlan: ...
    async def add(  # type: ignore[misc]  # mypy takes the keywords of a TypedDict for others
        self, plan: PlanDict | RuleDict | None = None, /, **rule: Any
    ) -> AsyncFaultPlan:
        """Add one plan: a dict with `rules` and `timeline`, or one rule, as a dict or by keywords.

            kafka.faults.add(match={"api": "Produce"}, when={"times": 1}, do={"drop_reply": {}})

        All of it is added or, after an error, nothing. Raises ValidationError that names the field,
        and NameTakenError.
        """
        if (plan is None) is (not rule):
            raise TypeError("give one dict, or one rule by keywords")
        data = cast("Mapping[str, object]", rule if plan is None else plan)
        made: PlanView = await self._ask("POST", FAULTS, body=data)
        rules = [AsyncFaultRule(self._transport, each) for each in made.rules]
        return AsyncFaultPlan(self._transport, made.name, rules)

    async def clear(self) -> None:
        """Remove all plans; held exchanges are released."""
        await self._ask("DELETE", FAULTS)

    async def remove(self, name: str) -> None:
        """Remove a plan, or one rule. Raises UnknownNameError."""
        await self._ask("DELETE", FAULT, at={"name": name})

    async def plans(self) -> list[dict[str, Any]]:
        """The plans in force, as plain data."""
        found: list[PlanView] = await self._ask("GET", FAULTS)
        return [each.plan for each in found]

    async def export(self, format_: Format = "python") -> str:
        """The plans in force as "python", statements that add them to `kafka`, or as "yaml", for
        `mockbroker fault add`. Raises ValueError for another format.
        """
        if format_ not in get_args(Format):
            raise ValueError(f"no format {format_!r}{nearest(format_, get_args(Format))}")
        text: str = await self._ask("GET", "/v1/export/faults", query={"format": format_})
        return text

    async def rule(self, name: str) -> AsyncFaultRule:
        """A rule in force. Raises UnknownNameError."""
        plan: PlanView = await self._ask("GET", FAULT, at={"name": name})
        for each in plan.rules:
            if each.name == name or (each.plan == name and len(plan.rules) == 1):
                return AsyncFaultRule(self._transport, each)
        raise UnknownNameError(f"{name!r} is a plan; its rules are {[r.name for r in plan.rules]}")

    async def held(self) -> list[AsyncHeldExchange]:
        """The held exchanges, oldest first."""
        found: list[HeldView] = await self._ask("GET", "/v1/held")
        return [AsyncHeldExchange(self._transport, each) for each in found]

    async def wait_held(self, *, timeout_s: float = WAIT_TIMEOUT_S) -> AsyncHeldExchange:
        """Wait until an exchange is held; returns the oldest. Raises TimeoutError."""
        found: HeldView = await self._ask(
            "POST", "/v1/held/wait", body={"timeout_ms": round(timeout_s * 1000)}, wait_s=timeout_s
        )
        return AsyncHeldExchange(self._transport, found)


class AsyncFaultRule(AsyncHandle):
    """One added rule. After its removal, this shows its last known state."""

    def __init__(self, transport: AsyncTransport, seen: RuleView) -> None:
        super().__init__(transport)
        self.name = seen.name
        self._seen = seen

    def __repr__(self) -> str:
        return f"<rule {self.name}: {self._seen.hits} hits when last looked at>"

    async def view(self) -> RuleView:
        """The present state of the rule; after its removal, its last known one."""
        try:
            plan: PlanView = await self._ask("GET", FAULT, at={"name": self.name})
        except UnknownNameError:
            return self._seen
        for each in plan.rules:
            if each.name == self.name:
                self._seen = each
        return self._seen

    @property
    async def hits(self) -> int:
        """The number of its hits."""
        return (await self.view()).hits

    @property
    async def left(self) -> int | None:
        """The number of hits left; None without a limit."""
        return (await self.view()).left

    async def wait(self, hits: int = 1, *, timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Wait until it has fired `hits` times in all.

        Raises TimeoutError, with the reason, after `timeout_s` of real time.
        """
        self._seen = await self._ask(
            "POST",
            f"{FAULT}/wait",
            at={"name": self.name},
            body={"hits": hits, "timeout_ms": round(timeout_s * 1000)},
            wait_s=timeout_s,
        )

    async def why(self) -> RuleView:
        """The reason why it fired or did not; as text, one sentence."""
        return await self.view()

    async def remove(self) -> None:
        """Remove the rule. Idempotent."""
        await self.view()
        try:
            await self._ask("DELETE", FAULT, at={"name": self.name})
        except UnknownNameError:
            return


class AsyncFaultPlan(AsyncHandle):
    """One added plan; a plan with a single rule has that rule's properties and methods."""

    def __init__(self, transport: AsyncTransport, name: str, rules: list[AsyncFaultRule]) -> None:
        super().__init__(transport)
        self.name = name
        self.rules = {rule.name: rule for rule in rules}

    def __repr__(self) -> str:
        return f"<plan {self.name}: {', '.join(self.rules) or 'no rules'}>"

    def __getitem__(self, name: str) -> AsyncFaultRule:
        return self.rules[name]

    def __iter__(self) -> Iterator[AsyncFaultRule]:
        return iter(self.rules.values())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.remove()

    @property
    def _only(self) -> AsyncFaultRule:
        if len(self.rules) != 1:
            raise TypeError(f"the plan {self.name!r} has {len(self.rules)} rules: name one")
        return next(iter(self.rules.values()))

    @property
    async def hits(self) -> int:
        """The number of hits of all its rules."""
        return sum([(await rule.view()).hits for rule in self])

    @property
    async def left(self) -> int | None:
        """The number of hits left to its only rule; None without a limit."""
        return (await self._only.view()).left

    async def wait(self, hits: int = 1, *, timeout_s: float = WAIT_TIMEOUT_S) -> None:
        """Wait until its only rule has fired `hits` times. Raises TimeoutError."""
        await self._only.wait(hits, timeout_s=timeout_s)

    async def why(self) -> RuleView:
        """The reason why its only rule fired or did not."""
        return await self._only.view()

    async def remove(self) -> None:
        """Remove the plan with its timeline. Idempotent."""
        for rule in self:
            await rule.view()
        try:
            await self._ask("DELETE", FAULT, at={"name": self.name})
        except UnknownNameError:
            return


class AsyncHeldExchange(AsyncHandle):
    """A request or a response that a rule holds."""

    def __init__(self, transport: AsyncTransport, view: HeldView) -> None:
        super().__init__(transport)
        self.view = view
        self.id = view.id
        self.rule = view.rule
        self.phase = view.phase
        self.api = view.api

    def __repr__(self) -> str:
        return f"<held {self.api} of {self.view.client_id!r}, by {self.rule}>"

    @property
    def request(self) -> dict[str, Any]:
        """The fields of the decoded request when it was held."""
        return self.view.request

    @property
    def response(self) -> dict[str, Any] | None:
        """The fields of the decoded response; None before the request was applied."""
        return self.view.response

    async def release(self) -> None:
        """Continue the exchange."""
        await self._decide({})

    async def edit(self, fields: Mapping[str, object]) -> None:
        """Change fields by path, of the response if there is one, else of the request."""
        await self._decide({"verdict": "hold", "edit": dict(fields)})

    async def answer(self, error: str | int) -> None:
        """Answer with an error instead."""
        await self._decide({"verdict": "answer", "error": error})

    async def drop(self) -> None:
        """Never answer; the connection stays."""
        await self._decide({"verdict": "drop"})

    async def close(self, *, reset: bool = False) -> None:
        """End the connection, with RST when `reset`."""
        await self._decide({"verdict": "reset" if reset else "close"})

    async def _decide(self, body: Mapping[str, object]) -> None:
        await self._ask("POST", "/v1/held/{id}", at={"id": self.id}, body=body)
