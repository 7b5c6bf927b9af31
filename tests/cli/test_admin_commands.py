"""`fault`, `action`, `clock`, `journal` and `verify` on a running cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from mockbroker import Cluster
from mockbroker.cli import main
from mockbroker.cli.show import VIEWS
from mockbroker.core.actions import ACTIONS
from mockbroker.pipeline.store import open_store
from tests.support.http import HttpClient
from tests.support.librdkafka import TIMEOUT_S

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=2, topics={"orders": 1}) as cluster:
        yield cluster


@pytest.fixture
def run(kafka: Cluster) -> Iterator[Run]:
    def command(*args: str, status: int = 0, stdin: str | bytes | None = None) -> Result:
        environment = {"MOCKBROKER_ADMIN": kafka.admin_url}
        result = CliRunner().invoke(main, list(args), input=stdin, env=environment)
        assert result.exit_code == status, result.output
        return result

    yield command
    kafka.faults.clear()


def produced(kafka: Cluster, value: str) -> None:
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop", "log_level": 0}
    )
    producer.produce("orders", value)
    assert producer.flush(TIMEOUT_S) == 0


def test_a_rule_is_added_waited_for_and_taken_away(kafka: Cluster, run: Run) -> None:
    rule = "{match: {api: Produce}, when: {times: 1}, do: {error: REQUEST_TIMED_OUT}}"
    assert run("fault", "add", rule, "--name", "once").output == "once\n"
    produced(kafka, "coffee")
    assert "once fired 1 times" in run("fault", "wait", "once").output
    assert json.loads(run("fault", "list", "--json").output)[0]["rules"][0]["hits"] == 1
    listed = run("fault", "list").output
    assert "once" in listed
    run("fault", "remove", "once")
    assert "there is no rule or plan 'once'" in run("fault", "remove", "once", status=1).output


def test_a_plan_printed_by_show_can_be_added_again(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "name: slow\nrules:\n  - match: {api: Fetch}\n    do: {delay: 2s}\n", encoding="utf-8"
    )
    run("fault", "add", str(path))
    shown = run("fault", "show", "slow").output
    run("fault", "clear")
    run("fault", "add", "-", stdin=shown)
    assert run("fault", "show", "slow").output == shown
    assert "delay" in shown


def test_all_rules_are_exported_and_added_again(run: Run, kafka: Cluster) -> None:
    """As a file for `fault add`, and as Python for a test."""
    run("fault", "add", "{name: slow, match: {api: Fetch}, do: {delay: 2s}}")
    run("fault", "add", "{name: lost, match: {api: Produce}, do: {drop_reply: {}}}")
    text, code = run("fault", "export").output, run("fault", "export", "--python").output
    for again in (
        lambda: run("fault", "add", "-", stdin=text),
        lambda: exec(code, {"kafka": kafka}),
    ):
        run("fault", "clear")
        assert run("fault", "export").output == ""
        again()
        assert (run("fault", "export").output, kafka.faults.export()) == (text, code)
    refused = run("fault", "add", "-", "--name", "x", stdin=text, status=2)
    assert "--name needs a single plan" in refused.output


@pytest.mark.parametrize(
    ("plan", "status", "words"),
    [
        ("{match: {topik: x}, do: {delay: 1s}}", 1, "did you mean 'topic'"),
        ("{match: [", 2, "the argument: "),
        ("no-such-file.yaml", 2, "no-such-file.yaml: No such file or directory\n"),
        (
            "match: {api: Produce}",
            2,
            "No such file or directory; YAML on the command line needs braces around it\n",
        ),
        (
            f"match: {{topic: {'x' * 300}}}",
            2,
            "File name too long; YAML on the command line needs braces around it\n",
        ),
        ("-", 2, "standard input holds list"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(run: Run, plan: str, status: int, words: str) -> None:
    assert words in run("fault", "add", plan, status=status, stdin="- 1\n").output


def test_a_plan_that_is_not_text_is_refused(run: Run) -> None:
    told = run("fault", "add", "-", status=2, stdin=b"{match: \xff}").output
    assert told.endswith("standard input: byte 8 is not UTF-8\n")


def test_what_is_held_is_let_go(kafka: Cluster, run: Run) -> None:
    run("fault", "add", "{match: {api: Produce}, when: {times: 1}, do: {hold: {phase: before}}}")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    producer.produce("orders", "tea")
    kafka.faults.wait_held()
    [held] = json.loads(run("fault", "held", "--json").output)
    assert held["api"] == "Produce"
    clash = run("fault", "release", str(held["id"]), "--drop", "--answer", "NONE", status=2)
    assert "--answer excludes" in clash.output
    run("fault", "release", str(held["id"]))
    assert producer.flush(TIMEOUT_S) == 0


def test_an_action_takes_named_values(kafka: Cluster, run: Run) -> None:
    run("action", "stop_broker", "node=2", "how=unclean")
    assert "is stopped already" in run("action", "stop_broker", "node=2", status=1).output
    run("action", "start_broker", "node=2")
    assert "stop_broker" in run("action", "stop_brker", status=1).output
    assert "is not NAME=VALUE" in run("action", "stop_broker", "2", status=2).output


def test_the_clock_is_shown_and_steered(run: Run) -> None:
    assert run("clock", "freeze").output.endswith(" frozen\n")
    first = int(run("clock", "show").output.split()[1])
    assert int(run("clock", "advance", "2h").output.split()[1]) == first + 7_200_000
    assert run("clock", "rate", "2").output.endswith(" rate 2\n")
    assert run("clock", "thaw").output.endswith(" rate 1\n")
    run("clock", "advance", "1s", "--only", "retention")
    assert "part" in run("clock", "advance", "1s", "--only", "nothing", status=1).output
    assert "is not a duration" in run("clock", "advance", "soon", status=2).output


def test_the_journal_is_printed_by_conditions(kafka: Cluster, run: Run) -> None:
    produced(kafka, "juice")
    lines = run("journal", "kind=append", "client_id=shop").output.splitlines()
    assert lines
    assert all(" append Produce client_id=shop topic=orders" in line for line in lines)
    events = [
        json.loads(line)
        for line in run("journal", "api=Produce", "--json").output.split("\n")
        if line
    ]
    assert {event["kind"] for event in events} >= {"request", "append", "response"}
    assert any(event.get("message") for event in events)
    assert "did you mean 'topic'" in run("journal", "topik=x", status=1).output


def test_the_journal_is_exported_as_tables(kafka: Cluster, run: Run, tmp_path: Path) -> None:
    produced(kafka, "soup")
    told = run("journal", "export", str(tmp_path), "--run", "mine").output
    assert "run mine" in told
    store = open_store(tmp_path)
    store.check()
    assert store.files("records")
    again = run("journal", "export", str(tmp_path), "--run", "mine", status=1).output
    assert "has a run mine already" in again
    assert "holds no spool" in run("journal", "export", ".", "--from", "spool", status=1).output


def test_verify_exits_with_the_verdict(kafka: Cluster, run: Run) -> None:
    produced(kafka, "water")
    good = run("verify", "{match: {kind: append, topic: orders, client_id: shop}}")
    assert "as expected (at least 1)" in good.output
    bad = run("verify", "{match: {kind: append, client_id: shop, partition: 7}}", status=1)
    assert "but partition was" in bad.output
    verdict = run("verify", "{match: {kind: append, partition: 7}}", "--json", status=1)
    assert json.loads(verdict.output)["holds"] is False


def test_a_cluster_goes_back_to_a_snapshot_and_to_its_start(kafka: Cluster, run: Run) -> None:
    kafka.topic("before").create()
    run("snapshot", "take", "mine")
    assert run("snapshot", "list").output == "mine\n"
    for producers in ("keep", "resume"):
        kafka.topic("after").create()
        run("snapshot", "restore", "mine", "--producers", producers)
        assert kafka.call(lambda cluster: sorted(cluster.topics)) == ["before", "orders"]
    kafka.topic("after").create()
    run("snapshot", "restore", "mine")
    assert kafka.call(lambda cluster: sorted(cluster.topics)) == ["before", "orders"]
    assert "known are: mine" in run("snapshot", "restore", "yours", status=1).output
    run("reset")
    assert kafka.call(lambda cluster: sorted(cluster.topics)) == ["orders"]


def test_without_an_admin_api_the_remedy_is_named() -> None:
    result = CliRunner().invoke(main, ["fault", "list", "--admin", "http://127.0.0.1:1"])
    assert result.exit_code == 1
    assert "`mockbroker serve` starts one" in result.output
    result = CliRunner().invoke(main, ["fault", "list", "--admin", "ftp://x"])
    assert result.exit_code == 2


def test_what_is_there_is_shown(kafka: Cluster, run: Run) -> None:
    """As a table or as JSON, by the same names as in Python."""
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
    )
    producer.produce("orders", "tea")
    assert producer.flush(TIMEOUT_S) == 0
    table = run("show", "partitions", "topic=orders").output
    assert "HIGH WATERMARK" in table
    assert "orders" in table
    [told] = json.loads(run("show", "producers", "topic=orders", "--json").output)
    [found] = kafka.producers("orders")
    assert (told["topic"], told["producer_id"]) == ("orders", found.producer_id)
    for what in VIEWS:
        run("show", what)
        json.loads(run("show", what, "--json").output)
    assert (
        "there is no topic 'nobody'" in run("show", "partitions", "topic=nobody", status=1).output
    )
    assert "'everything' is not one of" in run("show", "everything", status=2).output
    nothing = run("show", "open-transactions")
    assert (nothing.stdout, nothing.stderr) == ("", "open-transactions: nothing to show\n")


def cells_of(table: str) -> list[list[str]]:
    """The cells of each line of a printed table, the header first."""
    return [
        [cell.strip() for cell in line.split("  ") if cell.strip()] for line in table.splitlines()
    ]


def test_links_are_shown_with_those_of_clients_that_are_cut(kafka: Cluster, run: Run) -> None:
    """Each link one way, a client's after those between brokers."""
    kafka.cut_network(2, to=1, both_ways=False)
    kafka.delay_network(1, to=2, by="40ms", both_ways=False)
    kafka.cut_network([1, 2], clients={"client_id": "shop"})
    header, *rows = cells_of(run("show", "network").output)
    assert header == ["FROM", "TO", "UP", "DELAY MS", "RULES"]
    [rule] = json.loads(rows[-1][-1])
    assert rows == [
        ["1", "2", "true", "40", "-"],
        ["2", "1", "false", "0", "-"],
        ["client_id shop", "[1, 2]", "false", "0", f'["{rule}"]'],
        ["[1, 2]", "client_id shop", "false", "0", f'["{rule}"]'],
    ]
    assert rule in [each["name"] for plan in kafka.faults.plans() for each in plan["rules"]]
    assert json.loads(run("show", "network", "--json").output)["nodes"] == [1, 2]
    kafka.heal_network()


