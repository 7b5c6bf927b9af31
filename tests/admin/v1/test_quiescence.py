"""Waiting until the cluster is at rest."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.admin.v1 import quiescence as endpoint
from mockbroker.core import quiescence


def test_a_cluster_that_was_at_rest_for_a_moment_has_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The endpoint looks from another thread, when a busy cluster has gone on."""
    answers = iter([[]])
    monkeypatch.setattr(quiescence, "unsettled", lambda _: next(answers, ["it goes on"]))
    monkeypatch.setattr(endpoint, "unsettled", lambda _: ["it goes on"])
    with Cluster(brokers=1) as kafka:
        kafka.settle(timeout_s=1)
