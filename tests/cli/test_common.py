from __future__ import annotations

import pytest

from mockbroker import Cluster
from tests.cli.conftest import Run, table
from tests.client.scripted import free_port


def test_a_refused_connection_is_one_line_and_exit_code_1(run: Run):
    port = free_port()
    result = run("topics", "list", "--bootstrap-server", f"127.0.0.1:{port}")
    assert result.exit_code == 1
    assert result.stderr == f"mockbroker: cannot connect to 127.0.0.1:{port}: connection refused\n"
    assert result.stdout == ""


@pytest.mark.parametrize("address", ["host:port", "a:1,", "a:70000"])
def test_an_address_that_is_none_is_wrong_usage(run: Run, address: str):
    result = run("topics", "list", "--bootstrap-server", address)
    assert result.exit_code == 2
    assert "Invalid value for --bootstrap-server" in result.stderr
    assert "is not HOST:PORT" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_cluster_is_taken_from_the_flag_or_the_environment(
    run: Run, mock_kafka: Cluster, monkeypatch: pytest.MonkeyPatch
):
    mock_kafka.topic("here").create()
    flagged = run("topics", "list", "-b", mock_kafka.bootstrap_servers)
    assert table(flagged)[1][0] == "here"
    monkeypatch.setenv("MOCKBROKER_BOOTSTRAP", mock_kafka.bootstrap_servers)
    assert table(run("topics", "list")) == table(flagged)


def test_a_refusal_of_the_cluster_is_one_line_and_exit_code_1(on_cluster: Run):
    result = on_cluster("topics", "delete", "nosuch", status=1)
    assert result.stderr.startswith("mockbroker: delete topic nosuch: ")
    assert result.stderr.endswith("(UNKNOWN_TOPIC_OR_PARTITION)\n")
    assert result.stderr.count("\n") == 1


def test_a_timeout_must_be_positive(run: Run):
    result = run("topics", "list", "--request-timeout", 0)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
