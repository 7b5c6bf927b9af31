"""`mockbroker serve`: the process from its flags to its end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from mockbroker.cli import main
from mockbroker.cli.serving import Serving
from mockbroker.client import Client, Connection, Resource
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.describe_cluster import DescribeClusterRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.http import HttpClient
from tests.support.serving import Served, free_block, serve_and_fail
from tests.support.waiting import wait_until


def quiet(served: Served, **config: object) -> dict[str, object]:
    named = {name.replace("_", "."): value for name, value in config.items()}
    return {"bootstrap.servers": served.bootstrap_servers, "log_level": 0, **named}


def brokers(served: Served) -> dict[int, tuple[str, int]]:
    """Node id -> host and port, as the brokers tell their clients."""
    with Client(served.bootstrap_servers) as client:
        return {b.node_id: (b.host, b.port) for b in client.metadata([]).brokers}


# ------------------------------------------------------------------------------------------- ready


def test_one_line_says_when_clients_can_connect() -> None:
    """`ready bootstrap=HOST:PORT,… admin=http://HOST:PORT`, three brokers on free ports."""
    with Served("--admin-port", "0") as served:
        pattern = (
            r"ready bootstrap=(127\.0\.0\.1:\d+,){2}127\.0\.0\.1:\d+ admin=http://127\.0\.0\.1:\d+"
        )
        assert re.fullmatch(pattern, served.ready_line)
        assert brokers(served) == dict(zip((1, 2, 3), served.addresses, strict=True))
        producer = Producer(quiet(served))
        producer.produce("t", b"x")
        assert producer.flush(20) == 0
        ended = served.stop()
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout == served.ready_line + "\n"


def test_the_ready_file_holds_the_ready_line_while_it_serves(tmp_path: Path) -> None:
    """The same line, whole, and nothing is left of it afterwards."""
    ready = tmp_path / "ready"
    with Served("--ready-file", str(ready)) as served:
        assert ready.read_text() == served.ready_line + "\n"
        assert list(tmp_path.iterdir()) == [ready]
        assert served.stop().code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_ready_file_called_json_holds_an_object(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    flags = ("--listener", "IN:PLAINTEXT:0", "--listener", "OUT:PLAINTEXT:0:kafka.example:30092")
    with Served("--ready-file", str(ready), "--admin-port", "0", *flags) as served:
        found = json.loads(ready.read_text())
        assert found == {
            "bootstrap": served.bootstrap_servers,
            "admin": served.fields["admin"],
            "listeners": {"OUT": "kafka.example:30092,kafka.example:30093,kafka.example:30094"},
            "pid": served.process.pid,
        }


def test_it_is_ready_before_the_admin_stack_is_imported() -> None:
    """Clients of the brokers do not wait for what HTTP needs; HTTP clients wait for it."""
    code = (
        "import sys\n"
        "from mockbroker.cli import serve, main\n"
        "serve._print = lambda line: print(line, *{'hypercorn', 'starlette'} & {*sys.modules},"
        " flush=True)\n"
        "main()"
    )
    flags = ["serve", "--port", "0", "--admin-port", "0"]
    process = subprocess.Popen([sys.executable, "-c", code, *flags], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert re.fullmatch(r"ready bootstrap=\S+ admin=\S+\n", line)
        assert get(line.split("admin=")[1].strip(), "/healthz")[0] == 200
        process.terminate()


def test_a_reader_that_closes_the_output_does_not_stop_the_cluster(tmp_path: Path) -> None:
    """No traceback, and clients are still served."""
    ready = tmp_path / "ready.json"
    reader, writer = os.pipe()
    os.close(reader)
    flags = ["serve", "--port", "0", "--no-admin", "--ready-file", str(ready)]
    process = subprocess.Popen(
        [sys.executable, "-m", "mockbroker", *flags], stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    with process:
        wait_until(ready.exists)
        with Client(json.loads(ready.read_text())["bootstrap"]) as client:
            assert len(client.metadata([]).brokers) == 3
        process.terminate()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_broker_i_listens_on_port_plus_i() -> None:
    first = free_block(3)
    with Served("--port", str(first)) as served:
        assert [port for _, port in served.addresses] == [first, first + 1, first + 2]
        assert {node: port for node, (_, port) in brokers(served).items()} == {
            1: first,
            2: first + 1,
            3: first + 2,
        }


def test_the_port_is_9092_unless_told_otherwise() -> None:
    """Said in the help; and `admin` has one as well."""
    helped = CliRunner().invoke(main, ["serve", "--help"])
    assert "9092" in helped.output
    assert "9191" in helped.output


# ------------------------------------------------------------------------------------------- flags


def test_brokers_node_ids_racks_and_a_seed() -> None:
    flags = ["--node-ids", "7,0,101", "--seed", "5"]
    flags += ["--rack", "a", "--rack", "b", "--rack", "a"]
    clusters = []
    for _ in range(2):
        with Served(*flags) as served, Client(served.bootstrap_servers) as client:
            described = client.router.any().send(DescribeClusterRequest())
            racks = {each.broker_id: each.rack for each in described.brokers}
            assert racks == {7: "a", 0: "b", 101: "a"}
            clusters.append(described.cluster_id)
    assert clusters[0] == clusters[1]
    with Served("--brokers", "1") as served:
        assert len(brokers(served)) == 1


def test_clients_are_told_to_come_to_the_advertised_host() -> None:
    """Listening stays where it is; the ready line says what clients are told."""
    with Served("--advertised-host", "localhost", "--host", "127.0.0.1") as served:
        assert {host for host, _ in served.addresses} == {"localhost"}
        with Connection("127.0.0.1", served.addresses[0][1]) as connection:
            described = connection.send(DescribeClusterRequest())
        assert {each.host for each in described.brokers} == {"localhost"}


def test_topics_and_configs_are_there_from_the_start() -> None:
    """--topic NAME:PARTITIONS:RF, with one partition and one replica where nothing is said."""
    flags = ["--topic", "plain", "--topic", "orders:4", "--topic", "paid:2:3"]
    with Served(
        *flags, "--config", "num.partitions=7", "--config", "log.retention.hours=2"
    ) as served:
        with Client(served.bootstrap_servers) as client:
            shapes = {
                topic.name: (len(topic.partitions), len(topic.partitions[0].replica_nodes))
                for topic in client.topics.all(internal=True)
            }
            assert shapes == {"plain": (1, 1), "orders": (4, 1), "paid": (2, 3)}
            client.topics.create("by-default")
            assert len(client.topics.describe("by-default").partitions) == 7
        admin = AdminClient(quiet(served))
        resource = ConfigResource(ResourceType.TOPIC, "orders")
        described = admin.describe_configs([resource])[resource].result(20)
        assert described["retention.ms"].value == "7200000"


@pytest.mark.parametrize(("version", "fetch"), [("2.8", 12), ("3.9", 17), ("4.3", 18)])
def test_an_older_release_is_played_on_request(version: str, fetch: int) -> None:
    """--kafka-version caps what ApiVersions offers."""
    with Served("--kafka-version", version) as served:
        with Connection(*served.addresses[0]) as connection:
            offered = connection.api_versions()
        assert offered[int(ApiKey.FETCH)].highest == fetch


# ------------------------------------------------------------------------------------ config file


FILE = """
brokers = 2
node_ids = [10, 20]
racks = ["left", "right"]
kafka_version = "3.9"
seed = 11