def test_the_timers_that_run_next_are_shown(kafka: Cluster, run: Run) -> None:
    kafka.clock.freeze()
    try:
        header, *rows = cells_of(run("show", "timers", "limit=2").output)
        expected = kafka.clock.timers(limit=2)
    finally:
        kafka.clock.thaw()
    assert header == ["NAME", "ABOUT", "DUE MS", "IN MS", "COUNT"]
    assert [row[0] for row in rows] == [timer.name for timer in expected]
    assert len(rows) == 2


def test_views_of_a_cluster_in_python(kafka: Cluster) -> None:
    """They tell what the admin API tells."""
    api = HttpClient(kafka.admin_url)
    for found, path in (
        (kafka.brokers(), "/v1/brokers"),
        (kafka.topics(), "/v1/topics"),
        (kafka.partitions(), "/v1/partitions"),
        (kafka.producers(), "/v1/producers"),
        (kafka.groups(), "/v1/groups"),
        (kafka.lags(), "/v1/lag"),
        (kafka.transactions(), "/v1/transactions"),
        (kafka.open_transactions(), "/v1/transactions/open"),
    ):
        assert json.loads(msgspec.json.encode(found)) == api.get(path), path


def test_actions_are_listed_with_their_arguments(run: Run) -> None:
    listed = json.loads(run("action", "--json").output)
    assert [each["name"] for each in listed] == sorted(ACTIONS)
    assert all(each["help"] and "\n" not in each["help"] for each in listed)
    stop = next(each for each in listed if each["name"] == "stop_broker")
    assert stop["required"] == ["node"]
    lines = run("action").output.splitlines()
    assert len(lines) == len(ACTIONS) + 1
    assert any(line.startswith("stop_broker ") and "node [how]" in line for line in lines)


