"""The recipes of docs/howto/other-languages.md run as they stand there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from mockbroker.client import Client
from tests.support import maven, nodejs
from tests.support.doc_examples import source
from tests.support.maven import ROOT
from tests.support.real_kafka import free_ports
from tests.support.serving import Served

PAGE = "howto/other-languages.md"
EXEC = ["mockbroker", "exec"]
OURS = pytest.mark.parametrize("around", [[], [*EXEC, "--"]], ids=["own cluster", "exec"])


def environment(**more: str) -> dict[str, str]:
    """A user's, with `mockbroker` on the PATH."""
    here = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}", **more}


def run(command: list[str], folder: Path, **more: str) -> str:
    """Run to the end and return the output; AssertionError with it if the command fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def write(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).write_text(source(PAGE, name), encoding="utf-8")
    return [folder / name for name in names]


# -- test runners ----------------------------------------------------------------------------------


@OURS
@pytest.mark.java
def test_junit(tmp_path: Path, around: list[str]) -> None:
    jars = [*maven.jars("junit"), *maven.jars("kafka-clients-4.3.1")]
    classes = maven.javac(write(tmp_path, "MockBroker.java", "OrdersTest.java"), jars, "recipe")
    path = maven.joined([classes, *jars])
    console = ["org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"]
    java = ["java", *maven.JVM_FLAGS, "-cp", path, *console, "--select-class=OrdersTest"]
    output = run([*around, *java], tmp_path)
    assert re.search(r"\b3 tests successful", output), output
    assert re.search(r"\b0 tests failed", output), output


@pytest.fixture
def go_project(tmp_path: Path) -> Path:
    for name in ("go.mod", "go.sum"):
        shutil.copy(ROOT / "tests" / "go" / name, tmp_path)
    write(tmp_path, "mockbroker_test.go", "orders_test.go")
    return tmp_path


@OURS
@pytest.mark.go
def test_go(go_project: Path, around: list[str]) -> None:
    output = run([*around, "go", "test", "-count=1", "-v", "./..."], go_project)
    assert "--- PASS: TestARetryIsStoredOnce" in output


@OURS
@pytest.mark.node
def test_node(tmp_path: Path, around: list[str]) -> None:
    write(tmp_path, "mockbroker.mjs", "orders.test.mjs")
    installed = nodejs.install(ROOT / "tests" / "node")
    (tmp_path / "node_modules").symlink_to(installed / "node_modules")
    output = run([*around, "node", "--no-warnings", "--test"], tmp_path)
    assert re.search(r"^\S* pass 3$", output, re.MULTILINE), output
    assert re.search(r"^\S* fail 0$", output, re.MULTILINE), output


@pytest.mark.go
def test_a_wrong_flag_of_the_cluster_fails_the_test_with_its_message(go_project: Path) -> None:
    test = go_project / "orders_test.go"
    test.write_text(test.read_text().replace("start(t)", 'start(t, "--topik", "orders")'))
    with pytest.raises(AssertionError, match=r"No such option .--topik"):
        run(["go", "test", "-count=1", "./..."], go_project)


# -- GitHub Actions --------------------------------------------------------------------------------


def steps_of(document: Mapping[str, Any]) -> list[str]:
    """The scripts of a job, without the installation of what runs this test."""
    scripts = [step["run"] for step in document["steps"] if "run" in step]
    return [script for script in scripts if not script.startswith("pip install")]


@pytest.mark.go
def test_the_steps_of_the_workflow(go_project: Path) -> None:
    document = yaml.safe_load(source(PAGE, ".github/workflows/test.yml"))
    assert document[True] == ["push", "pull_request"]  # `on` is a truth value in YAML 1.1
    [job] = document["jobs"].values()
    assert all(set(step) <= {"uses", "with", "run"} for step in job["steps"])
    [script] = steps_of(job)
    assert "ok" in run(["bash", "-e", "-c", script], go_project)


def test_the_steps_of_a_cluster_in_the_background(tmp_path: Path) -> None:
    """Each step is a shell of its own, with what the steps before left in GITHUB_ENV."""
    *brokers, admin = map(str, free_ports(4))
    file = tmp_path / "github-env"
    file.touch()
    output = []
    for script in steps_of(yaml.safe_load(source(PAGE, "background.yml"))):
        text = script.replace("--daemon", f"--daemon --port {brokers[0]} --admin-port {admin}")
        text = text.replace(":9092", f":{brokers[0]}").replace(":9191", f":{admin}")
        left = dict(line.split("=", 1) for line in file.read_text().splitlines())
        output.append(run(["bash", "-e", "-c", text], tmp_path, GITHUB_ENV=str(file), **left))
    started, listed, _ = output
    assert "pid" in started
    assert "orders" in listed
    assert not (tmp_path / "mockbroker.pid").exists()


# -- containers ------------------------------------------------------------------------------------


def entry_point() -> list[str]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    [line] = re.findall(r"^ENTRYPOINT (.+)$", text, re.MULTILINE)
    found: list[str] = json.loads(line)
    return found


def test_the_broker_of_the_compose_file(tmp_path: Path) -> None:
    """Its command line starts, its ports are those of its listeners, its health check finds it."""
    services = yaml.safe_load(source(PAGE, "compose.yaml"))["services"]
    kafka = services["kafka"]
    published = dict(map(str, each.split(":")) for each in kafka["ports"])
    assert kafka["command"][-1].endswith(":9192:localhost:29092")
    assert published == {"29092": "9192", "9191": "9191"}
    assert services["app"]["environment"] == {"BOOTSTRAP_SERVERS": "kafka:9092"}

    inside, outside, admin = map(str, free_ports(3))
    command = [
        word.replace(":9092:", f":{inside}:").replace(":9192:", f":{outside}:")
        for each in (*entry_point(), *kafka["command"])
        for word in each.split("=", 1)
    ]
    assert command[:2] == ["mockbroker", "serve"]
    ready = tmp_path / "ready.json"
    command[command.index("/tmp/mockbroker.json")] = str(ready)
    variables = {**kafka["environment"], "MOCKBROKER_ADVERTISED_HOST": "localhost"}
    word, *check = kafka["healthcheck"]["test"]
    assert word == "CMD"
    look = {"MOCKBROKER_ADMIN": f"http://127.0.0.1:{admin}", **kafka["environment"]}

    with pytest.raises(AssertionError):
        run(check, tmp_path, **look)
    with Served(*command[2:], "--admin-port", admin, environment=variables):
        addresses = json.loads(ready.read_text())
        assert addresses["bootstrap"] == f"kafka:{inside}"
        assert addresses["listeners"] == {"OUTSIDE": "localhost:29092"}
        assert "running" in run(check, tmp_path, **look)


HARNESS = """
public class Harness {
    public static void main(String[] args) {
        System.out.println(MockBrokerContainer.TOKEN);
        System.out.println(MockBrokerContainer.SCRIPT);
        System.out.println(MockBrokerContainer.WAIT_FOR_SCRIPT);
        System.out.println(MockBrokerContainer.startScript(args[0], Integer.parseInt(args[1])));
    }
}
"""


@pytest.mark.java
def test_the_container_for_testcontainers(tmp_path: Path) -> None:
    """Without an engine: it compiles, and what it runs in the container runs here."""
    jars = maven.jars("testcontainers")
    files = write(tmp_path, "MockBrokerContainer.java")
    (tmp_path / "Harness.java").write_text(HARNESS)
    classes = maven.javac([*files, tmp_path / "Harness.java"], jars, "testcontainers")
    port, admin = free_ports(2)
    java = ["java", *maven.JVM_FLAGS, "-cp", maven.joined([classes, *jars])]
    told = run([*java, "Harness", "localhost", str(port)], tmp_path).splitlines()
    token, script, wait, start = [line for line in told if not line.startswith("SLF4J")]

    waiting = subprocess.Popen(
        ["sh", "-c", wait.replace(script, str(tmp_path / "start.sh"))],
        env=environment(MOCKBROKER_ADMIN_TOKEN=token),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        here = start.replace(":9092:", f":{port}:").replace("9191", str(admin))
        scratch = tmp_path / "scratch"
        scratch.write_text(here)
        scratch.rename(tmp_path / "start.sh")  # whole, as Docker copies it
        assert waiting.stdout is not None
        assert waiting.stdout.readline().startswith(f"ready bootstrap=localhost:{port} ")
        with Client(f"localhost:{port}") as client:
            client.topics.create("orders")
        with urlopen(f"http://localhost:{admin}/healthz") as answer:
            assert answer.status == 200
    finally:
        waiting.terminate()
        waiting.communicate()
