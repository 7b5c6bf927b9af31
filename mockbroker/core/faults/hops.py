"""Rules for hops, the requests between brokers, and their journal entries.

The *interceptor* is on the network between the brokers while a rule for hops is in force or the
journal records hops. An intercepted hop is sent as a message: no call and no shared log stands for
it. The stages of a hop:
- before: delays, holds, drops, refusals;
- carried over the link to the receiver, which handles the request;
- after: delays, holds, drops, errors after the request was applied;
- carried over the link to the sender, which handles the answer.

A broker waits for a hop with its own timeouts, on the cluster's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from mockbroker.core.faults.effects import answers, delivery
from mockbroker.core.faults.facts import Facts
from mockbroker.core.faults.holds import ANSWER, GO_ON, Held
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.declarations import schema_module
from mockbroker_protocol.declare import TRANSACTIONAL_ID, Entity
from mockbroker_protocol.entities import Target

if TYPE_CHECKING:
    import msgspec

    from mockbroker.core.cluster_state import ClusterState
    from mockbroker.core.faults.engine import Decision, FaultEngine
    from mockbroker.core.faults.rules import Match
    from mockbroker.core.replication.network import Hop
    from mockbroker.core.replication.partition import Partition

# No field of these requests names a topic or an id.
_OPAQUE = (ApiKey.BROKER_HEARTBEAT, ApiKey.ENVELOPE)

# The outcomes of hops without an answer.
REQUEST_LOST = "request lost"
REQUEST_DROPPED = "request dropped"
ANSWER_LOST = "answer lost"
ANSWER_DROPPED = "answer dropped"

# Calls its argument, now or later.
Wait = Callable[[Callable[[], None]], object]


class BrokerPeer:
    """A broker instead of a client: no rule has conditions on it."""

    __slots__ = ()
    id: int = 0
    client_host: str = ""
    client_port: int = 0
    principal: str = ""
    software_name: str = ""
    software_version: str = ""


class HopFacts(Facts):
    """A request between brokers, as rules see it."""

    __slots__ = ("_hop",)

    def __init__(self, cluster: ClusterState, hop: Hop, request: Any, seq: int) -> None:
        self._hop = hop
        self.broker = cluster.processes[hop.receiver]
        self.listener = ""
        self.connection = BrokerPeer()
        self.api_key = int(hop.API)
        self.api_version = hop.version
        self.client_id = f"broker-{hop.sender}"
        self.request = request
        self.seq = seq
        self._targets = self._batches = None

    @property
    def from_broker(self) -> int:
        return self._hop.sender

    @property
    def to_broker(self) -> int:
        return self._hop.receiver

    def values(self, kind: Entity) -> list[Any]:
        """As for clients' requests. A WriteTxnMarkers has no transactional id; the hop has it."""
        own = self._hop.transactional_id
        return [own] if own and kind is TRANSACTIONAL_ID else super().values(kind)


class HopInterceptor:
    """Handles every hop between the brokers of a cluster."""

    __slots__ = ("_cluster", "_engine")

    def __init__(self, cluster: ClusterState, engine: FaultEngine | None) -> None:
        self._cluster = cluster
        self._engine = engine

    def intercepts(
        self, api: ApiKey, sender: int, receiver: int, partition: Partition | None = None
    ) -> bool:
        """Whether a rule may be for such a hop, or the journal records all."""
        cluster = self._cluster
        if receiver not in cluster.processes:
            return False
        if cluster.runtime.journal is not None and cluster.runtime.journal.hops:
            return True
        engine = self._engine
        for rule in () if engine is None else engine.hop_rules:
            match = rule.rule.match
            if (
                (not rule.api_keys or api in rule.api_keys)
                and _contains(sender, match.from_broker)
                and _contains(receiver, match.to_broker)
                and (partition is None or rule.matcher.may_select(_target(partition)))
                and not (api in _OPAQUE and _names_more_than_brokers(match))
            ):
                return True
        return False

    def on_send(self, hop: Hop) -> None:
        """Journal a hop, evaluate the rules, and send it on."""
        cluster = self._cluster
        hop.version = version_of(cluster, hop.API)
        request = hop.request()
        seq = 0
        if cluster.runtime.journal is not None:
            seq = cluster.runtime.journal.hop(cluster.runtime.now_ms(), hop, request)
        engine, network = self._engine, cluster.replication.network
        facts: HopFacts | None = None
        decisions: tuple[Decision, ...] = ()
        if (
            engine is not None
            and engine.hop_rules
            and hop.receiver in cluster.processes
            and network.is_up(hop.sender, hop.receiver)
        ):
            facts = HopFacts(cluster, hop, request, seq)
            decisions = engine.evaluate_hop(facts)
        intercepted = hop.intercepted = FaultedHop(
            cluster, engine, hop, request, seq, facts, decisions
        )
        intercepted.set_out()


