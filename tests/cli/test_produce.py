from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mockbroker import Cluster
from mockbroker.cli.produce import CODECS
from mockbroker.client import Client
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.records import BatchHeader
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def topic(request: pytest.FixtureRequest) -> None:
    if "on_cluster" in request.fixturenames:
        request.getfixturevalue("mock_kafka").topic("t").create(3)


def values(mock_kafka: Cluster) -> list[bytes | None]:
    return [record.value for record in mock_kafka.records("t")]


def test_each_line_is_a_record(on_cluster: Run, mock_kafka: Cluster):
    result = on_cluster("produce", "t", "--partition", 1, stdin="one\n\ntwo\r\nthree")
    assert values(mock_kafka) == [b"one", b"", b"two", b"three"]
    assert result.stderr == "4 records sent to t\n"
    assert result.stdout == ""


def test_bytes_are_sent_as_they_are(on_cluster: Run, mock_kafka: Cluster):
    on_cluster("produce", "t", stdin=b"\xff\x00\tx\n")
    assert values(mock_kafka) == [b"\xff\x00\tx"]


def test_nothing_on_stdin_sends_nothing(on_cluster: Run, mock_kafka: Cluster):
    assert on_cluster("produce", "t", stdin="").stderr == "0 records sent to t\n"
    assert values(mock_kafka) == []


def test_keys_are_split_off_or_given(on_cluster: Run, mock_kafka: Cluster):
    on_cluster("produce", "t", "--key-separator", "::", stdin="k::v::w\n::x\n")
    on_cluster("produce", "t", "--key", "all", stdin="y\n")
    found = {(record.key, record.value) for record in mock_kafka.records("t")}
    assert found == {(b"k", b"v::w"), (b"", b"x"), (b"all", b"y")}


def test_a_line_without_its_key_is_wrong_usage(on_cluster: Run, mock_kafka: Cluster):
    result = on_cluster("produce", "t", "--key-separator", ":", stdin="no key\n", status=2)
    assert result.stderr == "mockbroker produce: line 1: no key separator ':' in 'no key'\n"
    assert values(mock_kafka) == []


@pytest.mark.parametrize("bytes_at_once", [3, 4, 100])
def test_the_lines_before_one_that_is_wrong_are_sent(
    on_cluster: Run, mock_kafka: Cluster, monkeypatch: pytest.MonkeyPatch, bytes_at_once: int
):
    monkeypatch.setattr("mockbroker.cli.produce.CHUNK_BYTES", bytes_at_once)
    command = ("produce", "t", "--key-separator", ":", "--partition", 0)
    result = on_cluster(*command, stdin="a:1\nb:2\nc\nd:4\n", status=2)
    assert result.stderr == "mockbroker produce: line 3: no key separator ':' in 'c'\n"
    assert values(mock_kafka) == [b"1", b"2"]


def test_arguments_are_bytes_as_lines_are(on_cluster: Run, mock_kafka: Cluster):
    """Python keeps what is not UTF-8 as surrogates."""
    header = "h\udcfc=\udcff"
    on_cluster("produce", "t", "--key", "\udcfe", "--header", header, stdin="x\n")
    on_cluster("produce", "t", "--key-separator", "\udcfd", stdin=b"k\xfdy\n")
    found = {(record.key, record.value, record.headers) for record in mock_kafka.records("t")}
    assert found == {(b"\xfe", b"x", (("h\udcfc", b"\xff"),)), (b"k", b"y", ())}


def test_a_header_may_repeat(on_cluster: Run, mock_kafka: Cluster):
    on_cluster("produce", "t", "--header", "h=1", "--header", "h=2", stdin="x\n")
    [record] = mock_kafka.records("t")
    assert list(record.headers) == [("h", b"1"), ("h", b"2")]


@pytest.mark.covers("S317")
def test_null_values_and_headers_can_be_sent(on_cluster: Run, mock_kafka: Cluster):
    on_cluster(
        "produce", "t", "--null-value", "NULL", "--header", "a=1", "--header", "b=", stdin="NULL\n"
    )
    [record] = mock_kafka.records("t")
    assert record.value is None
    assert list(record.headers) == [("a", b"1"), ("b", b"")]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_can_be_asked_for(on_cluster: Run, mock_kafka: Cluster, codec: str):
    on_cluster("produce", "t", "--partition", 0, "--compression", codec, stdin="x" * 500 + "\n")
    assert values(mock_kafka) == [b"x" * 500]
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])])
    with Client(mock_kafka.bootstrap_servers) as client:
        response = client.leader("t", 0).send(request)
    stored = response.responses[0].partitions[0].records
    assert BatchHeader(stored).codec == CODECS.index(codec)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acknowledgements_can_be_chosen(on_cluster: Run, mock_kafka: Cluster, acks: str):
    on_cluster("produce", "t", "--acks", acks, stdin="x\n")
    mock_kafka.expect_records("t", 1)


def test_json_says_where_the_records_went(on_cluster: Run):
    result = on_cluster("produce", "t", "--partition", 2, "--json", stdin="a\nb\n")
    sent = json.loads(result.stdout)
    [batch] = sent["batches"]
    assert (sent["topic"], sent["records"]) == ("t", 2)
    assert (batch["partition"], batch["base_offset"], batch["count"]) == (2, 0, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--acks", "2"],
        ["--compression", "rar"],
        ["--partition", "-1"],
        ["--header", "novalue"],
        ["--key-separator", ""],
        ["--key", "k", "--key-separator", ":"],
    ],
)
def test_values_that_make_no_sense_are_wrong_usage(run: Run, arguments: list[str]):
    result = run("produce", "t", *arguments, stdin="")
    assert result.exit_code == 2
    assert result.stderr.startswith("mockbroker produce: ")
    assert result.stderr.count("\n") == 1


def test_a_partition_that_does_not_exist_is_refused(on_cluster: Run):
    result = on_cluster("produce", "t", "--partition", 3, stdin="x\n", status=1)
    assert result.stderr == "mockbroker: topic t has no partition 3, only 0-2\n"


def test_lines_are_sent_when_they_come_not_when_the_input_ends(
    on_cluster: Run, mock_kafka: Cluster
):
    command = [sys.executable, "-c", "import mockbroker.cli; mockbroker.cli.main()"]
    process = subprocess.Popen(
        [*command, "produce", "t"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "MOCKBROKER_BOOTSTRAP": mock_kafka.bootstrap_servers},
    )
    assert process.stdin is not None
    process.stdin.write(b"early\n")
    process.stdin.flush()
    mock_kafka.expect_records("t", 1)
    _, errors = process.communicate(b"late\n", timeout=60)
    assert errors == b"2 records sent to t\n"
    with Client(mock_kafka.bootstrap_servers) as client:
        assert len(list(client.consume("t"))) == 2
