"""`python -m bench.soak --minutes 3 --seed 1`: a cluster under clients and faults, for as long as
one likes.

Clients of every kind use one cluster. Every few seconds a rule or an action is drawn from the seed.
Then the rules are removed and the clients end, and the soak fails if one of these holds:

- The log has an error.
- Memory grew, see `bench.soak_memory`. A run that is too short, or a machine that is too busy, says
  "not judged".
- Tasks, descriptors or threads are above those from before the clients.
- A process of clients ended, see `bench.soak_processes`.
- The audit has a bug.

Logs are short and compacted often, and the journal goes to disk, so that data does not grow.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import random
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import trio

from bench.soak_clients import LIBRARIES
from bench.soak_lives import ATOMIC, PAUSE_S, TOPIC
from bench.soak_memory import GROWS, JUDGED_FROM_MIN, Sample, judged
from bench.soak_processes import ClientProcesses
from mockbroker import Cluster
from mockbroker.pipeline.duck import judge, open_session
from mockbroker.pipeline.findings import BUG
from mockbroker.pipeline.store import open_store
from mockbroker.server.config import TopicSpec

MB = 1 << 20
STEP_S = (1.0, 4.0)
SAMPLE_S = 2.0
END_S = 60.0
FOUND_MAX = 20
GROWN_MAX = 8
NODES = (1, 2, 3)
CONFIGS = {
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "log.roll.ms": "5000",
    "transactional.id.expiration.ms": "60000",
    # Shorter than a retry may wait at a paused broker. A partition that has forgotten the producer
    # writes such a retry once more, in Kafka as well; the audit tells that from a bug.
    "producer.id.expiration.ms": "10000",
    "producer.id.expiration.check.interval.ms": "1000",
    "connections.max.idle.ms": "20000",
    "group.share.record.lock.duration.ms": "15000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "share.coordinator.state.topic.prune.interval.ms": "5000",
}
SHORT = {"retention.ms": "15000"}

RULES: tuple[dict[str, Any], ...] = (
    {"match": {"api": "Produce"}, "do": {"error": "NOT_LEADER_OR_FOLLOWER"}},
    {"match": {"api": "Produce"}, "do": {"drop_reply": {"then": "close"}}},
    {"match": {"api": "Fetch"}, "do": {"delay": "300ms"}},
    {"match": {"api": "Fetch"}, "do": {"close": {"phase": "before"}}},
    {"match": {"api": "OffsetCommit"}, "do": {"error": "COORDINATOR_LOAD_IN_PROGRESS"}},
    {"match": {"api": "Heartbeat"}, "do": {"error": "REBALANCE_IN_PROGRESS"}},
    {"match": {"api": "Metadata"}, "do": {"delay": "500ms"}},
    {"match": {"api": "EndTxn"}, "do": {"error": "CONCURRENT_TRANSACTIONS"}},
    {"match": {"api": "ShareFetch"}, "do": {"delay": "300ms"}},
    {"match": {"api": "ShareFetch"}, "do": {"drop_reply": {"then": "close"}}},
    {"match": {"api": "ShareAcknowledge"}, "do": {"error": "NOT_LEADER_OR_FOLLOWER"}},
    {"match": {"api": "ShareGroupHeartbeat"}, "do": {"error": "COORDINATOR_LOAD_IN_PROGRESS"}},
    {"match": {"api": "StreamsGroupHeartbeat"}, "do": {"error": "FENCED_MEMBER_EPOCH"}},
    {"match": {"api": "FindCoordinator"}, "do": {"error": "COORDINATOR_NOT_AVAILABLE"}},
)


class Counts(NamedTuple):
    """What has to be back at the end."""

    tasks: int
    descriptors: int
    threads: int


class Errors(logging.Handler):
    """The errors of the log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.exc_info:
            self.found.append(logging.Formatter().format(record))


