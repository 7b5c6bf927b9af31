"""The way of a request that a rule fires for: what the rule's effects say is done here.

A plain request never comes here. The connection asks the engine while there are rules; when some
fire, the request becomes a `Watched`, which the connection waits for as for any unanswered one:

    before     delays, holds, drops, edits of the request, refusals
    applied    the handler, unless somebody else has answered
    after      edits of the answer, delays, holds, drops
    delivered  the frame of the answer: damaged, cut, slow, doubled, out of order

All waiting is on the cluster's clock, by its timers, so that a clock moved by hand moves it too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from mockbroker.actors.faulty_frames import Capture, deliver, fate_of
from mockbroker.actors.inbox import ProtocolError
from mockbroker.actors.unanswered import Unanswered
from mockbroker.core.faults.effects import answers, connections, delivery, records
from mockbroker.core.faults.effects.answers import rewritten
from mockbroker.core.faults.holds import ANSWER, DROP, GO_ON, RESET, Held
from mockbroker.core.faults.layouts import request_layout
from mockbroker.core.faults.partial import Selection
from mockbroker.handlers.base import Marks, Outcome, Parked, RequestContext
from mockbroker.handlers.faulty_answers import (
    applied_error,
    edited_answer,
    error_for_all,
    is_edit,
    refused,
)
from mockbroker_protocol import ApiKey

if TYPE_CHECKING:
    from mockbroker.actors.connection import Connection
    from mockbroker.actors.routes import Route
    from mockbroker.actors.transport import Buffer
    from mockbroker.core.faults.engine import Asked, Decision, FaultEngine

log = logging.getLogger("mockbroker")

_PRODUCE = int(ApiKey.PRODUCE)

_Refusal = answers.Error | answers.RecordErrors
_FRAME_EFFECTS = (
    delivery.CorruptReply,
    delivery.DuplicateReply,
    delivery.ReorderReplies,
    delivery.Slow,
    delivery.TruncateReply,
)


class _EndedError(Exception):
    """The exchange is over without an answer; the connection stays, or ends in some way."""

    def __init__(self, ending: delivery.Ending | None) -> None:
        self.ending = ending


class Watched(Unanswered):
    """One request that rules fire for."""

    __slots__ = (
        "_acted",
        "_connection",
        "_context",
        "_decisions",
        "_engine",
        "_facts",
        "_request",
        "_response",
        "_route",
        "_started_ns",
    )

    def __init__(
        self,
        connection: Connection,
        engine: FaultEngine,
        asked: Asked,
        context: RequestContext,
        route: Route,
        started_ns: int,
    ) -> None:
        self._connection = connection
        self._engine = engine
        facts, decisions = asked
        self._facts = facts
        self._decisions = decisions
        context.marks = Marks(tuple(decision.rule.name for decision in decisions))
        context.is_late = True
        self._context = context
        self._request: Any = facts.request
        self._response: Any = None
        self._route = route
        self._started_ns = started_ns
        self._acted = False

    @property
    def hurry(self) -> None:
        """None: what rules have a hand in takes the time that they give it."""

    async def sent(self) -> Sequence[Buffer] | None:
        """Do what the rules say; what the socket did not take of the answer, None to close."""
        try:
            refusal = await self._before()
            if self._response is None:
                self._response = await self._applied(refusal)
            self._act()
            dropped = await self._after()
            await self._connection._gate.wait()
            return await self._delivered(dropped)
        except _EndedError as ended:
            self._act()
            self._connection.note_unanswered(
                self._context, "dropped" if ended.ending is None else "closed"
            )
            return self._end(ended.ending)
        except (OSError, ProtocolError, trio.ClosedResourceError):
            raise
        except Exception:
            names = ", ".join(decision.rule.name for decision in self._decisions)
            log.exception(
                "%s: a rule could not be carried out: %s", self._connection._peer(), names
            )
            return None

    # -- before ------------------------------------------------------------------------------------

    async def _before(self) -> tuple[Decision, _Refusal] | None:
        """All that happens before the request is applied; the refusal it then gets, if any."""
        refusal: tuple[Decision, _Refusal] | None = None
        for decision in self._decisions:
            for effect in decision.effects.values():
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
                        await self._stall(decision, effect.for_)
                    case connections.CutOff(both_ways=True):
                        await self._stall(decision, None)
                    case answers.ErrorAfter():
                        continue
                    case answers.Error() | answers.RecordErrors():
                        refusal = decision, effect
                    case _:
                        self._edit_request(decision.selection, effect)
        return refusal

    def _edit_request(self, selection: Selection, effect: object) -> None:
        layout = request_layout(self._facts.api_key)
        match effect:
            case answers.Rewrite() if effect.request:
                self._request = rewritten(self._request, layout, selection, effect.request)
            case records.CorruptBatch() if self._facts.api_key == _PRODUCE:
                self._request = records.with_records(
                    self._request, layout, selection, lambda data: records.corrupted(data, effect)
                )
            case connections.FailReauthentication():
                sasl = self._context.connection.sasl
                assert sasl is not None
                sasl.denied_next = effect.message
            case connections.ExpireCredential():
                sasl = self._context.connection.sasl
                if sasl is not None:
                    sasl.expires_ms = self._context.now_ms - 1

    async def _applied(self, refusal: tuple[Decision, _Refusal] | None) -> Any:
        """What the handler answers, or in its place the refusal."""
        if refusal is None:
            return await self._handle(self._request)
        decision, effect = refusal
        context = self._context
        return await refused(context, self._request, decision.selection, effect, self._handle)

    async def _handle(self, request: Any) -> Any:
        response = self._connection._handle(self._context, request, self._route)
        if isinstance(response, Parked):
            if not response.done:
                kept: list[object] = []

                def keep(late: object) -> Sequence[Buffer]:
                    kept.append(late)
                    return ()

                await Unanswered(response, keep, self._connection._gate).sent()
            response = response.response
        return response

    def _act(self) -> None:
        """Carry out the actions on the cluster, once the request is applied or never will be."""
        if self._acted:
            return
        self._acted = True
        for decision in self._decisions:
            if decision.rule.actions:
                self._engine.act(decision.rule.actions, decision.rule.name)

    # -- after -------------------------------------------------------------------------------------

    async def _after(self) -> delivery.DropReply | None:
        """All that happens between applying and sending; whether the answer is dropped."""
        dropped: delivery.DropReply | None = None
        for decision in self._decisions:
            for effect in decision.effects.values():
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
                        await self._stall(decision, None)
                    case _:
                        self._edit_answer(decision.selection, effect)
        return dropped

    def _edit_answer(self, selection: Selection, effect: object) -> None:
        if isinstance(self._response, Outcome):
            return
        context = self._context
        if isinstance(effect, answers.ErrorAfter):
            self._response = applied_error(
                context, self._request, self._decoded(), selection, effect
            )
        elif is_edit(effect, self._facts.api_key):
            self._response = edited_answer(context, self._decoded(), selection, effect)

    def _decoded(self) -> Any:
        """The answer as a struct, whoever encoded it already."""
        parts = getattr(self._response, "parts", None)
        if parts is not None:
            self._response, _ = self._route.response.decode(memoryview(b"".join(parts)), 0)
        return self._response

    # -- delivered ---------------------------------------------------------------------------------

    async def _delivered(self, dropped: delivery.DropReply | None) -> Sequence[Buffer] | None:
        effects = [
            (decision.rule, effect)
            for decision in self._decisions
            for effect in decision.effects.values()
            if isinstance(effect, _FRAME_EFFECTS)
        ]
        if not effects and dropped is None:
            rest = self._send_answer()
            return rest if rest is None else await self._muted(rest)
        assert self._context.marks is not None
        self._context.marks.fate = "answer dropped" if dropped is not None else fate_of(effects)
        capture = Capture(self._connection._transport)
        self._connection._transport = capture  # type: ignore[assignment]
        try:
            over = self._send_answer() is None
        finally:
            self._connection._transport = capture.transport
        if over:
            return None
        if dropped is not None:
            return self._end(delivery.ending(dropped.then))
        frame = capture.frame()
        if frame:
            ending = await deliver(self._connection, frame, effects, self._sleep)
            if ending is not None:
                return self._end(ending)
        return await self._muted(())

    def _send_answer(self) -> Sequence[Buffer] | None:
        return self._connection._answer(
            self._context, self._request, self._route, self._started_ns, self._response
        )

    async def _muted(self, rest: Sequence[Buffer]) -> Sequence[Buffer]:
        """Once the answer is out, stay deaf for as long as the client was told to wait."""
        mute_ms = max(
            (
                effect.by
                for decision in self._decisions
                for effect in decision.effects.values()
                if isinstance(effect, delivery.Throttle) and effect.mute
            ),
            default=0,
        )
        if not mute_ms:
            return rest
        if rest:
            await self._connection._transport.send_rest(rest)
        await self._sleep(mute_ms)
        return ()

    def _end(self, ending: delivery.Ending | None) -> Sequence[Buffer] | None:
        if ending is None:
            return ()
        if ending.reset:
            self._connection._transport.close(reset=True)
        return None

    # -- waiting -----------------------------------------------------------------------------------

    async def _stall(self, decision: Decision, milliseconds: int | None) -> None:
        """Wait for some time, or without one for as long as the rule is there."""
        over = trio.Event()
        decision.rule.when_removed(over.set)
        await self._until(over, milliseconds, over.set)

    async def _sleep(self, milliseconds: int) -> None:
        """Wait on the cluster's clock."""
        if milliseconds > 0:
            over = trio.Event()
            await self._until(over, milliseconds, over.set)

    async def _until(
        self, event: trio.Event, at_most_ms: int | None, then: Callable[[], None]
    ) -> None:
        """Wait for an event; after `at_most_ms`, call `then`, which is to set it."""
        cluster = self._context.cluster
        timer = None
        if at_most_ms is not None:
            timer = cluster.timers.call_at(cluster.now_ms() + at_most_ms, then)
        try:
            await event.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _hold(self, decision: Decision, effect: delivery.Hold) -> None:
        """Wait for somebody's verdict, and do what it says."""
        answer = None if effect.phase == delivery.BEFORE else self._decoded()
        held = self._engine.hold(
            decision.rule.name, effect.phase, self._facts, self._request, answer
        )
        decided = trio.Event()
        held.when_decided(decided.set)
        try:
            await self._until(decided, effect.at_most, held.release)
        finally:
            self._engine.let_go(held)
        self._take(held)

    def _take(self, held: Held) -> None:
        if held.verdict == GO_ON:
            self._request = held.request
            if held.response is not None:
                self._response = held.response
        elif held.verdict == ANSWER:
            assert held.error is not None
            self._response = error_for_all(self._context, self._request, held.error, None)
        else:
            raise _EndedError(
                None if held.verdict == DROP else delivery.Ending(held.verdict == RESET)
            )
