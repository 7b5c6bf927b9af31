from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from mockbroker import Cluster
from mockbroker.cli.consume import _time_text
from mockbroker.client import Client
from mockbroker_protocol.records import Record
from tests.cli.conftest import Run, lines_of_json

FIRST = Record(timestamp=1_700_000_000_123, key=b"k", value=b"one", headers=(("h", b"x"),))


@pytest.fixture(autouse=True)
def records(request: pytest.FixtureRequest) -> None:
    """Topic t: three records in partition 0, one in partition 1."""
    if "on_cluster" not in request.fixturenames:
        return
    mock_kafka = request.getfixturevalue("mock_kafka")
    mock_kafka.topic("t").create(2)
    with Client(mock_kafka.bootstrap_servers) as client:
        client.produce("t", [FIRST, b"two", b"three"], partition=0)
        client.produce("t", [b"other"], partition=1)


def test_values_are_printed_one_a_line_up_to_the_end(on_cluster: Run):
    lines = on_cluster("consume", "t", "--from-beginning").stdout.splitlines()
    assert sorted(lines) == ["one", "other", "three", "two"]


def test_what_else_a_record_has_is_printed_when_asked_for(on_cluster: Run):
    flags = ("--timestamps", "--offsets", "--headers", "--keys")
    result = on_cluster("consume", "t", "--from-beginning", "--partition", 0, *flags)
    assert result.stdout.splitlines()[0] == "2023-11-14T22:13:20.123Z\t0:0\th=x\tk\tone"
    piped = on_cluster("consume", "t", "--offset", 0, "--partition", 0, "--keys", "--separator=|")
    assert piped.stdout.splitlines() == ["k|one", "|two", "|three"]


def test_json_has_everything(on_cluster: Run):
    found = lines_of_json(on_cluster("consume", "t", "--from-beginning", "--json"))
    [first] = [record for record in found if record["value"] == "one"]
    assert first == {
        "topic": "t",
        "partition": 0,
        "offset": 0,
        "timestamp": 1_700_000_000_123,
        "key": "k",
        "value": "one",
        "headers": [["h", "x"]],
    }


def test_nulls_and_bytes_that_are_no_text_are_told_apart_in_json(
    on_cluster: Run, mock_kafka: Cluster
):
    with Client(mock_kafka.bootstrap_servers) as client:
        client.produce("u", [Record(key=b"\xff", value=None), b""])
    null, empty = lines_of_json(on_cluster("consume", "u", "--from-beginning", "--json"))
    values = {(str(record["key"]), record["value"]) for record in (null, empty)}
    assert values == {("{'base64': '/w=='}", None), ("None", "")}


@pytest.mark.covers("S129")
@pytest.mark.parametrize(
    ("offset", "lines"),
    [
        ("0", ["one", "two", "three"]),
        ("2", ["three"]),
        ("-1", ["three"]),
        ("-99", ["one", "two", "three"]),
        ("earliest", ["one", "two", "three"]),
    ],
)
def test_reading_starts_at_an_offset(on_cluster: Run, offset: str, lines: list[str]):
    result = on_cluster("consume", "t", "--partition", 0, f"--offset={offset}")
    assert result.stdout.splitlines() == lines


def test_reading_stops_after_so_many_records(on_cluster: Run):
    result = on_cluster("consume", "t", "--from-beginning", "--partition", 0, "-n", 2)
    assert result.stdout.splitlines() == ["one", "two"]


def test_a_timeout_ends_the_waiting_for_more(on_cluster: Run):
    result = on_cluster("consume", "t", "--from-beginning", "--timeout", 0.2)
    assert len(result.stdout.splitlines()) == 4
    assert on_cluster("consume", "t", "--timeout", 0.1).stdout == ""


def test_following_prints_what_comes_until_interrupted(on_cluster: Run, mock_kafka: Cluster):
    # A shell's background jobs ignore interrupts, and what such a job starts would, too.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "import mockbroker.cli; mockbroker.cli.main()"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(
        [*command, "consume", "t", "--offset=-1", "--partition", "1", "--follow"],
        stdout=subprocess.PIPE,
        env={**os.environ, "MOCKBROKER_BOOTSTRAP": mock_kafka.bootstrap_servers},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"other\n"
    with Client(mock_kafka.bootstrap_servers) as client:
        client.produce("t", [b"new"], partition=1)
    assert process.stdout.readline() == b"new\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--offset", "soon"],
        ["--max-records", "0"],
        ["--timeout", "0"],
        ["--partition", "-1"],
        ["--from-beginning", "--offset", "3"],
    ],
)
def test_values_that_make_no_sense_are_wrong_usage(run: Run, arguments: list[str]):
    result = run("consume", "t", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("mockbroker consume: ")
    assert result.stderr.count("\n") == 1


def test_a_topic_or_partition_that_does_not_exist_is_said_so(on_cluster: Run):
    missing = on_cluster("consume", "nosuch", "--from-beginning", status=1)
    assert missing.stderr == "mockbroker: there is no topic nosuch\n"
    partition = on_cluster("consume", "t", "--partition", 5, "--from-beginning", status=1)
    assert partition.stderr == "mockbroker: topic t has no partition 5, only 0-1\n"


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (2**62, str(2**62)),
    ],
)
def test_times_are_in_utc_and_impossible_ones_are_numbers(timestamp: int, text: str):
    assert _time_text(timestamp) == text


def test_the_keys_of_json_are_those_of_the_documentation(on_cluster: Run):
    line = on_cluster("consume", "t", "--from-beginning", "--json", "-n", 1).stdout
    assert list(json.loads(line)) == [
        "topic",
        "partition",
        "offset",
        "timestamp",
        "key",
        "value",
        "headers",
    ]


def test_a_group_commits_what_was_printed_and_goes_on_there(on_cluster: Run, mock_kafka: Cluster):
    mock_kafka.topic("orders").create(1).produce_all(["a", "b", "c"])
    flags = ("consume", "orders", "--group", "kitchen", "--from-beginning")
    assert on_cluster(*flags, "--max-messages", 2).stdout == "a\nb\n"
    assert mock_kafka.group("kitchen").offsets == {("orders", 0): 2}
    assert on_cluster(*flags, "--timeout", 0.1).stdout == "c\n"
    assert mock_kafka.group("kitchen").lag() == 0
    assert mock_kafka.group("kitchen").state == "Empty"


@pytest.mark.parametrize("flag", [("--offset", "3"), ("--partition", "0")])
def test_a_group_decides_itself_what_is_read(on_cluster: Run, flag: tuple[str, str]):
    refused = on_cluster("consume", "orders", "--group", "kitchen", *flag, status=2)
    assert "--group excludes --offset and --partition" in refused.output
