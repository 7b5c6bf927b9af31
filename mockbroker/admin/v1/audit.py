"""The audit of all records so far, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import TypeVar

import msgspec
import trio

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.admin.v1.journal_entries import exported
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.pipeline.findings import ANOMALIES
from mockbroker.pipeline.spool.format import encode

# Real time.
AUDIT_TIMEOUT_S = 300.0

endpoints = ApiEndpoints()


class EvidenceView(msgspec.Struct, frozen=True):
    """An entry of the journal near a finding; `evidence` if it belongs to the proof."""

    seq: int
    virtual_ms: int | None
    what: str
    text: str
    evidence: bool


class FindingView(msgspec.Struct, frozen=True):
    """One case of an anomaly; `meaning` is a sentence. The verdict is "bug", "report" or
    "undecided". `first_seq` and `last_seq` bound the proof in the journal.

    `subject` is a group, producer id, transaction, `connection:<n>` or process, `rule` the rule or
    action that caused it. `facts` are pairs of a name and a value. `left_out` counts the entries
    near it that are not in `evidence`.
    """

    anomaly: str
    meaning: str
    verdict: str
    topic: str | None
    partition: int | None
    offset: int | None
    subject: str | None
    first_seq: int | None
    last_seq: int | None
    rule: str | None
    details: str | None
    facts: list[tuple[str, str]]
    evidence: list[EvidenceView]
    left_out: int


class RuleOutcomeView(msgspec.Struct, frozen=True):
    """The outcome of one rule of the audit: "bugs", "reports", "clean", "undecided" or "not
    applicable". `why` is the reason for no verdict.
    """

    anomaly: str
    meaning: str
    outcome: str
    bugs: int
    reports: int
    undecided: int
    why: str


class AuditView(msgspec.Struct, frozen=True):
    """The audit of the journal up to entry `seq`. It is `whole` if no entry is missing;
    `not_checked` has sentences about what could not be checked. `took_ms` is real time.
    """

    seq: int
    engine: str
    whole: bool
    not_checked: list[str]
    findings: list[FindingView]
    outcomes: list[RuleOutcomeView]
    took_ms: int


class _Found(msgspec.Struct):
    engine: str
    whole: bool
    not_checked: list[str]
    findings: list[dict[str, object]]
    outcomes: list[dict[str, object]]


def _one_at_a_time(_: AdminBackend) -> trio.CapacityLimiter:
    return trio.CapacityLimiter(1)


@endpoints.post("/v1/audit", "Audit every record so far", problems=(408, 409))
async def audit(backend: AdminBackend, _: EndpointCall) -> AuditView:
    async with backend.kept(_one_at_a_time):
        started_ns = time.perf_counter_ns()
        seq = backend.journal.last_seq
        entries = await exported(backend)
        data = await backend.compute(lambda: b"".join(map(encode, entries)))
        found = await _report(backend, data)
        took_ms = (time.perf_counter_ns() - started_ns) // 1_000_000
        return _view(found, seq, took_ms)


async def _report(backend: AdminBackend, data: bytes) -> _Found:
    """The report of the process. Raises ProblemError without one."""
    command = [sys.executable, "-m", "mockbroker.pipeline.exported"]
    with (
        tempfile.TemporaryDirectory(prefix="mockbroker-audit-") as directory,
        backend.limit(AUDIT_TIMEOUT_S),
    ):
        done: subprocess.CompletedProcess[bytes] = await trio.run_process(
            command,
            stdin=data,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env={**os.environ, "TMPDIR": directory},
            deliver_cancel=_kill,
        )
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise ProblemError(409, "no audit", lines[-1] if lines else "the audit failed")
        return msgspec.json.decode(done.stdout, type=_Found)
    raise ProblemError(408, "timeout", f"the audit takes more than {AUDIT_TIMEOUT_S:.0f} s")


async def _kill(process: trio.Process) -> None:
    """End the process at once: all that it leaves is in its temporary directory."""
    process.kill()


def _view(found: _Found, seq: int, took_ms: int) -> AuditView:
    return AuditView(
        seq=seq,
        engine=found.engine,
        whole=found.whole,
        not_checked=found.not_checked,
        findings=[_with_meaning(each, FindingView) for each in found.findings],
        outcomes=[_with_meaning(each, RuleOutcomeView) for each in found.outcomes],
        took_ms=took_ms,
    )


T = TypeVar("T", bound=msgspec.Struct)


def _with_meaning(data: dict[str, object], kind: type[T]) -> T:
    """The view, with the sentence that says what its anomaly is."""
    return msgspec.convert({**data, "meaning": ANOMALIES[str(data["anomaly"])]}, kind)
