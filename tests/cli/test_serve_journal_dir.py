"""`serve --journal-dir` leaves the tables of its run, complete after a clean end."""

from __future__ import annotations

import signal
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from mockbroker.cli import main
from mockbroker.core.journal.entries import AppendEntry
from mockbroker.pipeline.spool.reader import SpoolReader, spool_path, spooled_runs
from mockbroker.pipeline.store import StoreError, open_store, read_manifest
from tests.support.librdkafka import TIMEOUT_S
from tests.support.serving import Served, serve_and_fail
from tests.support.waiting import wait_until


def produced(served: Served, count: int) -> None:
    producer = Producer({"bootstrap.servers": served.bootstrap_servers, "log_level": 0})
    for number in range(count):
        producer.produce("orders", str(number))
    assert producer.flush(TIMEOUT_S) == 0


def records(directory: Path) -> int:
    files = [str(file) for file in open_store(directory).files("records")]
    if not files:
        return 0
    with duckdb.connect() as connection:
        found = connection.execute("select count(*) from read_parquet(?)", [files]).fetchone()
    assert found is not None
    return int(found[0])


def spooled_records(directory: Path) -> int:
    """What the spool holds by now, on the disk."""
    [run] = spooled_runs(directory)
    try:
        entries = list(SpoolReader(spool_path(directory, run)))
    except StoreError:
        return 0  # not even its first file is there
    return sum(entry.records for entry in entries if isinstance(entry, AppendEntry))


def test_a_clean_stop_leaves_a_complete_run_and_no_spool(tmp_path: Path) -> None:
    with Served("--brokers", "1", "--topic", "orders:1", "--journal-dir", str(tmp_path)) as served:
        produced(served, 50)
        ended = served.stop()
    assert ended.code == 0, ended.stderr
    store = open_store(tmp_path)
    store.check()
    assert records(tmp_path) == 50
    assert not (tmp_path / "_spool").exists()
    assert store.runs[0].last_seq > 0


def test_a_broker_that_is_killed_leaves_a_usable_run_that_says_so(tmp_path: Path) -> None:
    with Served("--brokers", "1", "--topic", "orders:1", "--journal-dir", str(tmp_path)) as served:
        produced(served, 50)
        wait_until(lambda: spooled_records(tmp_path) == 50)
        served.stop(signal.SIGKILL)
    # The process that converts goes on with what there is.
    wait_until(lambda: any(read_manifest(file).reason for file in tmp_path.glob("_runs/*.json")))
    (run,) = open_store(tmp_path).runs
    assert not run.complete
    assert "its broker was not stopped cleanly" in run.reason
    assert records(tmp_path) == 50
    with pytest.raises(StoreError, match="not complete"):
        open_store(tmp_path).check()
    open_store(tmp_path).check(incomplete=True)
    # What is left of the spool gives the same again.
    again = CliRunner().invoke(main, ["journal", "export", str(tmp_path), "--from", "spool"])
    assert again.exit_code == 1
    assert f"run {run.run}" in again.output
    assert records(tmp_path) == 50


def test_a_place_that_cannot_be_written_ends_the_server_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = serve_and_fail("--journal-dir", tmp_path / "file" / "dir")
    assert ended.code == 2
    assert ended.stderr.startswith("mockbroker: --journal-dir: cannot write into")
    assert len(ended.stderr.splitlines()) == 1
