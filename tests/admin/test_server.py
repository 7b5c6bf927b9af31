"""The admin thread: its start and its stop, which nothing of the cluster delays."""

from __future__ import annotations

import socket
import sys
import threading
from typing import Any

import pytest
import trio.testing

from mockbroker.admin import AdminError, ClusterMetrics, server, start_admin
from tests.admin.conftest import ClusterRun, StartAdmin, cluster_run, get


def test_it_answers_on_the_free_port_that_it_names(cluster: ClusterRun, start: StartAdmin):
    admin = start(cluster, "127.0.0.1", 0)
    assert admin.port != 0
    assert admin.url == f"http://127.0.0.1:{admin.port}"
    assert get(admin, "/healthz").status == 200


def test_the_cluster_is_read_in_its_own_thread(cluster: ClusterRun, start: StartAdmin):
    get(start(cluster), "/metrics")
    assert cluster.askers == [cluster.thread]


def test_a_taken_port_is_named(cluster: ClusterRun, start: StartAdmin):
    taken = start(cluster).port
    with pytest.raises(AdminError, match=f"127.0.0.1:{taken}: the port is in use"):
        start_admin(cluster, "127.0.0.1", taken)


def test_an_unknown_host_is_named(cluster: ClusterRun):
    with pytest.raises(AdminError, match=r"no\.such\.host\.invalid:0"):
        start_admin(cluster, "no.such.host.invalid", 0)


def test_an_app_that_cannot_be_made_is_reported_by_start(cluster: ClusterRun):
    def broken(view: object, secret) -> None:
        raise RuntimeError("no app today")

    with pytest.raises(AdminError, match="no app today"):
        start_admin(cluster, app_factory=broken)


def test_stop_frees_the_port_and_ends_the_thread(cluster: ClusterRun):
    admin = start_admin(cluster)
    assert admin.stop()
    assert admin.stop()
    assert "mockbroker-admin" not in [thread.name for thread in threading.enumerate()]
    with socket.socket() as probe:
        assert probe.connect_ex((admin.host, admin.port)) != 0


def test_stop_does_not_wait_for_an_idle_connection(cluster: ClusterRun):
    admin = start_admin(cluster)
    with socket.create_connection((admin.host, admin.port)) as idle:
        assert admin.stop(timeout_s=3)
        assert idle.recv(1) == b""


def test_a_frozen_cluster_clock_stops_no_answer():
    with cluster_run(clock=trio.testing.MockClock()) as frozen:
        admin = start_admin(frozen)
        try:
            assert get(admin, "/healthz").status == 200
        finally:
            admin.stop()


def test_counters_are_fresh_at_each_scrape(cluster: ClusterRun, start: StartAdmin):
    admin = start(cluster)
    cluster.current = ClusterMetrics(partitions=1)
    first = get(admin, "/metrics").body
    cluster.current = ClusterMetrics(partitions=2)
    second = get(admin, "/metrics").body
    assert b"mockbroker_partitions 1\n" in first
    assert b"mockbroker_partitions 2\n" in second


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_USER_TIMEOUT is Linux's")
def test_a_reader_that_stalls_does_not_keep_the_thread_alive(
    cluster: ClusterRun, monkeypatch: pytest.MonkeyPatch
):
    """Hypercorn shields its sends from cancellation; the kernel has to end this one."""
    monkeypatch.setattr(server, "STALLED_READER_TIMEOUT_MS", 500)

    async def endless(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})

    admin = start_admin(cluster, app_factory=lambda view, secret: endless)
    with socket.socket() as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.connect((admin.host, admin.port))
        stalled.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        assert stalled.recv(5) == b"HTTP/"
        assert admin.stop(timeout_s=10)
