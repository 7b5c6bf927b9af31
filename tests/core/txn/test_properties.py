"""Whatever producers ask in whatever order, and whatever fails: some things always hold."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mockbroker.core.txn.events import Loaded
from mockbroker.core.txn.machine import TransactionMetadata
from mockbroker.core.txn.states import TRANSITIONS, TransactionState
from mockbroker_protocol import ErrorCode
from tests.support.txn_play import NEW_PRODUCER_ID, T0, T1, Play, image

VERSIONS = st.sampled_from((0, 2))
EPOCHS = st.integers(-1, 1)  # from the present one
PREPARED = {TransactionState.PREPARE_COMMIT: "COMMIT", TransactionState.PREPARE_ABORT: "ABORT"}


class AnId(RuleBasedStateMachine):
    """A transactional id whose log is the list of what it stored."""

    def __init__(self) -> None:
        super().__init__()
        self.play = Play(image(epoch=32_760))
        self.play.storing = False
        self.slots = 0

    def callback(self) -> int:
        self.slots += 1
        return self.slots

    @rule(known=st.booleans(), epoch=EPOCHS, version=VERSIONS)
    def init(self, known: bool, epoch: int, version: int) -> None:
        txn = self.play.id
        identity = (txn.producer_id, txn.epoch + epoch) if known else (-1, -1)
        self.play.init(*identity, version=version, callback=self.callback())

    @rule(epoch=EPOCHS, partition=st.sampled_from((T0, T1)), version=VERSIONS)
    def add(self, epoch: int, partition: tuple[str, int], version: int) -> None:
        self.play.add(
            partition, epoch=self.play.id.epoch + epoch, version=version, callback=self.callback()
        )

    @rule(epoch=EPOCHS, committed=st.booleans(), version=VERSIONS)
    def end(self, epoch: int, committed: bool, version: int) -> None:
        self.play.end(
            committed=committed,
            version=version,
            epoch=self.play.id.epoch + epoch,
            callback=self.callback(),
        )

    @precondition(lambda self: self.play.waiting)
    @rule(error=st.sampled_from((*[ErrorCode.NONE] * 3, ErrorCode.COORDINATOR_NOT_AVAILABLE)))
    def stored(self, error: ErrorCode) -> None:
        self.play.store(error=error)

    @rule(partition=st.sampled_from((T0, T1)))
    def marked(self, partition: tuple[str, int]) -> None:
        self.play.mark(partition)

    @rule(by_ms=st.sampled_from((0, 100, 60_001)), version=VERSIONS)
    def tick(self, by_ms: int, version: int) -> None:
        self.play.tick(by_ms, version)

    @precondition(lambda self: not self.play.waiting)
    @rule()
    def moved_to_another_broker(self) -> None:
        """What was not in the log never was; who waits asks again."""
        play = self.play
        play.id = TransactionMetadata("x", play.stored[-1] or image()) if play.stored else play.id
        play.tell(Loaded())

    @invariant()
    def moves_are_those_of_the_table(self) -> None:
        for before, after in self.play.moves:
            steps = set(TRANSITIONS[before].values())
            if TransactionState.PREPARE_EPOCH_FENCE in steps:
                steps |= set(TRANSITIONS[TransactionState.PREPARE_EPOCH_FENCE].values())
            assert after in steps
        self.play.moves.clear()

    @invariant()
    def the_epoch_of_a_producer_id_never_falls(self) -> None:
        """In the log. One that was raised to fence somebody, could not be stored and was given to
        nobody is forgotten with its coordinator.
        """
        assert 0 <= self.play.id.epoch <= 32_767
        epochs: dict[int, int] = {}
        for stored in self.play.stored:
            if stored is not None and stored.producer_id != NEW_PRODUCER_ID:
                assert stored.epoch >= epochs.get(stored.producer_id, 0)
                epochs[stored.producer_id] = stored.epoch

    @invariant()
    def a_decision_in_the_log_is_followed_by_its_completion_and_nothing_else(self) -> None:
        """Between PrepareX and CompleteX the log has no other record of the id."""
        for before, after in zip(self.play.stored, self.play.stored[1:], strict=False):
            if before is not None and before.state in PREPARED:
                assert after is not None
                assert after.state.name == f"COMPLETE_{PREPARED[before.state]}"

    @invariant()
    def markers_say_what_was_decided(self) -> None:
        for order in self.play.markers:
            assert order.partitions
        self.play.markers.clear()

    @invariant()
    def nobody_is_given_the_last_epoch(self) -> None:
        for result in self.play.replies.values():
            assert getattr(result, "epoch", 0) <= 32_766
        self.play.replies.clear()


AnId.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnId = AnId.TestCase
