"""A transactional id with two producers that share it, two partitions, and the coordinator's log.

Producers use the first protocol or the second (KIP-890), initialise with or without their former
epoch (KIP-360), and commit or abort their transactions, also against an earlier request. Answers
may be lost. A record may be in flight for any time, or not be stored. The answer to a marker may be
lost, so that the marker is sent again. Timeouts may pass, the id may expire, and the coordinator
may move at any time. Transactions are numbered in the order of the log, so that the decision of
each is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from mockbroker.core.txn.events import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    AddPartitions,
    AddResult,
    EndResult,
    EndTransaction,
    Expire,
    InitProducer,
    InitResult,
    Loaded,
    Marked,
    Moved,
    Persist,
    Persisted,
    Remove,
    Reply,
    SendMarkers,
    Tick,
)
from mockbroker.core.txn.events import Event as StateEvent
from mockbroker.core.txn.machine import (
    EPOCH_ASSIGNED_MAX,
    EPOCH_MAX,
    EPOCHS_BUMPED_SINCE,
    TransactionMetadata,
    new_image,
)
from mockbroker.core.txn.records import key_of, parse, value_of
from mockbroker.core.txn.states import TransactionState
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import Record
from tests.simulation.exhaustive.transaction_log import PREPARED, TransactionLog
from tests.simulation.exhaustive.transaction_parties import (
    NEVER_OPENED,
    Entry,
    ProducerClient,
    WaitingRequest,
)
from tests.simulation.exhaustive.transactional_id_key import state_key
from tests.simulation.exhaustive.world import Event, ExploredWorld, must

UNIT_MS = 1_000
TIMEOUT_MS = UNIT_MS
TICKS_MAX = 50
ROUNDS_OF_PEACE = 12

NONE = ErrorCode.NONE
NOT_STORED = ErrorCode.COORDINATOR_NOT_AVAILABLE
PARTITIONS = (("t", 0), ("t", 1))


class TransactionalIdWorld(ExploredWorld):
    """The id's machine, its log, its producers and the partitions."""

    name: ClassVar[str] = "transactional-id"
    beginnings: ClassVar[tuple[str, ...]] = (
        "two producers of the second protocol",
        "two producers of the first protocol",
        "a producer of each protocol",
        "an open transaction of the second protocol",
        "an open transaction of the first protocol",
        "the last epoch but one, second protocol",
    )

    def __init__(self, versions: tuple[int, int], server_version: int) -> None:
        self.now_ms = 0
        self.server_version = server_version
        self.clients = (ProducerClient(versions[0]), ProducerClient(versions[1]))
        self.id: TransactionMetadata | None = None
        self.log = TransactionLog()
        self.on_the_way: Persist | None = None
        self.errands: dict[tuple[str, int], SendMarkers] = {}
        self.entries: dict[tuple[tuple[str, int], int], Entry] = {}
        self.waiting: list[WaitingRequest] = []
        self.next_producer_id = 1
        self.given: dict[tuple[int, int], int] = {}  # producer id and epoch -> client

    @classmethod
    def begin(cls, beginning: str) -> TransactionalIdWorld:
        second, first, _, open_second, open_first, last = cls.beginnings
        if beginning in (first, open_first):
            world = cls((0, 0), 1)
        else:
            world = cls((2, 2) if beginning in (second, open_second, last) else (0, 2), 2)
        if beginning == last:
            world._use_up_epochs()
        if beginning in (open_second, open_first, last):
            world.on_init(0)
            world.on_stored()
            world.on_add(0, 0)
            world.on_stored()
            world.on_write(0, 0)
        return world

    def _use_up_epochs(self) -> None:
        """The epochs of the id are almost exhausted."""
        image = msgspec.structs.replace(
            new_image(self._new_producer_id(), TIMEOUT_MS, 0), epoch=EPOCH_ASSIGNED_MAX - 2
        )
        self.id, self.log.image = TransactionMetadata("x", image), image

    # -- events ------------------------------------------------------------------------------------

    def events(self) -> Sequence[Event]:
        found: list[Event] = []
        for index, client in enumerate(self.clients):
            if client.callback is not None:
                continue
            found += [("init", index), ("init", index, "lost")]
            if client.producer_id != NO_PRODUCER_ID:
                found += [("init_again", index)]
                found += [("add", index, 0), ("write", index, 0)]
                if index == 0:
                    found += [("add", index, 1), ("write", index, 1)]
                found += [("commit", index), ("commit", index, "lost")]
                found += [("abort", index), ("abort", index, "lost")]
        if self.on_the_way is not None:
            found += [("stored",), ("not_stored",), ("reload", "stored")]
        if self.id is not None:
            found += [("time_passes",), ("reload",), ("expire",)]
        for number, partition in enumerate(PARTITIONS):
            if partition in self.errands:
                found += [("mark", number), ("mark", number, "unheard")]
        return found

    def on_init(self, index: int, lost: str = "") -> None:
        self._init(index, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, lost)

    def on_init_again(self, index: int) -> None:
        client = self.clients[index]
        self._init(index, client.producer_id, client.epoch, "")

    def _init(self, index: int, producer_id: int, epoch: int, lost: str) -> None:
        if self.id is None:
            image = new_image(self._new_producer_id(), TIMEOUT_MS, self.now_ms)
            self.id = TransactionMetadata("x", image)
        callback = self._ask(index, "init", lost)
        self._tell(
            InitProducer(
                callback=callback,
                timeout_ms=TIMEOUT_MS,
                producer_id=producer_id,
                epoch=epoch,
                new_producer_id=self._next_producer_id(),
                server_version=self.server_version,
            ),
            callback,
        )

    def on_add(self, index: int, number: int) -> None:
        client = self.clients[index]
        callback = self._ask(index, "add", "", partition=PARTITIONS[number])
        self._tell(
            AddPartitions(
                callback=callback,
                producer_id=client.producer_id,
                epoch=client.epoch,
                partitions=(PARTITIONS[number],),
                version=client.version,
            ),
            callback,
        )

    def on_write(self, index: int, number: int) -> None:
        """A producer writes a record, which the leader has verified with the coordinator."""
        client, partition = self.clients[index], PARTITIONS[number]
        if self.id is None:
            return
        verdict = self.id.verify(client.producer_id, client.epoch, (partition,))
        if verdict != [NONE]:
            return
        must(self.id.state is TransactionState.ONGOING, "only what is open can be written to")
        self._entry(partition, client.producer_id).write(client.epoch, self.log.transaction)

    def on_commit(self, index: int, lost: str = "") -> None:
        self._end(index, lost, committed=True)

    def on_abort(self, index: int, lost: str = "") -> None:
        self._end(index, lost, committed=False)

    def _end(self, index: int, lost: str, *, committed: bool) -> None:
        client = self.clients[index]
        callback = self._ask(index, "end", lost, committed=committed)
        self._tell(
            EndTransaction(
                callback=callback,
                producer_id=client.producer_id,
                epoch=client.epoch,
                committed=committed,
                version=client.version,
                new_producer_id=self._next_producer_id(),
            ),
            callback,
        )

    def on_stored(self) -> None:
        persist = self._land()
        self._tell(Persisted(persist, NONE))

    def on_not_stored(self) -> None:
        persist, self.on_the_way = self.on_the_way, None
        assert persist is not None
        self._tell(Persisted(persist, NOT_STORED))

    def on_mark(self, number: int, how: str = "") -> None:
        """A marker arrives at the partition's leader; its answer may be lost."""
        partition = PARTITIONS[number]
        order = self.errands[partition]
        self._entry(partition, order.producer_id).mark(order, self.log.decisions)
        if not how:
            del self.errands[partition]
            self._tell(Marked((partition,)))

    def on_time_passes(self) -> None:
        assert self.id is not None
        end_ms = self.now_ms + UNIT_MS
        for _ in range(TICKS_MAX):
            due_ms = self.id.deadline_ms()
            # A deadline that has passed while a record is on its way has to wait for that.
            late = due_ms is not None and due_ms <= self.now_ms and self.on_the_way is not None
            if due_ms is None or due_ms > end_ms or late:
                self.now_ms = end_ms
                return
            self.now_ms = max(due_ms, self.now_ms)
            self._tell(
                Tick(new_producer_id=self._next_producer_id(), server_version=self.server_version)
            )
        must(condition=False, sentence="the id has nothing left to do at some time")

    def on_expire(self) -> None:
        self._tell(Expire(0))

    def on_reload(self, how: str = "") -> None:
        """The coordinator moves; the record in flight is stored or lost."""
        if how:
            self._land()
        self.on_the_way = None
        self.errands.clear()
        self.waiting.clear()
        for client in self.clients:
            client.callback = None
        self.id = None
        if self.log.image is not None:
            value = value_of(self.log.image, self.server_version)
            read = parse(Record(key=key_of("x"), value=value))
            assert read is not None
            assert read.image is not None
            self.id = TransactionMetadata("x", read.image)
            self._tell(Loaded())

    # -- the machine and its answers ---------------------------------------------------------------

    def _new_producer_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def _next_producer_id(self) -> int:
        wanted = self.id is not None and self.id.needs_producer_id
        return self._new_producer_id() if wanted else NO_PRODUCER_ID

    def _entry(self, partition: tuple[str, int], producer_id: int) -> Entry:
        return self.entries.setdefault((partition, producer_id), Entry())

    def _ask(
        self,
        index: int,
        kind: str,
        lost: str,
        *,
        committed: bool = False,
        partition: tuple[str, int] | None = None,
    ) -> WaitingRequest:
        client = self.clients[index]
        went_by = (client.producer_id, client.epoch)
        callback = WaitingRequest(
            index, kind, *went_by, bool(lost), client.transaction, committed, partition
        )
        self.waiting.append(callback)
        if not lost:
            client.callback = callback
        return callback

    def _tell(self, event: StateEvent, callback: WaitingRequest | None = None) -> None:
        transaction = self.id
        if transaction is None:  # the shard's answer
            kind = AddResult if callback and callback.kind == "add" else EndResult
            self._answered(Reply(callback, kind(ErrorCode.INVALID_PRODUCER_ID_MAPPING)))
            return
        pending = transaction.pending is not None
        in_force = callback is not None and (
            (callback.producer_id, callback.epoch) == (transaction.producer_id, transaction.epoch)
        )
        for effect in transaction.handle(event, self.now_ms):
            if isinstance(effect, Reply):
                if pending and callback is not None:
                    error = effect.result.error
                    must(error is not NONE, "nothing is granted while a move is pending")
                    must(
                        error is ErrorCode.CONCURRENT_TRANSACTIONS or not in_force,
                        "a producer with the epoch in force has to wait while a move is pending",
                    )
                self._answered(effect)
            elif isinstance(effect, Persist):
                must(self.on_the_way is None, "one record is on its way at a time")
                self.on_the_way = effect
            elif isinstance(effect, SendMarkers):
                self._send(effect)
            elif isinstance(effect, Remove):
                self.id = None
            else:
                assert isinstance(effect, Moved)

    def _send(self, order: SendMarkers) -> None:
        assert self.log.image is not None
        must(PREPARED.get(self.log.image.state) is order.committed, "markers say what the log says")
        must(not self.errands, "markers set out once")
        self.errands = dict.fromkeys(order.partitions, order)

    def _land(self) -> Persist:
        """The record in flight is stored."""
        persist, self.on_the_way = self.on_the_way, None
        assert persist is not None
        self.log.append(persist.image, hanging=any(e.open for e in self.entries.values()))
        callback = persist.callback
        if isinstance(callback, WaitingRequest) and callback.kind == "add":
            # Also if the answer is lost.
            self.clients[callback.client].transaction = self.log.transaction
        return persist

    def _answered(self, reply: Reply) -> None:
        callback, result = reply.callback, reply.result
        assert isinstance(callback, WaitingRequest)
        must(callback in self.waiting, "each request is answered once")
        self.waiting.remove(callback)
        client = self.clients[callback.client]
        if client.callback is callback:
            client.callback = None
        if result.error is NONE:
            match result:
                case InitResult():
                    self._given(callback, result.producer_id, result.epoch)
                case AddResult():
                    self._added(callback)
                case EndResult():
                    self._ended(callback, result)

    def _given(self, callback: WaitingRequest, producer_id: int, epoch: int) -> None:
        """Note a producer id and epoch that a client may use after the answer."""
        must(0 <= epoch <= EPOCH_ASSIGNED_MAX, "the highest epoch is kept for fencing")
        owner = self.given.setdefault((producer_id, epoch), callback.client)
        must(owner == callback.client, "no two producers have the same epoch")
        if not callback.lost:
            client = self.clients[callback.client]
            client.producer_id, client.epoch = producer_id, epoch
            client.transaction = NEVER_OPENED

    def _added(self, callback: WaitingRequest) -> None:
        assert self.id is not None
        in_force = (self.id.producer_id, self.id.epoch)
        must((callback.producer_id, callback.epoch) == in_force, "an old epoch adds nothing")
        must(
            self.id.state is TransactionState.ONGOING,
            "an added partition is in an open transaction",
        )
        must(callback.partition in self.id.partitions, "an added partition is in the transaction")
        self.clients[callback.client].transaction = self.log.transaction

    def _ended(self, callback: WaitingRequest, result: EndResult) -> None:
        if callback.transaction != NEVER_OPENED:
            must(
                self.log.decisions.get(callback.transaction) is callback.committed,
                "an end is confirmed only if it is what was decided",
            )
        if self.clients[callback.client].version >= EPOCHS_BUMPED_SINCE:
            self._given(callback, result.producer_id, result.epoch)

    # -- invariants --------------------------------------------------------------------------------

    def check(self) -> None:
        transaction = self.id
        if transaction is None:
            must(not self.waiting, "each waiting request is answered")
            return
        must(0 <= transaction.epoch <= EPOCH_MAX or self.log.image is None, "an epoch is one")
        must(len(self.waiting) <= 1, "one request waits at a time")
        must(
            not self.waiting or self.on_the_way is not None, "a waiting request waits for a record"
        )
        must(
            (transaction.pending is None) <= (self.on_the_way is None),
            "while a record is on its way, a move is pending",
        )
        if self.on_the_way is None:
            assert self.log.image is None or transaction.state is self.log.image.state
        if transaction.state in PREPARED:
            missing = set(transaction.partitions)
            must(
                missing == set(self.errands),
                "markers are on their way to each partition that lacks one",
            )
            must(
                missing or self.on_the_way is not None or transaction.deadline_ms() is not None,
                "a decision will be completed",
            )
        if transaction.state is TransactionState.ONGOING:
            must(transaction.deadline_ms() is not None, "an open transaction will time out")
        for entry in self.entries.values():
            decided = self.log.decisions.get(entry.open)
            must(
                not entry.open or decided is None or transaction.state in PREPARED,
                "no record hangs in a transaction that is over",
            )

    def settle(self) -> None:
        self._run_errands()
        for client in self.clients:
            client.callback, client.producer_id = None, NO_PRODUCER_ID
        client = self.clients[0]
        for _ in range(ROUNDS_OF_PEACE):
            self.on_init(0)
            self._run_errands()
            if client.producer_id != NO_PRODUCER_ID:
                break
        must(client.producer_id != NO_PRODUCER_ID, "a producer in peace is given an epoch")
        self.on_add(0, 1)
        self._run_errands()
        self.on_write(0, 1)
        must(self._entry(PARTITIONS[1], client.producer_id).open, "a producer in peace may write")
        self.on_commit(0)
        self._run_errands()
        assert self.id is not None
        must(self.id.state is TransactionState.COMPLETE_COMMIT, "a producer in peace commits")
        must(not any(e.open for e in self.entries.values()), "in peace nothing is left open")

    def _run_errands(self) -> None:
        for _ in range(ROUNDS_OF_PEACE):
            self.check()
            if self.on_the_way is not None:
                self.on_stored()
            elif self.errands:
                self.on_mark(PARTITIONS.index(next(iter(self.errands))))
            elif self.id is not None and self.id.state in PREPARED:
                self.on_time_passes()
            else:
                return
        must(condition=False, sentence="a decided transaction is completed in peace")

    def key(self) -> object:
        return state_key(self)
