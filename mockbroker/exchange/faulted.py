"""The exchange of a request for which rules fire, with the effects of the rules.

While there are rules, a connection matches each request against them. A request for which some fire
becomes a `FaultedExchange` with these steps:

    before     delays, holds, drops, edits of the request, refusals
    applied    the handler, unless there is an answer already; then rules on the answer are decided
    after      edits of the answer, delays, holds, drops
    delivered  the frame of the answer: damaged, cut, slow, duplicated, out of order

All waits are timers of the exchange's clock, so a clock that a test advances ends them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mockbroker.core.faults.effects import answers, connections, delivery, records
from mockbroker.core.faults.effects.answers import rewritten
from mockbroker.core.faults.holds import ANSWER, DROP, GO_ON, RESET, Held
from mockbroker.core.faults.partial import Selection
from mockbroker.core.faults.rows import request_rows
from mockbroker.exchange.frames import FRAME_EFFECTS, deliver, outcome_of
from mockbroker.handlers.base import Marks, Outcome
from mockbroker.handlers.faulty_answers import (
    applied_error,
    decoded,
    edited_answer,
    error_for_all,
    is_edit,
    refused,
)
from mockbroker_protocol import ApiKey

if TYPE_CHECKING:
    from mockbroker.core.faults.engine import Decision, FaultEngine, Fired
    from mockbroker.core.timing.timers import Timer
    from mockbroker.exchange.base import Exchange

_PRODUCE = int(ApiKey.PRODUCE)

_Refusal = answers.Error | answers.RecordErrors

Watch = Callable[[Callable[[], None]], Callable[[], None] | None]
"""Takes a callback, which it calls when the wait is over; returns the function, if there is one,
that withdraws the callback.
"""


class _EndedError(Exception):
    """The exchange is over without an answer. `ending` is None if the connection stays open."""

    def __init__(self, ending: delivery.Ending | None) -> None:
        self.ending = ending


class FaultedExchange:
    """One exchange for which rules fire."""

    __slots__ = (
        "_acted",
        "_decisions",
        "_engine",
        "_exchange",
        "_facts",
        "_fired",
        "_marks",
        "_request",
        "_response",
    )

    def __init__(self, exchange: Exchange, engine: FaultEngine, fired: Fired) -> None:
        self._exchange = exchange
        self._engine = engine
        self._fired = fired
        self._facts = fired.facts
        self._decisions = fired.decisions
        self._marks = Marks(_names(fired.decisions))
        exchange.mark(self._marks)
        self._request: Any = exchange.request
        self._response: Any = None
        self._acted = False

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that fire, in order."""
        return self._marks.rules

    async def run(self) -> None:
        """Apply the effects, until the answer is sent or never will be."""
        exchange = self._exchange
        try:
            refusal = await self._before()
            if self._response is None:
                await exchange.released()
                self._response = await self._applied(refusal)
            self._decide()
            self._act()
            dropped = await self._after()
            if dropped is None and not isinstance(self._response, Outcome):
                await self._let_next_pass()
            await exchange.released()
            await self._delivered(dropped)
        except _EndedError as ended:
            self._act()
            exchange.unanswered("dropped" if ended.ending is None else "closed")
            self._end(ended.ending)

    def _effects(self) -> Iterator[tuple[Decision, Any]]:
        for decision in self._decisions:
            for effect in decision.effects.values():
                yield decision, effect

    # -- before ------------------------------------------------------------------------------------

    async def _before(self) -> tuple[Decision, _Refusal] | None:
        """The effects before the request is applied; returns the refusal, if any."""
        refusal: tuple[Decision, _Refusal] | None = None
        for decision, effect in self._effects():
            match effect:
                case delivery.Delay(phase="before"):
                    await self._sleep(effect.drawn_ms(decision.rule.stream))
                case delivery.Hold(phase="before"):
                    await self._hold(decision, effect)
                case delivery.DropRequest():
                    raise _EndedError(None)
                case delivery.Close(phase="before"):
                    raise _EndedError(delivery.Ending(effect.how == "rst"))
                case connections.StallHandshake():
                    await self._stall_handshake(decision, effect.for_)
                case connections.CutOff(both_ways=True):
                    await self._until(decision.rule.when_removed, None)
                case answers.ErrorAfter():
                    continue
                case answers.Error() | answers.RecordErrors():
                    refusal = decision, effect
                case _:
                    self._edit_request(decision.selection, effect)
        return refusal

    def _edit_request(self, selection: Selection, effect: object) -> None:
        layout = request_rows(self._facts.api_key)
        match effect:
            case answers.Rewrite() if effect.request:
                self._request = rewritten(self._request, layout, selection, effect.request)
            case records.CorruptBatch() if self._facts.api_key == _PRODUCE:
                self._request = records.with_records(
                    self._request, layout, selection, lambda data: records.corrupted(data, effect)
                )
            case connections.FailReauthentication():
                sasl = self._exchange.connection.sasl
                assert sasl is not None  # the rule matches connections with SASL only
                sasl.denied_next = effect.message
            case connections.ExpireCredential():
                sasl = self._exchange.connection.sasl
                if sasl is not None:
                    sasl.expires_ms = self._exchange.arrived_ms - 1

    async def _applied(self, refusal: tuple[Decision, _Refusal] | None) -> Any:
        """The answer of the handler, or the refusal."""
        apply = self._exchange.apply
        if refusal is None:
            return await apply(self._request)
        decision, effect = refusal
        header = self._exchange.header
        return await refused(header, self._request, decision.selection, effect, apply)

    def _decide(self) -> None:
        """Decide the rules that need the answer."""
        if not self._fired.awaiting:
            return
        self._decisions += self._engine.evaluate_answer(self._fired, self._answer())
        self._marks.rules = _names(self._decisions)

    def _act(self) -> None:
        """Run the rules' actions, once the request is applied or never will be."""
        if self._acted:
            return
        self._acted = True
        for decision in self._decisions:
            if decision.rule.actions:
                self._engine.act(decision.rule.actions, decision.rule.name)

    # -- after -------------------------------------------------------------------------------------

    async def _after(self) -> delivery.DropReply | None:
        """The effects between applying and sending; returns the drop of the answer, if any."""
        dropped: delivery.DropReply | None = None
        for decision, effect in self._effects():
            match effect:
                case delivery.Delay(phase="after"):
                    await self._sleep(effect.drawn_ms(decision.rule.stream))
                case delivery.Hold(phase="after"):
                    await self._hold(decision, effect)
                case delivery.Close(phase="after"):
                    raise _EndedError(delivery.Ending(effect.how == "rst"))
                case delivery.DropReply():
                    dropped = effect
                case connections.CutOff(both_ways=False):
                    await self._until(decision.rule.when_removed, None)
                case _:
                    self._edit_answer(decision.selection, effect)
        return dropped

    def _edit_answer(self, selection: Selection, effect: object) -> None:
        if isinstance(self._response, Outcome):
            return
        header = self._exchange.header
        if isinstance(effect, answers.ErrorAfter):
            self._response = applied_error(
                header, self._request, self._decoded(), selection, effect
            )
        elif is_edit(effect, self._facts.api_key):
            self._response = edited_answer(header, self._decoded(), selection, effect)

    def _answer(self) -> Any:
        """The answer as a struct; None if the request gets none."""
        return None if isinstance(self._response, Outcome) else self._decoded()

    def _decoded(self) -> Any:
        """The answer as a struct, also if its handler encoded it."""
        self._response = decoded(self._exchange.header, self._response)
        return self._response

    # -- delivered ---------------------------------------------------------------------------------

    async def _delivered(self, dropped: delivery.DropReply | None) -> None:
        exchange = self._exchange
        effects = [
            (decision.rule, effect)
            for decision, effect in self._effects()
            if isinstance(effect, FRAME_EFFECTS)
        ]
        if not effects and dropped is None:
            await exchange.answer(self._request, self._response)
            self._mute()
            return
        self._marks.outcome = "answer dropped" if dropped is not None else outcome_of(effects)
        parts = exchange.frame(self._request, self._response)
        if parts is None:
            self._end(delivery.Ending(reset=False))
            return
        if dropped is not None:
            self._end(delivery.ending(dropped.then))
            return
        if parts:
            ending = await deliver(exchange, b"".join(parts), effects, self._wait_for)
            if ending is not None:
                self._end(ending)
                return
        self._mute()

    async def _let_next_pass(self) -> None:
        """Let the next request be answered first, if a rule wants that."""
        for _, effect in self._effects():
            if isinstance(effect, delivery.ReorderReplies):
                is_open = await self._exchange.serve_next(effect.patience)
                if not is_open:
                    raise _EndedError(delivery.Ending(reset=False))

    def _mute(self) -> None:
        """After the answer, mute the connection for the throttle time that a rule has set."""
        mute_ms = max(
            (
                effect.by
                for _, effect in self._effects()
                if isinstance(effect, delivery.Throttle) and effect.mute
            ),
            default=0,
        )
        if mute_ms:
            self._exchange.mute(mute_ms)

    def _end(self, ending: delivery.Ending | None) -> None:
        if ending is not None:
            self._exchange.close(reset=ending.reset)

    # -- waiting -----------------------------------------------------------------------------------

    async def _stall_handshake(self, decision: Decision, milliseconds: int | None) -> None:
        """Wait until the rule is removed, at most for some time if it is given. A client that
        closes meanwhile ends the exchange.
        """
        closed = False

        def watch(over: Callable[[], None]) -> Callable[[], None]:
            def close() -> None:
                nonlocal closed
                closed = True
                over()

            forget = self._exchange.when_closed_by_client(close)
            withdraw = decision.rule.when_removed(over)

            def unwatch() -> None:
                forget()
                withdraw()

            return unwatch

        await self._until(watch, milliseconds)
        if closed:
            raise _EndedError(delivery.Ending(reset=False))

    async def _sleep(self, milliseconds: int) -> None:
        """Wait on the exchange's clock, if there is a time to wait for."""
        if milliseconds > 0:
            await self._wait_for(milliseconds)

    async def _wait_for(self, milliseconds: int) -> None:
        """Wait on the exchange's clock; others have a turn also after 0 ms."""
        await self._until(lambda _: None, milliseconds)

    async def _until(
        self, watch: Watch, at_most_ms: int | None, then: Callable[[], None] | None = None
    ) -> None:
        """Wait for the callback of `watch`, at most for `at_most_ms`. Then `then` is called, which
        makes `watch` call back; without it the wait is over.
        """
        exchange = self._exchange
        timer: Timer | None = None
        withdraw: Callable[[], None] | None = None

        def arm(over: Callable[[], None]) -> None:
            nonlocal timer, withdraw
            if at_most_ms is not None:
                due_ms = exchange.runtime.now_ms() + at_most_ms
                timer = exchange.runtime.timers.call_at(due_ms, then or over)
            withdraw = watch(over)

        try:
            await exchange.wait(arm)
        finally:
            if timer is not None:
                timer.cancel()
            if withdraw is not None:
                withdraw()

    async def _hold(self, decision: Decision, effect: delivery.Hold) -> None:
        """Wait until the exchange is released, and act on how."""
        answer = None if effect.phase == delivery.BEFORE else self._answer()
        held = self._engine.hold(
            decision.rule.name, effect.phase, self._facts, self._request, answer
        )
        try:
            await self._until(held.when_decided, effect.at_most, held.release)
        finally:
            self._engine.forget_held(held)
        self._act_on(held)

    def _act_on(self, held: Held) -> None:
        if held.verdict == GO_ON:
            self._request = held.request
            if held.response is not None:
                self._response = held.response
        elif held.verdict == ANSWER:
            assert held.error is not None
            self._response = error_for_all(self._exchange.header, self._request, held.error, None)
        else:
            raise _EndedError(
                None if held.verdict == DROP else delivery.Ending(held.verdict == RESET)
            )


def _names(decisions: tuple[Decision, ...]) -> tuple[str, ...]:
    return tuple(decision.rule.name for decision in decisions)
