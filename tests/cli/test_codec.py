from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run, table


@pytest.mark.parametrize("name", ["Fetch", "fetch", "FETCH", "1"])
def test_an_api_is_found_by_any_of_its_names(run: Run, name: str):
    assert run("codec", "show", name, 12).stdout.startswith("FetchRequest v12 (flexible")


def test_request_and_response_are_shown_with_their_code(run: Run):
    both = run("codec", "show", "Heartbeat", 4).stdout
    assert both.index("HeartbeatRequest v4") < both.index("HeartbeatResponse v4")
    assert both.count("def decode(") == both.count("def encode(") == 2
    assert "HeartbeatRe" in run("codec", "show", "Heartbeat", 4, "--response").stdout
    assert "HeartbeatRequest" not in run("codec", "show", "Heartbeat", 4, "--response").stdout
    assert "HeartbeatResponse" not in run("codec", "show", "Heartbeat", 4, "--request").stdout


def test_without_a_version_the_newest_is_shown(run: Run):
    assert run("codec", "show", "Fetch").stdout.startswith("FetchRequest v18 ")


def test_json_has_the_fields(run: Run):
    [shown] = json.loads(run("codec", "show", "Heartbeat", 3, "--request", "--json").stdout)
    assert (shown["message"], shown["api_key"], shown["version"]) == ("HeartbeatRequest", 12, 3)
    assert not shown["flexible"]
    assert [field["path"] for field in shown["fields"]] == [
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
    ]


def test_all_apis_are_listed(run: Run):
    rows = table(run("codec", "list"))
    assert ["12", "HEARTBEAT", "0", "4", "4"] in rows
    listed = {row["name"]: row for row in json.loads(run("codec", "list", "--json").stdout)}
    assert listed["FETCH"] == {"key": 1, "name": "FETCH", "from": 4, "to": 18, "flexible_from": 12}
    assert listed["SASL_HANDSHAKE"]["flexible_from"] is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["Nosuch", "1"], "no API is called 'Nosuch'"),
        (["Fetch", "99"], "FetchRequest has versions 4-18, not 99"),
        (["Fetch", "x"], "'x' is not a valid integer"),
    ],
)
def test_what_does_not_exist_is_wrong_usage(run: Run, arguments: list[str], reason: str):
    result = run("codec", "show", *arguments)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1