def intercept_hops(cluster: ClusterState, engine: FaultEngine | None) -> None:
    """Intercept hops while needed. Call it when rules or the journal change."""
    journal = cluster.runtime.journal
    wanted = (engine is not None and engine.hop_rules) or (journal is not None and journal.hops)
    cluster.replication.network.interceptor = HopInterceptor(cluster, engine) if wanted else None
    cluster.replication.links_changed()
    cluster.controller.heartbeats.reconcile()


class FaultedHop:
    """One hop on its way, with the effects of rules."""

    __slots__ = (
        "_cluster",
        "_decisions",
        "_dropped",
        "_engine",
        "_facts",
        "_hop",
        "_refusal",
        "_request",
        "_seq",
    )

    def __init__(
        self,
        cluster: ClusterState,
        engine: FaultEngine | None,
        hop: Hop,
        request: msgspec.Struct,
        seq: int,
        facts: HopFacts | None,
        decisions: tuple[Decision, ...],
    ) -> None:
        self._cluster = cluster
        self._engine = engine  # an engine exists where a rule fires
        self._hop = hop
        self._request = request
        self._seq = seq
        self._facts = facts
        self._decisions = decisions
        self._refusal: ErrorCode | None = None
        self._dropped = False

    # -- the request -------------------------------------------------------------------------------

    def set_out(self) -> None:
        """Send the request, after delays and holds."""
        _run(self._before(), self._send)

    def _before(self) -> Iterator[Wait]:
        for decision in self._decisions:
            for effect in decision.effects.values():
                match effect:
                    case delivery.Delay(phase="before"):
                        yield self._sleep(effect.drawn_ms(decision.rule.stream))
                    case delivery.Hold(phase="before"):
                        yield self._hold(decision, effect, None)
                    case delivery.DropRequest():
                        self._dropped = True
                    case answers.ErrorAfter():
                        pass
                    case answers.Error():
                        self._refusal = effect.error
                if self._dropped:
                    return

    def _send(self) -> None:
        hop = self._hop
        if self._dropped:
            self._end(REQUEST_DROPPED)
            self._act()
            hop.lost()
            return

        def disconnected() -> None:
            self._end(REQUEST_LOST)
            self._act()
            hop.disconnected()

        network = self._cluster.replication.network
        network.carry_request(hop, self._arrive, disconnected)

    def _arrive(self) -> None:
        hop, refusal = self._hop, self._refusal
        if refusal is not None:
            self.answered(hop.error_answer(refusal), 0)
        else:
            hop.handle_request()
        self._act()

    def _act(self) -> None:
        """Perform the actions on the cluster, once the request is applied or lost."""
        for decision in self._decisions:
            if decision.rule.actions:
                assert self._engine is not None
                self._engine.act(decision.rule.actions, decision.rule.name)

    # -- the answer --------------------------------------------------------------------------------

    def answered(self, answer: Any, late_ms: int) -> None:
        """The receiver answers, after `late_ms`."""
        for decision in self._decisions:
            for effect in decision.effects.values():
                if isinstance(effect, answers.ErrorAfter):
                    answer = self._hop.error_answer(effect.error)
        self._refusal = None
        response = self._hop.response(answer)
        _run(self._after(response), lambda: self._send_back(answer, response, late_ms))

    def _after(self, response: msgspec.Struct) -> Iterator[Wait]:
        for decision in self._decisions:
            for effect in decision.effects.values():
                match effect:
                    case delivery.Delay(phase="after"):
                        yield self._sleep(effect.drawn_ms(decision.rule.stream))
                    case delivery.Hold(phase="after"):
                        yield self._hold(decision, effect, response)
                    case delivery.DropReply():
                        self._dropped = True
                if self._dropped:
                    return

    def _send_back(self, answer: Any, response: msgspec.Struct, late_ms: int) -> None:
        hop = self._hop
        if self._dropped:
            self._end(ANSWER_DROPPED)
            hop.lost()
            return
        if self._refusal is not None:  # the verdict on a held answer
            answer = hop.error_answer(self._refusal)
            response = hop.response(answer)

        def deliver() -> None:
            self._end("", response)
            hop.handle_answer(answer)

        def lost() -> None:
            self._end(ANSWER_LOST)
            hop.lost()

        network = self._cluster.replication.network
        network.carry_answer(hop, deliver, lost, late_ms)

    def _end(self, outcome: str, response: msgspec.Struct | None = None) -> None:
        """Journal the outcome of the hop."""
        journal = self._cluster.runtime.journal
        if journal is not None:
            rules = tuple(decision.rule.name for decision in self._decisions)
            journal.hop_answer(
                self._cluster.runtime.now_ms(),
                self._hop,
                self._seq,
                response,
                outcome,
                rules,
            )

    # -- waiting -----------------------------------------------------------------------------------

    def _sleep(self, milliseconds: int) -> Wait:
        return partial(
            self._cluster.runtime.timers.call_at, self._cluster.runtime.now_ms() + milliseconds
        )

    def _hold(
        self, decision: Decision, effect: delivery.Hold, response: msgspec.Struct | None
    ) -> Wait:
        """Wait for the verdict, and carry it out."""
        engine, cluster = self._engine, self._cluster
        assert engine is not None
        assert self._facts is not None
        held = engine.hold(decision.rule.name, effect.phase, self._facts, self._request, response)
        timer = None
        if effect.at_most is not None:
            timer = cluster.runtime.timers.call_at(
                cluster.runtime.now_ms() + effect.at_most, held.release
            )

        def wait(go: Callable[[], None]) -> None:
            def decided() -> None:
                if timer is not None:
                    timer.cancel()
                engine.forget_held(held)
                self._take(held)
                go()

            held.when_decided(decided)

        return wait

    def _take(self, held: Held) -> None:
        if held.verdict == ANSWER:
            self._refusal = held.error
        elif held.verdict != GO_ON:
            self._dropped = True


def _run(steps: Iterator[Wait], then: Callable[[], None]) -> None:
    """Run the steps one after the other, then `then`."""

    def go() -> None:
        for wait in steps:
            wait(go)
            return
        then()

    go()


def version_of(cluster: ClusterState, api: ApiKey) -> int:
    """The version in which brokers of the release send an API to each other."""
    known = cluster.profile.max_versions.get(int(api))
    newest = _newest_version(api)
    return newest if known is None else min(known, newest)


@cache
def _newest_version(api: ApiKey) -> int:
    newest: int = schema_module(api.name.lower()).REQUEST.versions.high
    return newest


def _contains(node_id: int, wanted: int | list[int] | None) -> bool:
    if wanted is None:
        return True
    return node_id in wanted if isinstance(wanted, list) else node_id == wanted


def _names_more_than_brokers(match: Match) -> bool:
    """Whether a match has fields that heartbeats and envelopes lack."""
    about = (match.topic, match.topic_id, match.partition, match.group, match.transactional_id)
    return any(each is not None for each in (*about, match.producer_id))


def _target(partition: Partition) -> Target:
    return Target(partition.topic.name, partition.topic.topic_id, partition.index)
