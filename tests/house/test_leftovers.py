"""What tests leave behind fails their run: files in the temporary directory, and threads."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.support.bare_pytest import use_only

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    use_only(monkeypatch)


CONFTEST = """
from tests.support.leftovers import LeftFiles, LeftThreads

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(LeftFiles(), "left-files")
    config.pluginmanager.register(LeftThreads(), "left-threads")
"""
TESTS = """
import tempfile

def test_it_makes_a_directory(tmp_path):
    print("made", tempfile.mkdtemp(prefix={prefix!r}), tmp_path)

def test_it_makes_none():
    pass
"""


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize(("prefix", "code"), [("mockbroker-audit-", 1), ("java-", 0)])
def test_only_files_of_ours_fail_the_run(
    pytester: pytest.Pytester,
    workers: str,
    prefix: str,
    code: int,
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS.format(prefix=prefix))
    result = pytester.runpytest_subprocess("-rP", "-n", workers, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
    assert result.ret == code
    [(_, made, kept)] = [line.split() for line in result.outlines if line.startswith("made ")]
    assert Path(made).name.startswith(prefix)
    assert not Path(made).parent.exists()
    assert Path(made).parent.parent == Path(tempfile.gettempdir())
    assert Path(made).parent not in Path(kept).parents
    assert (Path(made).name in result.outlines) == bool(code)


THREADS = """
import threading
import pytest

GO_ON = threading.Event()

@pytest.fixture(scope="session")
def shared():
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield
    end.set()
    thread.join()

def test_it_starts_a_thread(shared):
    threading.Thread(target=GO_ON.wait, name={name!r}, daemon=True).start()

def test_it_starts_none():
    pass
"""


@pytest.mark.parametrize(
    ("workers", "name", "code"),
    [("0", "a client", 1), ("2", "a client", 1), ("2", "Trio thread 7", 0)],
)
def test_a_thread_that_outlives_the_fixtures_fails_the_run(
    pytester: pytest.Pytester, workers: str, name: str, code: int
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_threads=THREADS.format(name=name))
    result = pytester.runpytest_subprocess("-n", workers, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
    assert result.ret == code
    told = "a client, first seen after test_threads.py::test_it_starts_a_thread"
    assert (told in result.outlines) == bool(code)


LASTING = """
import importlib.util
import pathlib
import threading

def test_it_starts_a_thread():
    path = pathlib.Path(__file__).with_name({folder!r}) / "gateway.py"
    path.parent.mkdir()
    path.write_text("def run(event): event.wait()")
    spec = importlib.util.spec_from_file_location("gateway", path)
    gateway = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gateway)
    threading.Thread(target=gateway.run, args=(threading.Event(),), daemon=True).start()
"""


@pytest.mark.parametrize(("folder", "code"), [("py4j", 0), ("py4", 1)])
def test_threads_of_the_gateway_to_spark_may_last(
    pytester: pytest.Pytester, folder: str, code: int
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_threads=LASTING.format(folder=folder))
    result = pytester.runpytest_subprocess("-n", "0", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    assert result.ret == code
