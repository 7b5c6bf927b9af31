"""The answers of the admin server over HTTP."""

from __future__ import annotations

import json
import threading

import pytest

from mockbroker.admin import ClusterMetrics
from mockbroker.admin.v1 import service
from tests.admin.conftest import ClusterRun, StartAdmin, cluster_run, get


def test_healthz_says_that_the_cluster_answers(cluster: ClusterRun, start: StartAdmin):
    cluster.current = ClusterMetrics(brokers=5, uptime_ms=1234)
    answer = get(start(cluster), "/healthz")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.body) == {"status": "ok", "brokers": 5, "uptime_ms": 1234}


def test_healthz_fails_once_the_cluster_has_stopped(start: StartAdmin):
    with cluster_run() as run:
        admin = start(run)
    answer = get(admin, "/healthz")
    assert answer.status == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert json.loads(answer.body)["detail"] == "the cluster has stopped"


def test_healthz_fails_while_the_cluster_is_stuck(
    cluster: ClusterRun, start: StartAdmin, monkeypatch: pytest.MonkeyPatch
):
    admin = start(cluster)
    gate = threading.Event()
    cluster.token.run_sync_soon(gate.wait)
    try:
        with monkeypatch.context() as impatient:
            impatient.setattr(service, "PROBE_TIMEOUT_S", 0.05)
            assert get(admin, "/healthz").status == 503
    finally:
        gate.set()
    assert get(admin, "/healthz").status == 200


def test_metrics_are_prometheus_text(cluster: ClusterRun, start: StartAdmin):
    answer = get(start(cluster), "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b"mockbroker_brokers 3\n" in answer.body


def test_head_asks_without_a_body(cluster: ClusterRun, start: StartAdmin):
    answer = get(start(cluster), "/healthz", method="HEAD")
    assert (answer.status, answer.body) == (200, b"")


def test_an_unknown_path_is_named(cluster: ClusterRun, start: StartAdmin):
    answer = get(start(cluster), "/nope")
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert json.loads(answer.body) == {
        "title": "not found",
        "status": 404,
        "detail": "GET /nope: Not Found",
    }


def test_a_wrong_method_says_which_are_right(cluster: ClusterRun, start: StartAdmin):
    answer = get(start(cluster), "/metrics", method="POST")
    assert answer.status == 405
    assert "GET" in answer.headers["allow"]
    assert json.loads(answer.body)["detail"] == "POST /metrics: Method Not Allowed"
