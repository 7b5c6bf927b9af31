"""Every cluster that a test ran is audited when it stops: `pytest -p tests.support.audited`.

Whatever real clients did to it, the audit must find nothing but what the test brought about. This
holds two things against each other: a broker that lost a record would be found out, and so would an
audit, or a journal, that raises a false alarm. A finding fails the test that stops the cluster.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from mockbroker import Cluster
from mockbroker.pipeline.findings import REPORT, UNATTRIBUTED, WITHOUT_ID

# What tests bring about on purpose, by their module.
WANTED: Mapping[str, set[str]] = {
    # Unclean elections and truncations, and offsets that are given out again after them.
    "tests/clients/day/test_day.py": {"inconsistent_offset"},
    "tests/clients/replication/test_epochs.py": {"inconsistent_offset"},
    "tests/clients/replication/test_leaders.py": {"inconsistent_offset", "lost_write"},
    "tests/clients/replication/test_outages.py": {"inconsistent_offset"},
    # Rules that hide records of a Fetch, or bring them twice.
    "tests/clients/faults/test_record_faults.py": {"skip", "non_monotonic_poll"},
}

_stop = Cluster.stop


def _audited(self: Cluster) -> None:
    thread = self._thread
    try:
        if thread is not None and not thread.has_ended and self.config.journal_bytes:
            _judge(self)
    finally:
        _stop(self)


def _judge(cluster: Cluster) -> None:
    module = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
    wanted = WANTED.get(module, set())
    found = [
        finding
        for finding in cluster.audit().findings
        if finding.verdict != REPORT
        and finding.anomaly not in wanted
        and not (finding.subject or "").startswith((WITHOUT_ID, UNATTRIBUTED))
    ]
    assert not found, "\n".join(str(finding) for finding in found[:5])


Cluster.stop = _audited  # type: ignore[method-assign]
