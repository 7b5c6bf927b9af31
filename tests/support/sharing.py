"""How `make test` shares the tests out among its workers: in units, the longest first.

A unit is what runs on one worker, one test after the other: a group (see `policy`), or else a
module, so that what the tests of a module have in common is made once. Where a module without a
group takes longer than `SPREAD_OVER_S`, each of its tests is a unit.

Workers alone have the tests' marks. They leave the group or module of each test in a file for the
scheduler: xdist's own way, `--dist loadgroup`, writes the group into the node id, which pytest 9.2
does not take any more, and then has no groups without a word.

`tests/durations.json` has the seconds of each group and module; `--durations-report FILE` measures
them. Only their order counts, so that another machine's figures serve as well, and old ones for a
while. What nobody has measured counts as many average tests.
"""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

DURATIONS = Path(__file__).resolve().parents[1] / "durations.json"

SPREAD_OVER_S = 40.0
AVERAGE_TEST_S = 0.1

_INPUT = "mockbroker-sharing"  # in xdist's workerinput: the directory for the workers' files


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--durations-report",
        metavar="FILE",
        default=None,
        help="write the seconds that each group and each module took, as JSON",
    )


@functools.cache
def recorded() -> dict[str, float]:
    """Seconds by group or module."""
    seconds: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8"))
    return seconds


def whole_of(item: pytest.Item) -> str:
    """What `DURATIONS` has a figure for: the group of a test, or its module."""
    mark = item.get_closest_marker("xdist_group")
    return item.nodeid.partition("::")[0] if mark is None else str(mark.args[0])


def is_spread(whole: str, node_id: str, seconds: Mapping[str, float]) -> bool:
    """Whether this is a test's module, and so long that each of its tests is a unit."""
    return node_id.startswith(f"{whole}::") and seconds.get(whole, 0.0) > SPREAD_OVER_S


def unit_of(whole: str, node_id: str, seconds: Mapping[str, float]) -> str:
    """The group or module of a test, or the test where its module is spread."""
    return node_id if is_spread(whole, node_id, seconds) else whole


def longest_first(tests: Sequence[tuple[str, str]], seconds: Mapping[str, float]) -> list[int]:
    """The positions of tests, given as group or module and node id, in the order to begin them.

    The longest unit is first. Tests of one module or group stay in their order, side by side.
    """
    counts = Counter(whole for whole, _ in tests)
    first: dict[str, int] = {}
    for position, (whole, _) in enumerate(tests):
        first.setdefault(whole, position)

    def place(position: int) -> tuple[float, int, int]:
        whole, node_id = tests[position]
        unit_s = seconds.get(whole, counts[whole] * AVERAGE_TEST_S)
        if is_spread(whole, node_id, seconds):
            unit_s /= counts[whole]
        return -unit_s, first[whole], position

    return sorted(range(len(tests)), key=place)


class Sharing:
    def __init__(self, config: pytest.Config) -> None:
        self.report: str | None = config.getoption("--durations-report")
        self.worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self.directory: Path | None = None
        self.wholes: dict[str, str] = {}
        self.measured: Counter[str] = Counter()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if self.directory is None:
            self.directory = Path(tempfile.mkdtemp(prefix="sharing-"))
        node.workerinput[_INPUT] = str(self.directory)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        tests = [(whole_of(item), item.nodeid) for item in items]
        self.wholes = {node_id: whole for whole, node_id in tests}
        if self.worker is not None:  # all of them sort alike, as xdist wants it
            items[:] = [items[position] for position in longest_first(tests, recorded())]
            file = Path(self.worker[_INPUT]) / f"{self.worker['workerid']}.json"
            file.write_text(json.dumps(self.wholes), encoding="utf-8")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> object | None:
        """Put units in the place of the classes and modules of `--dist loadscope`."""
        if config.getoption("dist") != "loadscope":
            return None
        from xdist.scheduler import LoadScopeScheduling

        sharing = self

        class InUnits(LoadScopeScheduling):
            def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
                assert sharing.directory is not None
                file = sharing.directory / f"{node.gateway.id}.json"
                if not file.exists():  # workers do not tell what they were asked in vain
                    raise pytest.UsageError(f"not all of these exist: {' '.join(config.args)}")
                sharing.wholes = json.loads(file.read_text(encoding="utf-8"))
                super().add_node_collection(node, collection)

            def _split_scope(self, nodeid: str) -> str:
                return unit_of(sharing.wholes[nodeid], nodeid, recorded())

        config.option.loadscopereorder = False  # it would begin with the units of many tests
        return InUnits(config, log)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.nodeid in self.wholes:
            self.measured[self.wholes[report.nodeid]] += report.duration

    def pytest_sessionfinish(self) -> None:
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
        if self.report is not None and self.worker is None:
            seconds = {whole: round(self.measured[whole], 1) for whole in sorted(self.measured)}
            Path(self.report).write_text(json.dumps(seconds, indent=1) + "\n", encoding="utf-8")
