"""`simulate --audit-every`: the audit of a simulation over connections.

The laws judge a run by the state of the cluster and the results of the clients, the audit by the
journal alone.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.pipeline.findings import BUG
from mockbroker.pipeline.store import StoreError
from mockbroker.simulation.laws import Violation
from mockbroker.simulation.plan import RESTART, RESTORE, Plan

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

AUDIT = "the audit finds no bug"
RUN = "simulation"


class Audited(NamedTuple):
    """The result of an audit; `judged` is False if the journal is not complete."""

    violations: list[Violation]
    judged: bool


def audited(plan: Plan) -> Audited:
    """Run a plan over streams, and audit its journal. Raises StoreError without
    the extra `pipeline`.
    """
    from mockbroker.simulation.stream_run import run_over_streams

    if any(step.do in (RESTART, RESTORE) for step in plan.steps):
        return Audited([], judged=False)  # the journal begins again in the middle
    world, _ = run_over_streams(plan)
    return _judged(world.cluster, len(plan.steps), world.clock.now_ms - world.laws.start_ms)


def _judged(cluster: Cluster, step: int, at_ms: int) -> Audited:
    from mockbroker.pipeline.convert.run import convert_run
    from mockbroker.pipeline.duck import judge, open_session
    from mockbroker.pipeline.report.build import build_report
    from mockbroker.pipeline.spool.run_entries import finished_run
    from mockbroker.pipeline.store import open_store

    journal = cluster.runtime.journal
    if journal is None:
        raise StoreError("the simulation has no journal")
    now_ns = cluster.runtime.now_ms() * 1_000_000
    entries = finished_run(cluster, journal, RUN, now_ns)
    with tempfile.TemporaryDirectory(prefix="mockbroker-simulation-") as directory:
        convert_run(entries, Path(directory), RUN)
        store = open_store(directory)
        with open_session(store) as session:
            report = build_report(store, session, judge(session), engine="DuckDB")
    if not report.whole:
        return Audited([], judged=False)
    bugs = [finding for finding in report.findings if finding.verdict == BUG]
    return Audited(
        [
            Violation(
                AUDIT,
                f"{bug.anomaly} in {bug.topic}-{bug.partition} at {bug.offset}, of {bug.subject}"
                f"{'' if bug.details is None else f': {bug.details}'}",
                step,
                at_ms,
            )
            for bug in bugs
        ],
        judged=True,
    )
