"""spark-submit: its command line, its environment, and a program that runs from end to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mockbroker.cli import main
from mockbroker.spark.installation import Installation
from mockbroker.spark.submit import Submission

SPARK = Installation(Path("/spark"), "4.0.0", "2.13")
SCRATCH = Path("/scratch")
MOCKBROKER = str(Path(sys.executable).with_name("mockbroker"))


def command(*arguments: str) -> list[str]:
    jars = (Path("/jars/connector.jar"), Path("/jars/clients.jar"))
    return Submission(SPARK, jars, arguments).command(SCRATCH)


def settings_of(words: list[str]) -> dict[str, str]:
    """What `--conf` says in the end; the last one counts."""
    pairs = [words[n + 1] for n, word in enumerate(words) if word == "--conf"]
    return dict(pair.split("=", 1) for pair in pairs)


def jars_of(words: list[str]) -> str:
    assert words.count("--jars") == 1
    return words[words.index("--jars") + 1]


def test_the_jars_and_the_loopback_address_are_given_before_the_program() -> None:
    words = command("app.py", "--jars", "the program's own")
    assert words[0] == "/spark/bin/spark-submit"
    assert words[-3:] == ["app.py", "--jars", "the program's own"]
    assert jars_of(words[:-3]) == "/jars/connector.jar,/jars/clients.jar"
    settings = settings_of(words)
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.sql.warehouse.dir"] == "/scratch/warehouse"


@pytest.mark.parametrize("jars", [("--jars", "mine.jar"), ("--jars=mine.jar",)])
def test_jars_of_one_s_own_are_added(jars: tuple[str, ...]) -> None:
    words = command("--verbose", *jars, "--conf", "a=b", "app.py")
    assert jars_of(words) == "/jars/connector.jar,/jars/clients.jar,mine.jar"
    assert words[-4:] == ["--verbose", "--conf", "a=b", "app.py"]


def test_settings_of_one_s_own_come_last() -> None:
    words = command("--conf", "spark.log.level=INFO", "app.py")
    assert settings_of(words)["spark.log.level"] == "INFO"


@pytest.mark.parametrize("master", [("--master", "spark://host:7077"), ("--master=yarn",)])
def test_a_driver_with_executors_elsewhere_is_not_bound_to_loopback(
    master: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    submission = Submission(SPARK, (), (*master, "app.py"))
    assert "spark.driver.host" not in settings_of(submission.command(SCRATCH))
    assert "SPARK_LOCAL_IP" not in submission.environment(SCRATCH, {})


def test_the_environment_tells_where_everything_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    found = Submission(SPARK, (), ("app.py",)).environment(SCRATCH, {"MOCKBROKER_BOOTSTRAP": "h:1"})
    assert found["MOCKBROKER_BOOTSTRAP"] == "h:1"
    assert found["SPARK_HOME"] == "/spark"
    assert found["SPARK_LOCAL_DIRS"] == "/scratch/local"
    assert found["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert found["PYSPARK_PYTHON"] == sys.executable
    assert found["PATH"] == os.environ["PATH"]


# -- the command -----------------------------------------------------------------------------------


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["spark-submit", *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "missing APP"),
        (("--topic", "t:x", "app.py"), "expected numbers"),
        (
            ("--bootstrap-server", "h:1", "--topic", "t:1", "app.py"),
            "options of a new cluster",
        ),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--spark-version", "3.4.0"), "pip install pyspark==3.4.0"),
        (("--spark-version", "newest"), "is not a version of Spark"),
        (("--jars-dir", "/nowhere"), "there is no directory /nowhere"),
    ],
)
def test_what_does_not_fit_ends_it_with_the_remedy(
    arguments: tuple[str, ...], message: str
) -> None:
    result = invoke(*arguments, "app.py")
    assert result.exit_code == 1
    assert message in result.output


@pytest.mark.spark
@pytest.mark.java
@pytest.mark.xdist_group("spark")
class TestARun:
    """Whole runs, in processes of their own."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """An empty working directory; Spark's scratch goes beside it, where it can be looked at."""
        (tmp_path / "tmp").mkdir()
        (tmp_path / "here").mkdir()
        return tmp_path / "here"

    def start(self, folder: Path, program: str, *arguments: str) -> subprocess.Popen[str]:
        app = folder.parent / "app.py"
        app.write_text(program, encoding="utf-8")
        own = {"TMPDIR": str(folder.parent / "tmp")}
        return subprocess.Popen(
            [MOCKBROKER, "spark-submit", *arguments, str(app), "3", "--x"],
            cwd=folder,
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def test_a_program_is_told_where_the_cluster_is_and_nothing_stays(self, folder: Path) -> None:
        """Its exit code is passed on, its arguments reach it."""
        done = self.start(folder, TELLS, "--brokers", "2", "--topic", "orders:2")
        out, err = done.communicate()
        assert done.returncode == 3, err
        assert out.splitlines() == ["2 2", "3 --x"]
        assert list(folder.iterdir()) == []
        assert list((folder.parent / "tmp").glob("mockbroker-*")) == []

    def test_a_cluster_that_is_there_already_is_used(self, folder: Path) -> None:
        program = "import os; print(os.environ['MOCKBROKER_BOOTSTRAP'])"
        done = self.start(folder, program, "--bootstrap-server", "127.0.0.1:1")
        out, err = done.communicate()
        assert (done.returncode, out) == (0, "127.0.0.1:1\n"), err

    def test_a_signal_ends_spark_and_all_that_it_started(self, folder: Path) -> None:
        process = self.start(folder, PARKED)
        assert process.stdout is not None
        python = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
        assert process.returncode > 0, err
        with pytest.raises(ProcessLookupError):
            os.kill(python, 0)
        assert list((folder.parent / "tmp").glob("mockbroker-*")) == []


# Neither of them asks for a session: a program may, and docs/howto/spark.md shows one that does.

TELLS = """
import os, sys
print(*(os.environ[f"MOCKBROKER_{name}"].count(":") for name in ("BOOTSTRAP", "ADMIN")))
print(*sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""

PARKED = """
import os, signal
print(os.getpid(), flush=True)
signal.pause()
"""
