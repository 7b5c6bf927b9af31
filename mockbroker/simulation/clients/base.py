"""The base of all simulated clients: metadata, coordinators, retries and timeouts.

They behave like Kafka's clients: they refresh metadata after a change of leader, find a coordinator
again after a move, retry retriable errors after a backoff, and give up after others.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from mockbroker.core.metadata.profiles import profile_of
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
from mockbroker.simulation.history import GroupCall, History
from mockbroker.simulation.plan import ClientSettings
from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut, Script, Sleep
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

CallSequence: TypeAlias = "Generator[Call | Sleep, Any, Any]"
"""A part of a script that returns a result."""

GROUP = 0
TRANSACTION = 1  # the kinds of coordinators

RETRIABLE = frozenset(int(code) for code in ErrorCode if code.retriable)
COORDINATOR_MOVED = frozenset(
    (
        int(ErrorCode.NOT_COORDINATOR),
        int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    )
)
BACKOFF_MS = (20, 120)
ATTEMPTS_MAX = 40
METADATA_TIMEOUT_MS = 5_000
IMPATIENT_MS = 5_000
PATIENT_MS = 45_000
PATIENT_SHARE = 0.3

# APIs with newer versions that only brokers use.
_CLIENT_MAX = {int(ApiKey.ADD_PARTITIONS_TO_TXN): 3}
_COORDINATOR_KEYS_SINCE = 4


class GaveUp(Exception):  # noqa: N818 - it names what happened
    """The client has used up its retries, or got an error that is not retriable."""

    def __init__(self, what: str, error: int = 0) -> None:
        super().__init__(what)
        self.error = error


class Leader(NamedTuple):
    """The leader of a partition in the client's metadata, its topic id and in-sync followers."""

    node_id: int
    epoch: int
    topic_id: bytes
    followers: tuple[int, ...] = ()


class Versions:
    """The version of each API that a client of one release uses with a cluster of another."""

    def __init__(self, client_release: str, cluster_release: str) -> None:
        load_all()
        client, cluster = profile_of(client_release), profile_of(cluster_release)
        self._agreed = {
            key: min(
                api.max_version,
                client.max_versions.get(key, -1),
                cluster.max_versions.get(key, -1),
                _CLIENT_MAX.get(key, 1_000),
            )
            for key, api in APIS.items()
        }
        self.uses_tv2 = (
            client.feature_level("transaction.version") >= 2
            and cluster.feature_level("transaction.version") >= 2
        )
        if not self.uses_tv2:
            # Later versions mean that the client supports transaction.version 2 (KIP-890).
            for api, below in ((ApiKey.PRODUCE, 11), (ApiKey.END_TXN, 4)):
                self._agreed[int(api)] = min(self._agreed[int(api)], below)
            commit = int(ApiKey.TXN_OFFSET_COMMIT)
            self._agreed[commit] = min(self._agreed[commit], 4)

    def of(self, key: ApiKey) -> int:
        """The common version; -1 if one of them does not have the API."""
        return self._agreed[int(key)]


@cache
def versions_of(client_release: str, cluster_release: str) -> Versions:
    """The versions of a client of one release with a cluster of another."""
    return Versions(client_release, cluster_release)


