"""The wheel, the sdist, their metadata, and what a release promises."""

from __future__ import annotations

import datetime
import email
import json
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.metadata import Metadata

from tests.house.lint import ROOT, our_files

REPOSITORY = "https://git.example/kafka/mockbroker"
PACKAGES = {
    "mockbroker": ROOT / "mockbroker",
    "mockbroker_protocol": ROOT / "protocol" / "mockbroker_protocol",
    "mockbroker_fixtures": ROOT / "fixtures" / "mockbroker_fixtures",
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = ROOT / ".github" / "workflows"


def build(root: Path, to: Path, target: str, repository: str = "") -> Path:
    """Build by the pinned hatchling that is installed: nothing is fetched."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(to)],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", "MOCKBROKER_REPOSITORY": repository},
        check=True,
        capture_output=True,
        timeout=120,
    )
    [built] = to.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel", REPOSITORY)) as it:
        yield it


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build(ROOT, folder, "sdist")) as packed:
        packed.extractall(folder, filter="data")
    [found] = [each for each in folder.iterdir() if each.is_dir()]
    return found


def metadata_of(wheel: zipfile.ZipFile) -> bytes:
    [name] = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
    return wheel.read(name)


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(wheel: zipfile.ZipFile):
    ours = set(our_files())
    wanted = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in PACKAGES.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
        if path in ours or path.suffix not in {".py"}
    }
    found = {each for each in wheel.namelist() if ".dist-info/" not in each}
    assert {f"{package}/py.typed" for package in PACKAGES} <= found
    assert found == wanted
    assert not [each for each in found if "/tests/" in each or each.startswith("tests/")]


def test_the_metadata_is_valid_and_complete(wheel: zipfile.ZipFile):
    found = Metadata.from_email(metadata_of(wheel), validate=True)
    assert (found.name, str(found.version)) == ("mockbroker", PROJECT["version"])
    assert str(found.requires_python) == ">=3.11"
    assert found.license_expression == "Apache-2.0"
    assert found.description_content_type == "text/markdown"
    assert found.project_urls is not None
    assert set(found.project_urls) == {"Source", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(REPOSITORY) for url in found.project_urls.values())
    licence = [each for each in wheel.namelist() if each.endswith("/licenses/LICENSE")]
    assert len(licence) == 1


def test_the_links_of_the_readme_are_absolute_in_a_release(wheel: zipfile.ZipFile):
    """They lead to files of the tag, which exist."""
    text = str(email.message_from_bytes(metadata_of(wheel)).get_payload())
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    base = f"{REPOSITORY}/blob/v{PROJECT['version']}/"
    ours = [link.removeprefix(base) for link in links if link.startswith(base)]
    assert len(ours) >= 10
    assert [each for each in links if not each.startswith(("https://", "#"))] == []
    assert [each for each in ours if not (ROOT / each.partition("#")[0]).exists()] == []


def test_a_build_elsewhere_claims_no_repository(sdist: Path):
    text = (sdist / "PKG-INFO").read_text(encoding="utf-8")
    assert "\nProject-URL:" not in text
    assert "](docs/tutorial.md)" in text


def test_the_wheel_has_its_command_and_its_plugin(wheel: zipfile.ZipFile):
    [name] = [each for each in wheel.namelist() if each.endswith("/entry_points.txt")]
    text = wheel.read(name).decode()
    assert "mockbroker = mockbroker.cli:main" in text
    assert "mockbroker = mockbroker_fixtures.plugin" in text


def test_the_sdist_has_what_building_and_testing_need(sdist: Path, wheel: zipfile.ZipFile):
    needed = (
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "Makefile",
    )
    for name in (*needed, "requirements/constraints.txt", "tests/conftest.py", "docs/index.md"):
        assert (sdist / name).is_file(), name
    assert not [each for each in (".venv", ".cache", "build", "dist") if (sdist / each).exists()]
    again = build(sdist, sdist / "again", "wheel", REPOSITORY)
    with zipfile.ZipFile(again) as rebuilt:
        assert sorted(rebuilt.namelist()) == sorted(wheel.namelist())


def test_each_tested_python_is_a_classifier_and_the_oldest_is_required():
    ci = yaml.safe_load((WORKFLOWS / "ci.yml").read_text(encoding="utf-8"))
    tested = ci["jobs"]["test"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: "
    named = [each.removeprefix(prefix) for each in PROJECT["classifiers"] if prefix in each]
    assert tested == [each for each in named if re.fullmatch(r"3\.\d+", each)]
    assert PROJECT["requires-python"] == f">={tested[0]}"
    assert ".ci/run" in [step.get("run") for step in ci["jobs"]["test"]["steps"]]


def test_a_release_is_tested_built_and_published_without_a_secret():
    text = (WORKFLOWS / "release.yml").read_text(encoding="utf-8")
    release = yaml.safe_load(text)
    assert release["jobs"]["test"]["uses"] == "./.github/workflows/ci.yml"
    assert (release["jobs"]["build"]["needs"], release["jobs"]["publish"]["needs"]) == (
        "test",
        "build",
    )
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", text)) <= targets
    assert "secrets." not in text


def test_the_changelog_is_in_order_and_has_the_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[([^\]]+)\](?: - (\S+))?$", text, re.MULTILINE)
    released = [(version, date) for version, date in headings if version != "Unreleased"]
    assert len(headings) == text.count("\n## ")
    assert released[0][0] == PROJECT["version"]
    dates = [datetime.date.fromisoformat(date) for _, date in released]
    assert dates == sorted(dates, reverse=True)
    versions = [tuple(map(int, version.split("."))) for version, _ in released]
    assert versions == sorted(versions, reverse=True)


# -- the bill of materials -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sbom() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "requirements" / "sbom.py"))


def test_the_bill_of_materials_has_all_that_is_needed_in_the_pinned_versions(sbom: dict[str, Any]):
    found = sbom["document"]()
    versions = {each["name"]: each["version"] for each in found["components"]}
    direct = {re.split(r"[><=]", each)[0] for each in PROJECT["dependencies"]}
    assert direct <= versions.keys()
    pinned = sbom["pins"]()
    vendored = {each["name"] for each in sbom["vendored"]()}
    assert vendored == {"htm", "preact", "uplot"}
    assert vendored <= versions.keys()
    assert {name: pinned[name] for name in versions.keys() - vendored}.items() <= versions.items()
    assert not {"pytest", "pyspark", "ruff"} & versions.keys()
    more = {each["name"] for each in sbom["document"](["tls", "pipeline"])["components"]}
    assert {"cryptography", "duckdb", *versions} <= more


def test_the_bill_of_materials_is_cyclonedx_and_always_the_same(sbom: dict[str, Any]):
    found = sbom["document"](["pipeline"])
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", found["serialNumber"])
    references = [found["metadata"]["component"]["bom-ref"]]
    references += [each["bom-ref"] for each in found["components"]]
    assert len(set(references)) == len(references)
    assert [each["ref"] for each in found["dependencies"]] == references
    for each in found["dependencies"]:
        assert set(each["dependsOn"]) <= set(references)
    assert json.dumps(sbom["document"](["pipeline"])) == json.dumps(found)


def test_another_version_than_the_pinned_one_is_refused(sbom: dict[str, Any]):
    with pytest.raises(SystemExit, match=r"click .* is installed, but 0\.1 is pinned"):
        sbom["component"]("click", {"click": "0.1"})