[configs]
"group.max.size" = 5
"auto.create.topics.enable" = false

[[listeners]]
name = "INSIDE"

[[listeners]]
name = "OUTSIDE"
advertised_host = "localhost"

[[topics]]
name = "orders"
partitions = 4
replication_factor = 2
configs = { "cleanup.policy" = "compact", "retention.ms" = 5000 }
records = [
  { key = "a", value = "1" },
  { value = "2", partition = 3, timestamp_ms = 1700000000000, headers = { trace = "t-1" } },
  { key = "gone", partition = 1 },
]

[[topics]]
name = "empty"
"""


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.toml"
    path.write_text(FILE)
    return path


def read_all(served: Served, topic: str, count: int) -> list[tuple[object, ...]]:
    consumer = Consumer(quiet(served, group_id="g", auto_offset_reset="earliest"))
    consumer.assign([TopicPartition(topic, index, 0) for index in range(4)])
    records = []
    while len(records) < count:
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        timestamp = message.timestamp()[1]
        records.append(
            (message.partition(), message.key(), message.value(), message.headers(), timestamp)
        )
    consumer.close()
    return sorted(records, key=str)


def test_a_file_describes_a_whole_cluster(config_file: Path) -> None:
    """Brokers, listeners, configs, topics and their records: a consumer reads them."""
    with Served("--config-file", str(config_file)) as served:
        with Client(served.bootstrap_servers) as client:
            described = client.router.any().send(DescribeClusterRequest())
            assert {b.broker_id: b.rack for b in described.brokers} == {10: "left", 20: "right"}
            topics = {t.name: len(t.partitions) for t in client.topics.all()}
            assert topics == {"orders": 4, "empty": 1}
            configs = {
                c.name: c.value
                for c in client.configs.describe(Resource.TOPIC, "orders")
                if c.is_set
            }
            assert configs == {"cleanup.policy": "compact", "retention.ms": "5000"}
        first, second, third = read_all(served, "orders", 3)
        by_key = {first[1]: first, second[1]: second, third[1]: third}
        assert by_key[None][:5] == (3, None, b"2", [("trace", b"t-1")], 1_700_000_000_000)
        assert by_key[b"gone"][:3] == (1, b"gone", None)
        assert by_key[b"a"][1:3] == (b"a", b"1")
        with Connection(*served.addresses[0]) as connection:
            assert connection.api_versions()[int(ApiKey.FETCH)].highest == 17


def test_a_key_is_seeded_where_a_producer_would_put_it(config_file: Path) -> None:
    with Served("--config-file", str(config_file)) as served:
        producer = Producer(quiet(served, partitioner="murmur2_random"))
        where: list[int] = []
        producer.produce(
            "orders", b"1", key=b"a", on_delivery=lambda _, m: where.append(m.partition())
        )
        assert producer.flush(20) == 0
        seeded = [record[0] for record in read_all(served, "orders", 4) if record[1] == b"a"]
    assert seeded == where * 2


def test_each_listener_tells_its_own_addresses(config_file: Path) -> None:
    """Whoever comes in by OUTSIDE is sent to OUTSIDE's ports and host."""
    with Served("--config-file", str(config_file)) as served:
        inside = served.bootstrap_servers
        outside = served.fields["OUTSIDE"]
        told = {}
        for name, bootstrap in (("INSIDE", inside), ("OUTSIDE", outside)):
            port = int(bootstrap.split(",")[0].rsplit(":", 1)[1])
            with Connection("127.0.0.1", port) as connection:
                described = connection.send(DescribeClusterRequest())
            told[name] = ",".join(f"{b.host}:{b.port}" for b in described.brokers)
        assert told == {"INSIDE": inside, "OUTSIDE": outside}
        assert set(inside.split(",")).isdisjoint(outside.split(","))
        assert outside.startswith("localhost:")