class SimulatedClient:
    """The base of all clients."""

    is_awaited = True  # by clients that begin when the others have ended

    def __init__(
        self, settings: ClientSettings, cluster_release: str, nodes: Sequence[int], history: History
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self.client_id = settings.name
        self.history = history
        self.versions = versions_of(settings.release, cluster_release)
        self._nodes = list(nodes)
        self._leaders: dict[tuple[str, int], Leader] = {}
        self._names: dict[bytes, str] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self.unanswered = 0  # requests to coordinators that had no answer
        self.rng = random.Random(0)

    def run(self, rng: random.Random) -> Script:
        """The script: `live` until it ends or gives up."""
        self.rng = rng
        self._leaders.clear()
        self._coordinators.clear()
        self.begin()
        if self.is_awaited:
            self.history.running.add(self.name)
        try:
            if self.settings.start_ms:
                yield Sleep(self.settings.start_ms)
            yield from self.live()
        except GaveUp:
            self.history.counts["clients gave up"] += 1
        finally:
            self.history.running.discard(self.name)

    def begin(self) -> None:
        """Reset the memory of a former process."""

    def live(self) -> Script:
        """The behaviour of this kind of client."""
        raise NotImplementedError

    # -- waiting -----------------------------------------------------------------------------------

    def pause(self) -> Sleep:
        """The time between two rounds."""
        low, high = self.settings.pause_ms
        return Sleep(self.rng.randint(low, high))

    def backoff(self, attempt: int = 0) -> Sleep:
        """The pause before a retry, longer after many."""
        low, high = BACKOFF_MS
        return Sleep(self.rng.randint(low, high) * min(1 + attempt, 8))

    def patience_ms(self) -> int:
        """The timeout of a request: that of Kafka's clients or a much shorter one, by the seed."""
        return PATIENT_MS if self.rng.random() < PATIENT_SHARE else IMPATIENT_MS

    # -- metadata ----------------------------------------------------------------------------------

    def any_node(self) -> int:
        """A random broker of the client's metadata."""
        return self.rng.choice(self._nodes)

    def refresh(self) -> CallSequence:
        """Refresh the metadata, with retries. Raises GaveUp."""
        topics = [MetadataRequestTopic(name=name) for name in self.topic_names()]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        version = self.versions.of(ApiKey.METADATA)
        for attempt in range(ATTEMPTS_MAX):
            try:
                response = yield Call(
                    self.any_node(), ApiKey.METADATA, version, request, METADATA_TIMEOUT_MS
                )
            except (Disconnected, RequestTimedOut):
                yield self.backoff(attempt)
                continue
            self._take(response)
            return
        raise GaveUp("metadata")

    def topic_names(self) -> list[str]:
        """The topics whose metadata the client requests."""
        return self.settings.topics

    def _take(self, response: Any) -> None:
        known = [broker.node_id for broker in response.brokers]
        self._nodes += [node_id for node_id in known if node_id not in self._nodes]
        self._leaders.clear()
        for topic in response.topics:
            if topic.error_code == 0:
                self._names[topic.topic_id] = topic.name
                for each in topic.partitions:
                    self._leaders[topic.name, each.partition_index] = Leader(
                        each.leader_id,
                        each.leader_epoch,
                        topic.topic_id,
                        tuple(node for node in each.isr_nodes if node != each.leader_id),
                    )
                    self.history.leader_told(
                        topic.topic_id, each.partition_index, each.leader_epoch, each.leader_id
                    )

    def partitions_of(self, topic: str) -> list[int]:
        """The partitions of a topic in the client's metadata."""
        return [index for name, index in self._leaders if name == topic]

    def leader(self, topic: str, partition: int) -> Leader | None:
        """The leader, or None if the metadata has none."""
        found = self._leaders.get((topic, partition))
        return found if found is not None and found.node_id >= 0 else None

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic in the client's metadata, or None."""
        return self._names.get(topic_id)

    # -- coordinators ------------------------------------------------------------------------------

    def coordinator(self, kind: int, key: str) -> CallSequence:
        """The broker that coordinates a group or transactional id. Raises GaveUp."""
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        version = self.versions.of(ApiKey.FIND_COORDINATOR)
        if version >= _COORDINATOR_KEYS_SINCE:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        else:
            request = FindCoordinatorRequest(key=key, key_type=kind)
        for attempt in range(ATTEMPTS_MAX):
            try:
                response = yield Call(
                    self.any_node(),
                    ApiKey.FIND_COORDINATOR,
                    version,
                    request,
                    METADATA_TIMEOUT_MS,
                )
            except (Disconnected, RequestTimedOut):
                yield self.backoff(attempt)
                continue
            found = response.coordinators[0] if response.coordinators else response
            if found.error_code == 0:
                self._coordinators[kind, key] = found.node_id
                return found.node_id
            yield self.backoff(attempt)
        raise GaveUp("coordinator")

    def ask_coordinator(
        self,
        kind: int,
        key: str,
        api: ApiKey,
        request: Any,
        error_of: Any = None,
        timeout_ms: int = 0,
        *,
        also_retry: frozenset[int] = frozenset(),
        attempts: int = ATTEMPTS_MAX,
        note: GroupCall | None = None,
    ) -> CallSequence:
        """The coordinator's answer, after retries. Raises GaveUp.

        `error_of` returns the error of the answer, by default `error_code`. The default of
        `timeout_ms` is `patience_ms`. The outcome is recorded in `note`.
        """
        version = self.versions.of(api)
        for attempt in range(attempts):
            node_id = yield from self.coordinator(kind, key)
            try:
                patience_ms = timeout_ms or self.patience_ms()
                response = yield Call(node_id, api, version, request, patience_ms)
            except (Disconnected, RequestTimedOut):
                self.unanswered += 1
                if note is not None:
                    note.doubtful = True
                self._coordinators.pop((kind, key), None)
                yield self.backoff(attempt)
                continue
            error = response.error_code if error_of is None else error_of(response)
            if error in COORDINATOR_MOVED:
                self._coordinators.pop((kind, key), None)
            if error in COORDINATOR_MOVED or error == _LOADING or error in also_retry:
                if error == _CONCURRENT:
                    self.history.counts["concurrent transactions met"] += 1
                yield self.backoff(attempt)
                continue
            if note is not None:
                self.history.group_answer(note, error)
            return response
        raise GaveUp(api.name)


_CONCURRENT = int(ErrorCode.CONCURRENT_TRANSACTIONS)
_LOADING = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
