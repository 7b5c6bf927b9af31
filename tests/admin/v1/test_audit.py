"""The audit over HTTP."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from mockbroker import Cluster
from mockbroker.admin.v1 import audit
from mockbroker.client import Client
from tests.support.http import HttpClient
from tests.support.waiting import wait_until


def test_a_lost_write_is_found_with_its_evidence() -> None:
    with (
        Cluster(brokers=3) as kafka,
        closing(Client(kafka.bootstrap_servers)) as client,
    ):
        kafka.topic("orders").create(replication_factor=3)
        kafka.act("move_leader", topic="orders", partition=0, node=1)
        kafka.act("lag_follower", topic="orders", node=2)
        client.produce("orders", ["coffee"], acks=1)
        kafka.act("elect_unclean", topic="orders", partition=0, node=2)
        admin = HttpClient(kafka.admin_url)
        found = admin.post("/v1/audit", {})
        lost = [each for each in found["findings"] if each["anomaly"] == "lost_write"]
        assert [(each["verdict"], each["topic"]) for each in lost] == [("report", "orders")]
        assert lost[0]["meaning"] == "a record was acknowledged and is not in the log"
        proof = [entry["seq"] for entry in lost[0]["evidence"] if entry["evidence"]]
        assert proof
        for seq in proof:
            assert admin.get(f"/v1/journal/entries/{seq}")["seq"] == seq
        assert found["whole"]
        assert found["seq"] <= admin.get("/v1/journal/last")["last_seq"]
        outcomes = {each["anomaly"]: each["outcome"] for each in found["outcomes"]}
        assert outcomes["lost_write"] == "reports"


def test_without_what_it_needs_it_says_so(
    admin: HttpClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'the audit needs duckdb' >&2\nexit 1\n", encoding="utf-8")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    answer = admin.request("POST", "/v1/audit")
    assert (answer.status, answer.body["detail"]) == (409, "the audit needs duckdb")


def test_an_audit_that_is_not_finished_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster stops while the audit has files."""
    python, temporary = tmp_path / "python", tmp_path / "temporary"
    python.write_text('#!/bin/sh\n: > "$TMPDIR/spilled"\nexec sleep 600\n', encoding="utf-8")
    python.chmod(0o700)
    temporary.mkdir()
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with Cluster(brokers=1) as kafka, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(HttpClient(kafka.admin_url).request, "POST", "/v1/audit")
        wait_until(lambda: list(temporary.rglob("spilled")))
        kafka.stop()
        assert asked.exception() is not None
    assert list(temporary.iterdir()) == []


def test_an_audit_that_takes_too_long_is_given_up(
    admin: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "AUDIT_TIMEOUT_S", 0.001)
    assert admin.request("POST", "/v1/audit").status == 408
