"""The index of the API, and its answers while the cluster does not come round."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mockbroker import Cluster
from mockbroker.admin.v1 import service
from tests.support.http import HttpClient


def test_programs_get_the_endpoints_as_json(admin: HttpClient) -> None:
    index = admin.get("/")
    assert (index["name"], index["openapi"]) == ("mockbroker", "/openapi.json")
    topics = [(each["method"], each["path"]) for each in index["endpoints"]["topics"]]
    assert ("POST", "/v1/topics/{topic}/records") in topics
    service = {each["path"] for each in index["endpoints"]["service"]}
    described = {"/v1/about", "/v1/state-machines"}
    assert service == {"/", "/openapi.json", "/healthz", "/metrics", *described}


def test_a_call_waits_for_a_busy_cluster_and_a_probe_does_not(
    kafka: Cluster, admin: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine: a call that was refused might be carried out all the same."""
    monkeypatch.setattr(service, "PROBE_TIMEOUT_S", 0.05)
    busy, gate = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        busy.set()
        gate.wait()

    with ThreadPoolExecutor() as threads:
        try:
            threads.submit(kafka.call, hold)
            busy.wait()
            called = threads.submit(admin.get, "/v1/cluster")
            assert admin.request("GET", "/healthz").status == 503
        finally:
            gate.set()
        assert called.result()["brokers"] == 3