def test_flags_outrank_the_file(config_file: Path) -> None:
    flags = ["--node-ids", "1,2", "--topic", "more:3", "--config", "group.max.size=9"]
    flags += ["--kafka-version", "4.3", "--rack", "up", "--rack", "down"]
    with Served("--config-file", str(config_file), *flags) as served:
        with Client(served.bootstrap_servers) as client:
            described = client.router.any().send(DescribeClusterRequest())
            assert {b.broker_id: b.rack for b in described.brokers} == {1: "up", 2: "down"}
            assert {t.name for t in client.topics.all()} == {"orders", "empty", "more"}
        admin = AdminClient(quiet(served))
        resource = ConfigResource(ResourceType.BROKER, "1")
        described = admin.describe_configs([resource])[resource].result(20)
        assert described["group.max.size"].value == "9"
        assert described["auto.create.topics.enable"].value == "false"
        with Connection(*served.addresses[0]) as connection:
            assert connection.api_versions()[int(ApiKey.FETCH)].highest == 18


def test_a_number_of_brokers_sets_the_ids_of_the_file_aside(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text("node_ids = [10, 20]")
    with Served("--config-file", str(path), "--port", "0", "--brokers", "3") as served:
        assert set(brokers(served)) == {1, 2, 3}


# ------------------------------------------------------------------------------------------- trace


def test_the_trace_says_what_clients_sent_and_were_told() -> None:
    """One line for each request on stderr: time, broker, client, API and version, what was said."""
    with Served("--trace", "--brokers", "1", "--topic", "orders:2") as served:
        producer = Producer(quiet(served, client_id="shop"))
        producer.produce("orders", b"secret", partition=1)
        assert producer.flush(20) == 0
        served.stderr_until(b"PRODUCE")
        ended = served.stop()
    lines = ended.stderr.splitlines()
    shape = re.compile(
        r"\d\d:\d\d:\d\d\.\d{3} 1 #\d+ shop@127\.0\.0\.1:\d+ ([A-Z_]+) v(\d+) .* -> .* \d+\.\d\d ms"
    )
    names = [found[1] for line in lines if (found := shape.fullmatch(line))]
    assert len(names) == len(lines)
    assert names[0] == "API_VERSIONS"
    assert {"METADATA", "PRODUCE"} <= set(names)
    (produced,) = (line for line in lines if " PRODUCE " in line)
    assert "acks=-1" in produced
    assert "index=1" in produced
    assert "secret" not in produced
    assert ended.stdout == served.ready_line + "\n"


def test_a_reader_of_the_trace_may_go_away() -> None:
    """`serve --trace 2>&1 | head`: clients do not notice."""
    with Served("--trace", "--brokers", "1", "--topic", "t") as served:
        assert served.process.stderr is not None
        with Connection(*served.addresses[0]) as connection:
            assert connection.api_versions()
            served.process.stderr.close()
            for _ in range(3):
                assert connection.send(DescribeClusterRequest()).error_code == 0
        served.process.stderr = None
        assert served.stop().code == 0


# ------------------------------------------------------------------------------------------ the end


@pytest.fixture
def busy() -> Iterator[Served]:
    """A cluster with open connections, one of which waits for an answer. That takes longer than
    `Served.stop` waits for the end.
    """
    with Served("--topic", "t", "--admin-port", "0") as served:
        connections = [Connection(*address) for address in served.addresses]
        for connection in connections:
            connection.api_versions()
        with Client(served.bootstrap_servers) as client:
            leader = client.leader("t", 0)
            wanted = FetchTopic("t", partitions=[FetchPartition(partition_max_bytes=1 << 20)])
            request = FetchRequest(max_wait_ms=600_000, min_bytes=1, topics=[wanted])
            leader.write(request, 12)
            yield served
        for connection in connections:
            connection.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_signal_ends_it_at_once_and_cleanly(busy: Served, number: signal.Signals) -> None:
    """Exit code 0 without a word, parked requests or not; its ports are free again."""
    addresses = busy.addresses
    ended = busy.stop(number)
    assert (ended.code, ended.stderr) == (0, "")
    for address in addresses:
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(address)


def test_an_impatient_second_interrupt_says_nothing_either(busy: Served) -> None:
    """Ctrl-C twice: it ends, without a traceback."""
    ended = busy.stop(signal.SIGINT, signal.SIGINT)
    assert ended.code in (0, 130, -signal.SIGINT)  # the last while Python itself is ending
    assert ended.stderr == ""


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """No temporary files, no process, no ready file."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    ready = tmp_path / "ready"
    environment = {"TMPDIR": str(scratch)}
    with Served("--ready-file", str(ready), "--admin-port", "0", environment=environment) as served:
        assert served.stop(signal.SIGINT).code == 0
    assert list(scratch.iterdir()) == []
    assert list(tmp_path.iterdir()) == [scratch]


# --------------------------------------------------------------------------------------- bad usage


def test_a_port_in_use_is_named() -> None:
    """The second broker's port is taken: which, in one line; nothing else stays open."""
    first = free_block(3)
    with socket.create_server(("127.0.0.1", first + 1)):
        ended = serve_and_fail("--port", str(first), "--no-admin")
    assert (ended.code, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert f"127.0.0.1:{first + 1}" in ended.stderr
    assert "in use" in ended.stderr


def test_an_admin_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = serve_and_fail("--admin-port", str(port))
    assert (ended.code, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert f"127.0.0.1:{port}" in ended.stderr
    assert "in use" in ended.stderr


def test_an_admin_port_that_a_broker_of_the_cluster_takes_is_named_with_the_broker() -> None:
    first = free_block(3)
    ended = serve_and_fail("--port", str(first), "--admin-port", str(first + 1))
    assert (ended.code, ended.stdout) == (2, "")
    assert f"127.0.0.1:{first + 1}: the port is in use by broker 2 of this cluster" in ended.stderr
    assert f"each broker takes a port, from {first} on" in ended.stderr


def test_a_ready_file_that_cannot_be_written_is_named() -> None:
    ended = serve_and_fail("--ready-file", "/no/such/directory/ready")
    assert ended.code == 2
    assert len(ended.stderr.splitlines()) == 1
    assert "/no/such/directory" in ended.stderr


BAD_FLAGS: dict[str, tuple[list[str], str]] = {
    "unknown flag": (["--no-such-flag"], "--no-such-flag"),
    "an argument": (["please"], "please"),
    "brokers: not a number": (["--brokers", "three"], "three"),
    "brokers: none": (["--brokers", "0"], "0"),
    "port: not a number": (["--port", "http"], "http"),
    "port: too high": (["--port", "70000"], "70000"),
    "port: not enough room above": (["--port", "65534"], "65536"),
    "admin port: too high": (["--admin-port", "65536"], "65536"),
    "host: not one of ours": (["--host", "192.0.2.1"], "192.0.2.1"),
    "host: no such name": (["--host", "no-such-host.invalid"], "no-such-host.invalid"),
    "node ids: not numbers": (["--node-ids", "a,b"], "--node-ids a,b"),
    "node ids: one twice": (["--node-ids", "1,1"], "1,1"),
    "node ids: negative": (["--node-ids", "-1"], "-1"),
    "node ids: other than brokers": (["--brokers", "2", "--node-ids", "1,2,3"], "--brokers"),
    "racks: too few": (["--rack", "a"], "1 racks for 3 brokers"),
    "topic: no name": (["--topic", ":3"], "--topic :3"),
    "topic: no number": (["--topic", "t:many"], "t:many"),
    "topic: too much": (["--topic", "t:1:1:1"], "t:1:1:1"),
    "topic: bad name": (["--topic", "no spaces:1"], "no spaces"),
    "topic: no partitions": (["--topic", "t:0"], "t"),
    "topic: too many replicas": (["--topic", "t:1:4"], "t"),
    "topic: twice": (["--topic", "t:1", "--topic", "t:2"], "t"),
    "config: no value": (["--config", "num.partitions"], "--config num.partitions"),
    "config: no name": (["--config", "=5"], "=5"),
    "config: unknown": (["--config", "num.partition=5"], "num.partition"),
    "config: not a number": (["--config", "num.partitions=many"], "num.partitions"),
    "config: out of range": (["--config", "num.partitions=0"], "num.partitions"),
    "version: unknown": (["--kafka-version", "5.0"], "5.0"),
    "version: nonsense": (["--kafka-version", "latest"], "latest"),
    "seed: not a number": (["--seed", "x"], "x"),
    "file: not there": (["--config-file", "/no/such/file.toml"], "/no/such/file.toml"),
    "file: a directory": (["--config-file", "/"], "/"),
    "listener: nonsense": (["--listener", "INSIDE"], "--listener INSIDE"),
    "listener: no advertised port": (["--listener", "A:PLAINTEXT:0:h:x"], "--listener A:PLAIN"),
    "listener: advertised port too high": (["--listener", "A:PLAINTEXT:0:h:65534"], "65534"),
    "host: not to be advertised": (["--host", "0.0.0.0"], "meta-address 0.0.0.0"),
    "advertised host: none": (["--advertised-host", "0.0.0.0"], "meta-address 0.0.0.0"),
    "daemon with parent": (["--daemon", "--with-parent"], "--with-parent"),
    "listener: no such protocol": (["--listener", "A:FTP:0"], "FTP"),
}


@pytest.fixture
def never_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is accepted by mistake fails the test instead of serving for ever."""

    def fail(_: object) -> str:
        raise AssertionError("a cluster was started")

    monkeypatch.setattr(Serving, "ready_line", fail)


@pytest.mark.usefixtures("never_ready")
@pytest.mark.parametrize(("flags", "named"), BAD_FLAGS.values(), ids=BAD_FLAGS)
def test_wrong_usage_is_one_clear_line(flags: list[str], named: str) -> None:
    """It names what is wrong, and the exit code is 2; nothing is printed to stdout."""
    if not {"--port", "--listener"} & set(flags):
        flags = [*flags, "--port", "0"]
    if "--admin-port" not in flags:
        flags = [*flags, "--no-admin"]
    result = CliRunner().invoke(main, ["serve", *flags])
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("mockbroker")
    assert named in line


BAD_FILES: dict[str, tuple[str, str]] = {
    "not TOML": ("brokers = ", "not valid TOML"),
    "nested deeply": ("brokers = " + "[" * 5_000, "not valid TOML"),
    "unknown field": ("broker = 3", "broker"),
    "wrong type": ('brokers = "three"', "brokers"),
    "unknown field of a topic": ('[[topics]]\nname = "t"\npartition = 3', "partition"),
    "a topic without a name": ("[[topics]]\npartitions = 3", "name"),
    "a record for a partition that is not there": (
        '[[topics]]\nname = "t"\nrecords = [{ value = "x", partition = 5 }]',
        "5",
    ),
    "a record with a number for a value": (
        '[[topics]]\nname = "t"\nrecords = [{ value = 5 }]',
        "value",
    ),
    "unknown config": ('[configs]\n"no.such" = 1', "no.such"),
    "unknown config of a topic": ('[[topics]]\nname = "t"\nconfigs = { "no.such" = 1 }', "no.such"),
    "two listeners of one name": ('[[listeners]]\nname = "A"\n[[listeners]]\nname = "A"', "A"),
    "a port that is none": ("[[listeners]]\nport = 700000", "700000"),
    "a negative port": ("[[listeners]]\nport = -5", "-5"),
    "two listeners that overlap": (
        '[[listeners]]\nname = "A"\nport = 20000\n[[listeners]]\nname = "B"\nport = 20002',
        "20002",
    ),
    "no brokers": ("brokers = 0", "broker"),
    "no broker ids": ("node_ids = []", "broker"),
    "node ids other than brokers": ("brokers = 2\nnode_ids = [1, 2, 3]", "node_ids"),
    "a negative number of brokers": ("brokers = -2", "broker"),
    "not UTF-8": ("\udcff", "TOML"),
}


@pytest.mark.usefixtures("never_ready")
@pytest.mark.parametrize(("text", "named"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_wrong_file_is_one_clear_line(tmp_path: Path, text: str, named: str) -> None:
    """It names the field or the value, and the exit code is 2."""
    path = tmp_path / "cluster.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    flags = ["--config-file", str(path), "--no-admin"]
    if "listeners" not in text:
        flags += ["--port", "0"]
    result = CliRunner().invoke(main, ["serve", *flags])
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert named in line


# -------------------------------------------------------------------------------------------- admin


def get(url: str, path: str) -> tuple[int, str]:
    answer = HttpClient(url).raw("GET", path)
    return answer.status, answer.body.decode()


def test_health_and_metrics_are_served() -> None:
    """`/healthz` once it is ready, `/metrics` with what clients have done so far."""
    with Served("--admin-port", "0", "--topic", "t:2") as served:
        admin = served.fields["admin"]
        status, text = get(admin, "/healthz")
        assert status == 200
        assert '"status":"ok"' in text
        assert '"brokers":3' in text
        producer = Producer(quiet(served))
        producer.produce("t", b"x", partition=0)
        assert producer.flush(20) == 0
        status, text = get(admin, "/metrics")
        assert status == 200
        assert 'mockbroker_requests_total{api="PRODUCE"} 1' in text.splitlines()
        assert get(admin, "/nothing")[0] == 404


def test_no_admin_means_no_admin() -> None:
    with Served("--no-admin") as served:
        assert set(served.fields) == {"bootstrap"}


def test_the_system_keeps_no_temporary_directory_of_ours(tmp_path: Path) -> None:
    """A cluster without secured listeners writes nothing anywhere."""
    with Served(environment={"TMPDIR": str(tmp_path)}) as served:
        assert served.stop().code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_token_of_its_own_goes_with_the_cluster(tmp_path: Path) -> None:
    flags = ("--host", "0.0.0.0", "--advertised-host", "127.0.0.1", "--admin-port", "0")
    with Served(*flags, "--allow-remote", environment={"TMPDIR": str(tmp_path)}) as served:
        assert Path(served.fields["admin-token-file"]).is_relative_to(tmp_path)
        assert served.stop().code == 0
    assert list(tmp_path.iterdir()) == []
