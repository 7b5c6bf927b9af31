"""`mockbroker doctor`: present and missing requirements, and remedies."""

from __future__ import annotations

import json
import socket
from importlib.metadata import distribution
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockbroker.cli import doctor, main
from mockbroker.cli.doctor import CheckedItem, examine
from mockbroker.extras import EXTRAS, install_command, requirements


def found(name: str) -> CheckedItem:
    [finding] = [each for each in examine() if each.name == name]
    return finding


def test_a_machine_that_has_everything_is_told_so():
    """The tests run on such a machine, but for ports and programs that it may lack."""
    result = CliRunner().invoke(main, ["doctor", "--json"])
    assert result.exit_code == 0, result.output
    findings = {each["name"]: each for each in json.loads(result.stdout)}
    assert [findings[f"[{extra}]"]["state"] for extra in EXTRAS] == ["ok"] * len(EXTRAS)
    assert findings["packages"]["state"] == findings["python"]["state"] == "ok"


def test_every_extra_of_users_exists_and_needs_something():
    own = distribution("mockbroker")
    for extra in EXTRAS:
        assert requirements(own, extra), extra
    assert {"trio", "construct", "hypercorn"} <= set(requirements(own))


def test_a_missing_extra_is_named_with_its_packages_and_the_command(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(doctor, "_is_installed", lambda name: name not in ("duckdb", "pyarrow"))
    finding = found("[pipeline]")
    assert finding.state == "missing"
    assert finding.found.startswith("no duckdb, pyarrow: needed for ")
    assert finding.remedy.endswith("[pipeline]'")
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 0
    assert finding.remedy in result.output


def test_a_missing_package_that_a_cluster_needs_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "_is_installed", lambda name: name != "trio")
    assert found("packages") == CheckedItem(
        "packages", "broken", "without trio", install_command(distribution("mockbroker"))
    )
    assert CliRunner().invoke(main, ["doctor"]).exit_code == 1


def test_a_port_in_use_is_named_with_the_flag_that_helps(monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(doctor, "DEFAULT_ADMIN_PORT", port)
        finding = found(f"port {port}")
    assert finding.state == "missing"
    assert "in use" in finding.found
    assert "--admin-port 0" in finding.remedy


def test_missing_java_and_maven_are_named_with_remedies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java, maven = found("java"), found("maven")
    assert (java.state, maven.state) == ("missing", "missing")
    assert "Java" in java.found
    assert "JAVA_HOME" in java.remedy
    assert "MOCKBROKER_SPARK_JARS" in maven.remedy


def test_a_low_limit_of_open_files_is_named(monkeypatch: pytest.MonkeyPatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 8192))
    assert found("open files") == CheckedItem(
        "open files", "missing", "only 256 at a time", "ulimit -n 4096"
    )


def test_an_unknown_package_is_not_installed():
    assert not doctor._is_installed("no-such-distribution-anywhere")


def test_an_extra_that_includes_another_names_what_that_brings() -> None:
    """And not the package itself, whose name an index may know as another project's."""
    own = distribution("mockbroker")
    assert {"hypothesis", "duckdb"} <= set(requirements(own, "hypothesis"))
    assert "mockbroker" not in requirements(own, "hypothesis")
