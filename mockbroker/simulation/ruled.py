"""A request that rules fire for, where there is no connection: what `actors/watched` does there.

What a rule waits for (a time, an end) is waited for without an event loop: the work is a coroutine
that says what it waits for, and goes on when that calls.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any

from mockbroker.core.faults.effects import answers, connections, delivery
from mockbroker.core.faults.engine import Asked, Decision, FaultEngine
from mockbroker.handlers.base import Outcome, Parked, RequestContext
from mockbroker.handlers.faulty_answers import applied_error, edited_answer, is_edit, refused

Refusal = tuple[Decision, "answers.Error | answers.RecordErrors"]


class _Wait:
    """Something to wait for: `arm` is given what it is to call when it is there."""

    __slots__ = ("arm",)

    def __init__(self, arm: Callable[[Callable[[], None]], None]) -> None:
        self.arm = arm

    def __await__(self) -> Generator[_Wait, None, None]:
        yield self


class _Unanswered(Exception):  # noqa: N818 - it names what happened
    """No answer is sent; the connection stays, or is closed."""

    def __init__(self, *, closed: bool) -> None:
        self.closed = closed


class Ruled:
    """One such request: before, applied, after. `answer` sends what came of it, `close` closes the
    connection in its place.
    """

    def __init__(
        self,
        context: RequestContext,
        request: Any,
        asked: Asked,
        engine: FaultEngine,
        handle: Callable[[Any], Any],
        answer: Callable[[Any], None],
        close: Callable[[], None],
    ) -> None:
        self._context = context
        self._request = request
        self._decisions = asked[1]
        self._engine = engine
        self._handle = handle
        self._answer = answer
        self._close = close

    def begin(self) -> None:
        """Do what the rules say, as far as that goes at once."""
        _drive(self._work())

    async def _work(self) -> None:
        try:
            refusal = await self._before()
            response = await self._applied(refusal)
            self._act()
            self._answer(await self._after(response))
        except _Unanswered as ended:
            if ended.closed:
                self._close()

    def _effects(self) -> Iterator[tuple[Decision, object]]:
        for decision in self._decisions:
            for effect in decision.effects.values():
                yield decision, effect

    async def _before(self) -> Refusal | None:
        refusal: Refusal | None = None
        for decision, effect in self._effects():
            match effect:
                case delivery.Delay(phase="before"):
                    await self._sleep(effect.drawn_ms(decision.rule.stream))
                case delivery.DropRequest():
                    raise _Unanswered(closed=False)
                case delivery.Close(phase="before"):
                    raise _Unanswered(closed=True)
                case connections.CutOff(both_ways=True):
                    await _Wait(decision.rule.when_removed)
                case answers.ErrorAfter():
                    continue
                case answers.Error() | answers.RecordErrors():
                    refusal = decision, effect
        return refusal

    async def _applied(self, refusal: Refusal | None) -> Any:
        if refusal is None:
            return await self._handled(self._request)
        decision, effect = refusal
        return await refused(
            self._context, self._request, decision.selection, effect, self._handled
        )

    async def _handled(self, request: Any) -> Any:
        response = self._handle(request)
        if isinstance(response, Parked):
            if not response.done:
                await _Wait(lambda over: setattr(response, "on_complete", over))
            response = response.response
        return response

    def _act(self) -> None:
        for decision in self._decisions:
            if decision.rule.actions:
                self._engine.act(decision.rule.actions, decision.rule.name)

    async def _after(self, response: Any) -> Any:
        for decision, effect in self._effects():
            match effect:
                case delivery.Delay(phase="after"):
                    await self._sleep(effect.drawn_ms(decision.rule.stream))
                case delivery.Close(phase="after"):
                    raise _Unanswered(closed=True)
                case delivery.DropReply():
                    raise _Unanswered(closed=effect.then != "keep")
                case connections.CutOff(both_ways=False):
                    await _Wait(decision.rule.when_removed)
                case _ if not isinstance(response, Outcome):
                    response = self._edited(decision, effect, response)
        return response

    def _edited(self, decision: Decision, effect: object, response: Any) -> Any:
        context, selection = self._context, decision.selection
        if isinstance(effect, answers.ErrorAfter):
            return applied_error(context, self._request, response, selection, effect)
        if is_edit(effect, context.header.api_key):
            return edited_answer(context, response, selection, effect)
        return response

    async def _sleep(self, milliseconds: int) -> None:
        cluster = self._context.cluster
        due_ms = cluster.now_ms() + milliseconds

        def arm(over: Callable[[], None]) -> None:
            cluster.timers.call_at(due_ms, over)

        await _Wait(arm)


def _drive(work: Coroutine[_Wait, None, None]) -> None:
    """Carry on until there is something to wait for, and again when that is there."""
    try:
        wait = work.send(None)
    except StopIteration:
        return
    wait.arm(lambda: _drive(work))
