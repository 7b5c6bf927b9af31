"""Which Spark is found, which Java it would run on, and what is said when something is missing."""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from mockbroker.spark import SparkSetupError, find_spark, installation
from mockbroker.spark.installation import check_java


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyspark 4.0.0, as far as Python knows."""
    monkeypatch.setattr(installation, "version", lambda _: "4.0.0")


def spark_home(path: Path, *jars: str) -> Path:
    (path / "jars").mkdir(parents=True)
    for name in jars:
        (path / "jars" / name).touch()
    return path


def test_pyspark_brings_a_spark() -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    found = find_spark()
    assert (found.home / "bin" / "spark-submit").is_file()
    assert found.scala in ("2.12", "2.13")
    assert find_spark(found.version) == found


def test_without_pyspark_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation, "version", missing)
    with pytest.raises(SparkSetupError, match=r"needs pyspark: pip install '.*\[spark\]'"):
        find_spark()


def test_spark_home_outranks_pyspark_s_own(
    tmp_path: Path, pyspark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = spark_home(tmp_path, "spark-core_2.13-4.0.0.jar", "scala-library-2.13.16.jar")
    monkeypatch.setenv("SPARK_HOME", str(home))
    assert find_spark() == (home, "4.0.0", "2.13")


def test_spark_home_and_pyspark_of_two_versions_are_refused(
    tmp_path: Path, pyspark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(spark_home(tmp_path, "spark-core_2.12-3.5.1.jar")))
    with pytest.raises(SparkSetupError, match=r"is Spark 3\.5\.1, but pyspark is 4\.0\.0: unset"):
        find_spark()


def test_a_directory_without_spark_is_named(
    tmp_path: Path, pyspark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(spark_home(tmp_path)))
    with pytest.raises(SparkSetupError, match=r"holds no jars/spark-core_\*\.jar"):
        find_spark()


def test_a_version_that_is_wanted_and_not_installed(
    tmp_path: Path, pyspark: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = spark_home(tmp_path / "pyspark", "spark-core_2.13-4.0.0.jar")
    spec = importlib.util.spec_from_file_location("pyspark", home / "__init__.py")
    monkeypatch.setattr(installation.importlib.util, "find_spec", lambda _: spec)
    assert find_spark("4.0.0").home == home
    with pytest.raises(SparkSetupError, match=r"4\.2\.0 is wanted.*pip install pyspark==4\.2\.0"):
        find_spark("4.2.0")


# -- Java ------------------------------------------------------------------------------------------


def java_home(path: Path, says: str, status: int = 0) -> Path:
    program = path / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.stderr.write({says!r})\n"
                       f"sys.exit({status})\n", encoding="utf-8")  # fmt: skip
    program.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("says", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
    ],
)
def test_java_says_which_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, major: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, says)))
    assert check_java("3.5.1") == major


def test_a_java_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, 'openjdk version "11.0.2"')))
    with pytest.raises(SparkSetupError, match=r"bin/java is Java 11: install Java 17"):
        check_java("4.0.0")


@pytest.mark.parametrize(("says", "status"), [("Hello", 0), ('version "17"', 1)])
def test_what_is_no_java_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, status: int
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, says, status)))
    with pytest.raises(SparkSetupError, match="does not print its version"):
        check_java("4.0.0")


def test_a_java_home_that_leads_nowhere_is_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAVA_HOME outranks the PATH, as in Spark's scripts."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkSetupError, match=r"JAVA_HOME is .*no bin/java: install Java 17"):
        check_java("4.0.0")


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkSetupError, match="there is no Java"):
        check_java("4.0.0")
