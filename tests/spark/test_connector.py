"""The connector's jars: which versions, and what is said when those in a directory do not fit."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from mockbroker.spark import SparkSetupError, connector_jars
from mockbroker.spark.jars import Artifact, pom_of, resolve
from mockbroker.spark.settings import FAST_JVM
from mockbroker.spark.versions import NEEDS, artifacts, needs_of

FITTING = [
    "spark-sql-kafka-0-10_2.13-4.0.0.jar",
    "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    "kafka-clients-3.9.0.jar",
    "commons-pool2-2.12.0.jar",
]


@pytest.fixture(autouse=True)
def no_directory_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOCKBROKER_SPARK_JARS", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (*FITTING, "something-else-1.0.jar", "notes.txt"):
        (tmp_path / name).touch()
    return tmp_path


def names(jars: list[Path]) -> list[str]:
    return [path.name for path in jars]


def test_each_version_of_spark_has_its_artifacts() -> None:
    assert [each.file_name for each in artifacts("4.0.0")] == FITTING
    assert [each.file_name for each in artifacts("3.5.1")] == [
        "spark-sql-kafka-0-10_2.12-3.5.1.jar",
        "spark-token-provider-kafka-0-10_2.12-3.5.1.jar",
        "kafka-clients-3.4.1.jar",
        "commons-pool2-2.11.1.jar",
    ]
    assert [each.file_name for each in artifacts("4.2.0")][1:] == [
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
        "kafka-clients-3.9.2.jar",
        "commons-pool2-2.13.1.jar",
    ]


@pytest.mark.parametrize(
    ("version", "like"),
    [
        ("3.5.0", "3.5.1"),
        ("3.5.7", "3.5.1"),
        ("4.0.1", "4.0.0"),
        ("4.1.0", "4.0.0"),
        ("4.3.0", "4.2.0"),
        ("4.2.0.dev4", "4.2.0"),
    ],
)
def test_other_versions_take_what_the_nearest_older_one_needs(version: str, like: str) -> None:
    assert needs_of(version) == NEEDS[like]
    assert artifacts(version)[0].version == version


@pytest.mark.parametrize("version", ["3.4.1", "5.0.0", "2.4.8"])
def test_an_unknown_version_asks_for_a_directory(version: str) -> None:
    with pytest.raises(SparkSetupError, match=rf"Spark {version}.*--jars-dir"):
        connector_jars(version)


def test_what_is_no_version_is_named() -> None:
    with pytest.raises(SparkSetupError, match=r"'latest' is not a version.*such as 4\.0\.0"):
        connector_jars("latest")


def test_a_scala_other_than_pyspark_s_own_is_asked_for_by_name() -> None:
    """A Spark 3.5 that was built for Scala 2.13, in SPARK_HOME."""
    assert artifacts("3.5.1", "2.13")[0].name == "spark-sql-kafka-0-10_2.13"


# -- out of a directory ----------------------------------------------------------------------------


def test_the_four_jars_are_taken_out_of_a_directory_and_nothing_else(folder: Path) -> None:
    assert names(connector_jars("4.0.0", jars_dir=folder)) == FITTING


def test_the_directory_may_come_from_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOCKBROKER_SPARK_JARS", str(folder))
    assert names(connector_jars("4.0.0")) == FITTING


def test_of_several_versions_the_one_that_fits_is_taken(folder: Path) -> None:
    for name in (
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "spark-sql-kafka-0-10_2.12-3.5.1.jar",
        "kafka-clients-3.10.1.jar",
    ):
        (folder / name).touch()
    found = names(connector_jars("4.2.0", jars_dir=folder))
    assert found[0] == "spark-sql-kafka-0-10_2.13-4.2.0.jar"
    assert found[2] == "kafka-clients-3.10.1.jar"


def test_a_connector_for_another_scala_is_refused(folder: Path) -> None:
    (folder / FITTING[0]).rename(folder / "spark-sql-kafka-0-10_2.12-4.0.0.jar")
    with pytest.raises(SparkSetupError) as failure:
        connector_jars("4.0.0", jars_dir=folder)
    assert "2.12-4.0.0.jar is for Scala 2.12" in str(failure.value)
    assert "take spark-sql-kafka-0-10_2.13" in str(failure.value)


def test_a_connector_of_another_version_is_refused(folder: Path) -> None:
    with pytest.raises(SparkSetupError) as failure:
        connector_jars("4.0.1", jars_dir=folder)
    assert "is of version 4.0.0, but this is Spark 4.0.1" in str(failure.value)
    assert "put spark-sql-kafka-0-10_2.13-4.0.1.jar there" in str(failure.value)


@pytest.mark.parametrize("missing", FITTING)
def test_a_jar_that_is_missing_is_named(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    name = missing.rpartition("-")[0]
    with pytest.raises(SparkSetupError, match=rf"holds no {name}"):
        connector_jars("4.0.0", jars_dir=folder)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SparkSetupError, match=r"no directory .*/nowhere: --jars-dir"):
        connector_jars("4.0.0", jars_dir=tmp_path / "nowhere")


# -- by Maven --------------------------------------------------------------------------------------


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH and a cache with nothing in them."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("MOCKBROKER_CACHE", str(tmp_path / "cache"))
    return programs


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_without_maven_and_directory_the_ways_out_are_told(empty_path: Path) -> None:
    with pytest.raises(SparkSetupError) as failure:
        connector_jars("4.0.0")
    message = str(failure.value)
    assert "connector of Spark 4.0.0 is not here, and mvn is not on the PATH" in message
    assert all(name in message for name in (*FITTING, "Install Maven", "--jars-dir"))


def test_what_maven_says_is_passed_on_and_nothing_is_kept(empty_path: Path) -> None:
    program(empty_path / "mvn", "echo 'cannot resolve kafka-clients'; exit 1")
    for _ in range(2):
        with pytest.raises(SparkSetupError, match="cannot resolve kafka-clients"):
            connector_jars("4.0.0")


def test_maven_is_asked_once_for_each_set(empty_path: Path, tmp_path: Path) -> None:
    copy = 'for a; do case "$a" in -DoutputDirectory=*) : > "${a#*=}/x.jar";; esac; done'
    program(empty_path / "mvn", f"{copy}; echo asked >> {tmp_path}/asked")
    first = connector_jars("4.0.0")
    assert connector_jars("4.0.0") == first
    assert names(first) == ["x.jar"]
    assert first[0].is_relative_to(tmp_path / "cache")
    assert connector_jars("4.0.1") != first
    assert (tmp_path / "asked").read_text() == "asked\nasked\n"


def test_maven_starts_fast_unless_its_options_are_given(
    empty_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(empty_path / "mvn", f'echo "$MAVEN_OPTS" >> {tmp_path}/options; exit 1')
    monkeypatch.delenv("MAVEN_OPTS", raising=False)
    for _ in range(2):
        with pytest.raises(SparkSetupError):
            connector_jars("4.0.0")
        monkeypatch.setenv("MAVEN_OPTS", "-Xmx1g")
    assert (tmp_path / "options").read_text() == f"{FAST_JVM}\n-Xmx1g\n"


def test_a_maven_that_copies_nothing_has_failed(empty_path: Path) -> None:
    program(empty_path / "mvn", "exit 0")
    with pytest.raises(SparkSetupError, match="mvn copied no jar for it"):
        resolve("it", pom_of([Artifact("g", "n", "1")]))


def test_a_pom_excludes_what_its_artifacts_depend_on() -> None:
    pom = pom_of([Artifact("g", "n", "1"), Artifact("g", "m", "2")])
    assert pom.count("<groupId>*</groupId>") == 2
    assert "<artifactId>m</artifactId>\n      <version>2</version>" in pom


def test_the_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mockbroker.spark.jars import cache_dir

    monkeypatch.setenv("MOCKBROKER_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("MOCKBROKER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "mockbroker"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert cache_dir() == tmp_path / "me" / ".cache" / "mockbroker"