def test_what_commands_print_is_json_on_demand(run: Run) -> None:
    assert json.loads(run("clock", "show", "--json").output).keys() == {"now_ms", "rate"}
    assert json.loads(run("clock", "freeze", "--json").output)["rate"] == 0
    assert json.loads(run("clock", "thaw", "--json").output)["rate"] == 1
    done = json.loads(run("action", "set_rack", "node=1", "rack=a", "--json").output)
    assert done["action"] == "set_rack"
    [plan] = json.loads(run("fault", "add", "{name: x, do: {delay: 0}}", "--json").output)
    assert plan["name"] == "x"
    assert json.loads(run("fault", "show", "x", "--json").output)["name"] == "x"
    run("snapshot", "take", "noon")
    assert "noon" in [each["name"] for each in json.loads(run("snapshot", "list", "--json").output)]


# Commands without --json.
PRINT_NO_DATA = {
    "stop", "fault clear", "fault release", "fault remove", "settle", "reset",
    "snapshot restore", "snapshot take", "journal save",
}  # fmt: skip
HAVE_OTHER_FORMS = {
    "serve": "--ready-file NAME.json",
    "exec": "the output of a program",
    "scenario run": "the output of a program",
    "spark-submit": "the output of a program",
    "fault export": "YAML or Python, which is what it is for",
    "simulate": "--out DIR",
    "token": "one token",
    "console": "one address",
}


def test_every_command_that_prints_data_prints_it_as_json_too() -> None:
    found = set()
    for path, command in leaves(main, ()):
        if not any("--json" in each.opts for each in command.params):
            found.add(" ".join(path))
    assert found == PRINT_NO_DATA | HAVE_OTHER_FORMS.keys()


def leaves(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        yield from leaves(child, (*path, name))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    """The scripts that the docs tell to load, and what they ask for."""
    told = CliRunner().invoke(main, [], env={"_MOCKBROKER_COMPLETE": f"{shell}_source"},
                              prog_name="mockbroker")  # fmt: skip
    assert told.exit_code == 0
    assert "_MOCKBROKER_COMPLETE" in told.output
    asked = CliRunner().invoke(
        main,
        [],
        env={
            "_MOCKBROKER_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": "mockbroker top" if shell != "fish" else "mockbroker",
            "COMP_CWORD": "1" if shell != "fish" else "top",
        },
        prog_name="mockbroker",
    )
    assert "topics" in asked.output
    assert "produce" not in asked.output