class Soak:
    """One soak."""

    def __init__(self, kafka: Cluster, seed: int) -> None:
        self.kafka = kafka
        self.dice = random.Random(seed)
        self.samples: list[Sample] = []
        self.steps: list[str] = []
        self.grown: list[str] = []  # where memory grew most in the second half
        self._undo: list[Callable[[], object]] = []

    def counts(self) -> Counts:
        tasks = self.kafka.call(lambda _: trio.lowlevel.current_statistics().tasks_living)
        return Counts(tasks, descriptors(), threading.active_count())

    def step(self) -> None:
        """Undo what was done, and do something else."""
        self.heal()
        kafka, dice = self.kafka, self.dice
        node = dice.choice(NODES)
        at = {"topic": dice.choice((TOPIC, ATOMIC)), "partition": dice.randrange(3)}
        actions: tuple[Callable[[], object], ...] = (
            lambda: self.rule(dice.choice(RULES)),
            lambda: self.rule(dice.choice(RULES)),
            lambda: kafka.act("move_leader", node=node, **at),
            lambda: self.act("stop_broker", "start_broker", node=node),
            lambda: self.act("pause_broker", "resume_broker", node=node),
            lambda: self.act("cut_network", "heal_network", nodes=[node]),
            lambda: kafka.act("shrink_isr", nodes=[node], **at),
        )
        dice.choice(actions)()

    def rule(self, rule: dict[str, Any]) -> None:
        found = self.kafka.faults.add(when={"probability": 0.2}, **rule)
        self._undo.append(found.remove)
        self.steps.append(f"rule {rule}")

    def act(self, name: str, undo: str, **arguments: Any) -> None:
        self.kafka.act(name, **arguments)
        back = {} if undo == "heal_network" else arguments
        self._undo.append(lambda: self.kafka.act(undo, **back))
        self.steps.append(f"{name} {arguments}")

    def heal(self) -> None:
        while self._undo:
            self._undo.pop()()

    def run(self, minutes: float, clients: ClientProcesses) -> None:
        begun = time.monotonic()
        next_step = next_sample = begun
        half: tracemalloc.Snapshot | None = None
        while (now := time.monotonic()) < begun + 60 * minutes:
            clients.look()
            if now >= next_step:
                try:
                    self.step()
                except Exception as error:  # an action that does not fit: no leader can be there
                    self.steps.append(f"refused: {error}")
                next_step = now + self.dice.uniform(*STEP_S)
            if now >= next_sample:
                gc.collect()
                held = tracemalloc.get_traced_memory()[0] / MB
                self.samples.append(Sample((now - begun) / 60, held, descriptors()))
                next_sample = now + SAMPLE_S
            if half is None and tracemalloc.is_tracing() and now >= begun + 30 * minutes:
                half = tracemalloc.take_snapshot()
            time.sleep(0.1)
        if half is not None:
            grown = tracemalloc.take_snapshot().compare_to(half, "lineno")
            self.grown = [str(each) for each in grown[:GROWN_MAX]]
        self.heal()

    def settle(self, baseline: Counts) -> Counts:
        """The counts once they are those of before, or after a minute."""
        deadline = time.monotonic() + END_S
        while True:
            counts = self.counts()
            if all(a <= b for a, b in zip(counts, baseline, strict=True)):
                return counts
            if time.monotonic() > deadline:
                return counts
            time.sleep(0.5)


def descriptors() -> int:
    """The open descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def problems(soak: Soak, baseline: Counts, counts: Counts, errors: list[str]) -> list[str]:
    """What went wrong during the run."""
    found = [f"error in the log: {each}" for each in errors[:5]]
    growth = judged(soak.samples)
    if growth.verdict == GROWS:
        found += [f"memory {growth}", *soak.grown]
    found += [
        f"{name}: {now}, before the clients {before}"
        for name, now, before in zip(Counts._fields, counts, baseline, strict=True)
        if now > before
    ]
    return found


def audited(directory: Path) -> list[str]:
    """The bugs that the audit finds in the journal on disk."""
    store = open_store(directory)
    with open_session(store) as session:
        return [f"audit: {each}" for each in judge(session) if each.verdict == BUG]


def soaked(
    minutes: float,
    seed: int,
    journal: Path,
    say: Callable[[str], None],
    pause_s: float = PAUSE_S,
) -> list[str]:
    """Run a soak with its journal in a directory; the reasons why it failed. Clients pause for
    `pause_s` between turns.
    """
    errors = Errors()
    logging.getLogger().addHandler(errors)
    topics = [TopicSpec(name, 3, 3, configs=SHORT) for name in (TOPIC, ATOMIC)]
    with Cluster(
        brokers=3, topics=topics, configs=CONFIGS, seed=seed, journal_dir=journal,
        journal_bytes=4 * MB,
    ) as kafka:  # fmt: skip
        stream = f"{kafka.admin_url}/v1/journal/stream"
        soak = Soak(kafka, seed)
        baseline = soak.counts()
        client = [sys.executable, "-m", "bench.soak_clients"]
        clients = ClientProcesses(
            {
                each: [*client, each, kafka.bootstrap_servers, stream, f"{pause_s}"]
                for each in LIBRARIES
            }
        )
        if minutes >= JUDGED_FROM_MIN:  # it doubles the work
            tracemalloc.start()
        with clients:
            soak.run(minutes, clients)
        tracemalloc.stop()
        counts = soak.settle(baseline)
    logging.getLogger().removeHandler(errors)
    say(f"steps: {len(soak.steps)}, of which refused: {sum(map(_is_refused, soak.steps))}")
    say(f"clients: {json.dumps({'done': clients.done, 'failed': clients.failed})}")
    say(f"clients that crashed: {', '.join(clients.crashes) or 'none'}")
    if minutes >= JUDGED_FROM_MIN:
        say(f"memory: {soak.samples[-1].megabytes:.1f} MB, {judged(soak.samples)}")
    else:
        say(f"memory: not judged, runs from {JUDGED_FROM_MIN} minutes on are")
    open_ = sorted(sample.descriptors for sample in soak.samples)
    say(f"descriptors open: {open_[0]} to {open_[-1]}, the median is {open_[len(open_) // 2]}")
    say(f"before {baseline}, after {counts}")
    found = problems(soak, baseline, counts, errors.found)
    return found + clients.problems + audited(journal)


def _is_refused(step: str) -> bool:
    return step.startswith("refused")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--pause-s", type=float, default=PAUSE_S, help="of clients, between turns")
    parser.add_argument("--journal", type=Path, help="keep the journal in this directory")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="mockbroker-soak-") as directory:
        journal = arguments.journal or Path(directory)
        found = soaked(arguments.minutes, arguments.seed, journal, print, arguments.pause_s)
    for each in found[:FOUND_MAX]:
        print(each)
    if len(found) > FOUND_MAX:
        print(f"and {len(found) - FOUND_MAX} more")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
