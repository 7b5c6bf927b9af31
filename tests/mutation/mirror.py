"""Which tests judge a module."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

SIMULATED = "tests/simulation/test_seeds.py::test_every_law_holds[75]"

# Beside the package's own folder: what drives it through requests, and whole clusters.
NEIGHBOURS: dict[str, tuple[str, ...]] = {
    "log": ("tests/core/log", "tests/handlers/test_produce.py", "tests/handlers/test_fetch.py",
            "tests/handlers/test_list_offsets.py", "tests/core/snapshot",
            "tests/core/test_lost_controller.py", SIMULATED),
    "replication": ("tests/core/replication", "tests/core/brokers", "tests/core/purgatory",
                    "tests/core/faults/test_hops.py", "tests/handlers/test_fetch.py",
                    "tests/simulation/exhaustive/test_replicas.py", SIMULATED),
    "groups": ("tests/core/groups", "tests/core/coordinator",
               "tests/handlers/test_join_group.py", "tests/handlers/test_sync_group.py",
               "tests/handlers/test_heartbeat.py", "tests/handlers/test_leave_group.py",
               "tests/handlers/test_offset_commit.py", "tests/handlers/test_offset_fetch.py",
               "tests/handlers/test_offset_delete.py",
               "tests/handlers/test_consumer_group_heartbeat.py",
               "tests/handlers/test_consumer_group_describe.py",
               "tests/simulation/exhaustive/test_classic_group.py",
               "tests/simulation/exhaustive/test_consumer_group.py", SIMULATED),
    "share": ("tests/core/share", "tests/core/groups/share", "tests/core/coordinator",
              "tests/handlers/test_share_fetch.py", "tests/handlers/test_share_acknowledge.py",
              "tests/handlers/test_share_group_heartbeat.py",
              "tests/handlers/test_share_group_describe.py",
              "tests/handlers/test_alter_share_group_offsets.py",
              "tests/handlers/test_delete_share_group_offsets.py",
              "tests/handlers/test_describe_share_group_offsets.py",
              "tests/simulation/exhaustive/test_share_partition.py"),
    "streams": ("tests/core/groups/streams", "tests/core/groups/modern",
                "tests/handlers/test_streams_group_heartbeat.py",
                "tests/handlers/test_streams_group_describe.py",
                "tests/handlers/test_streams_internal_topics.py",
                "tests/handlers/test_streams_requests.py", "tests/simulation/test_streams.py"),
    "transactions": ("tests/core/txn", "tests/core/coordinator",
                     "tests/handlers/test_end_txn.py", "tests/handlers/test_init_producer_id.py",
                     "tests/handlers/test_add_partitions_to_txn.py",
                     "tests/handlers/test_txn_offset_commit.py",
                     "tests/handlers/test_write_txn_markers.py",
                     "tests/simulation/exhaustive/test_transactional_id.py", SIMULATED),
    "audit": ("tests/pipeline/test_agreement_duck.py", "tests/pipeline/convert",
              "tests/pipeline/duck", "tests/pipeline/test_source.py",
              "tests/pipeline/test_kafka_audit.py"),
}  # fmt: skip

AGREEMENT = "tests/pipeline/test_agreement_duck.py"


def own_tests(root: Path, path: str) -> tuple[str, ...]:
    """The test modules that mirror a module by their path; a rule in SQL has the oracle.

    `test_replica_log_copies.py` mirrors `replica_log.py` as well as `test_replica_log.py`.
    """
    if path.endswith(".sql"):
        return (AGREEMENT,)
    source = Path(path)
    folder = root / "tests" / source.parent.relative_to("mockbroker")
    stem = source.stem
    taken = {other.stem for other in (root / source.parent).glob(f"{stem}_*.py")}
    found = []
    for each in sorted(folder.glob(f"test_{stem}*.py")):
        rest = each.stem.removeprefix("test_")
        is_anothers = any(rest == other or rest.startswith(f"{other}_") for other in taken)
        if (rest == stem or rest.startswith(f"{stem}_")) and not is_anothers:
            found.append(each.relative_to(root).as_posix())
    return tuple(found)


def further_tests(root: Path, package: str) -> tuple[str, ...]:
    """What judges a mutant of a package that its own tests let live."""
    return tuple(each for place in NEIGHBOURS[package] for each in _modules(root, place))


def _modules(root: Path, place: str) -> list[str]:
    if place.endswith(("]", ".py")):
        return [place]
    return sorted(each.relative_to(root).as_posix() for each in (root / place).rglob("test_*.py"))


def quickest_first(tests: Iterable[str], root: Path) -> list[str]:
    """In the order of how long they take, so that the first failure comes soon."""
    durations: dict[str, float] = json.loads((root / "tests/durations.json").read_text("utf-8"))
    return sorted(tests, key=lambda test: durations.get(test.partition("::")[0], 0.0))
