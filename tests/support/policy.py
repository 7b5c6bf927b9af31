"""House rules of a test run: who shares a worker, what may be missing, what may skip.

- Suites that share something expensive run on one worker: Spark and the real broker have one group
  each, Java tests one for each directory, whose JVMs are fixtures of the session. A test that names
  a group itself keeps it, as those that start several real brokers.
- Suites that may have to download their tools' packages first have a longer timeout.
- A tool that is not installed skips the tests that need it, and says so.
- A skip has a reason. In CI only the tests listed in `tests/ci_skips.txt` may skip at all, so that
  a suite cannot disappear unnoticed.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

ALLOWED_SKIPS = Path(__file__).resolve().parents[1] / "ci_skips.txt"

# marker -> the commands that its tests run
TOOLS: dict[str, tuple[str, ...]] = {
    "java": ("java", "javac", "mvn"),
    "spark": ("java", "mvn"),
    "real_kafka": ("java", "mvn"),
    "node": ("node", "npm"),
    "go": ("go",),
    "browser": ("chromium",),
}

# The first run on a machine downloads jars, modules and packages before such a test can begin.
# Chromium comes with the machine.
DOWNLOADS = TOOLS.keys() - {"browser"}
DOWNLOAD_TIMEOUT_S = 1_000

ONE_GROUP = ("real_kafka", "spark")
GROUP_PER_DIRECTORY = ("java",)


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


@functools.cache
def missing_tool(marker: str) -> str | None:
    return next((tool for tool in TOOLS[marker] if shutil.which(tool) is None), None)


def parse_allowed(lines: Iterable[str]) -> dict[str, str]:
    """Node id -> reason. Raises ValueError for an entry without a reason."""
    allowed: dict[str, str] = {}
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        node_id, _, reason = line.partition(" # ")
        if not reason.strip():
            raise ValueError(f"{ALLOWED_SKIPS.name}: {line.strip()!r} gives no reason")
        allowed[node_id.strip()] = reason.strip()
    return allowed


@functools.cache
def allowed_skips() -> dict[str, str]:
    return parse_allowed(ALLOWED_SKIPS.read_text(encoding="utf-8").splitlines())


def objection(node_id: str, reason: str, *, ci: bool, allowed: Iterable[str]) -> str | None:
    """Say what is wrong with this skip, or None when it is in order."""
    reason = reason.removeprefix("Skipped").removeprefix(":").strip()
    if not reason or reason == "unconditional skip":
        return f"{node_id} is skipped without a reason"
    if not ci:
        return None
    names = {node_id, node_id.partition("[")[0], node_id.partition("::")[0]}
    if names.isdisjoint(allowed):
        return f"{node_id} may not skip in CI; it is not in {ALLOWED_SKIPS.name}: {reason}"
    return None


def _object_to_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    problem = objection(report.nodeid, reason, ci=in_ci(), allowed=allowed_skips())
    if problem is not None:
        report.outcome = "failed"
        report.longrepr = problem


class Policy:
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            downloads = any(item.get_closest_marker(marker) is not None for marker in DOWNLOADS)
            if downloads and item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(DOWNLOAD_TIMEOUT_S))
            if item.get_closest_marker("xdist_group") is not None:
                continue
            for name in ONE_GROUP + GROUP_PER_DIRECTORY:
                if item.get_closest_marker(name) is not None:
                    directory = item.nodeid.partition("::")[0].rpartition("/")[0]
                    group = name if name in ONE_GROUP else f"{name}:{directory}"
                    item.add_marker(pytest.mark.xdist_group(group))
                    break

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        for marker in TOOLS:
            if item.get_closest_marker(marker) is not None and (tool := missing_tool(marker)):
                pytest.skip(f"{tool} is not on the PATH")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        _object_to_skip(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        _object_to_skip(report)
        return report
