"""The rules that `tests/support/policy.py` and `covers.py` put on a test run."""

from __future__ import annotations

import importlib
import sys

import pytest

from tests.support import policy

pytest_plugins = ["pytester"]

PLUGINS = """
    import pytest
    from tests.support import covers, policy

    def pytest_configure(config):
        for name in ("covers(*rows)", "java", "spark"):
            config.addinivalue_line("markers", name)
        config.pluginmanager.register(policy.Policy())
        config.pluginmanager.register(covers.Covers())
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A scratch project that has the house's plugins."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(policy, "allowed_skips", lambda: {"test_it.py::test_allowed": "a reason"})
    pytester.makeconftest(PLUGINS)
    return pytester


def test_an_allowed_skip_needs_a_reason():
    lines = ["# comment", "", "tests/a.py::test_b # no such tool"]
    assert policy.parse_allowed(lines) == {"tests/a.py::test_b": "no such tool"}
    with pytest.raises(ValueError, match="gives no reason"):
        policy.parse_allowed(["tests/a.py::test_b"])


def test_a_skip_with_a_reason_is_fine_outside_ci(project: pytest.Pytester):
    project.makepyfile(test_it="import pytest\ndef test_a(): pytest.skip('because')")
    project.runpytest().assert_outcomes(skipped=1)


def test_a_skip_without_a_reason_fails(project: pytest.Pytester):
    project.makepyfile(test_it="import pytest\n@pytest.mark.skip\ndef test_a(): pass")
    result = project.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*skipped without a reason*"])


def test_only_listed_tests_skip_in_ci(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CI", "true")
    project.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.parametrize("n", [1, 2])
        def test_allowed(n):
            pytest.skip("known")

        def test_other():
            pytest.skip("surprise")
        """
    )
    result = project.runpytest()
    result.assert_outcomes(skipped=2, failed=1)
    result.stdout.fnmatch_lines(["*test_other may not skip in CI*surprise*"])


def test_a_module_cannot_skip_itself_in_ci(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CI", "true")
    project.makepyfile(
        test_it="import pytest\npytest.skip('not today', allow_module_level=True)",
    )
    result = project.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*may not skip in CI*not today*"])


def test_an_expected_failure_is_no_skip(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CI", "true")
    project.makepyfile(test_it="import pytest\n@pytest.mark.xfail\ndef test_a(): assert False")
    project.runpytest().assert_outcomes(xfailed=1)


def test_a_missing_tool_skips_its_suite_by_name(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(policy, "missing_tool", {"java": "mvn", "spark": None}.get)
    monkeypatch.setattr(policy, "TOOLS", {"java": ("mvn",), "spark": ("mvn",)})
    project.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.java
        def test_a(): raise AssertionError

        @pytest.mark.spark
        def test_b(): pass
        """
    )
    result = project.runpytest("-rs")
    result.assert_outcomes(skipped=1, passed=1)
    result.stdout.fnmatch_lines(["*mvn is not on the PATH*"])


def test_suites_that_share_a_jvm_share_a_worker(project: pytest.Pytester):
    module = """
        import pytest

        @pytest.mark.{0}
        def test_a(request):
            groups = [mark.args[0] for mark in request.node.iter_markers("xdist_group")]
            assert groups == [{1!r}]
        """
    project.makepyfile(
        **{
            "clients/test_java": module.format("java", "java:clients"),
            "test_spark": module.format("spark", "spark"),
        }
    )
    project.runpytest().assert_outcomes(passed=2)


def test_suites_that_download_have_more_time(project: pytest.Pytester):
    project.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.java
        def test_a(request):
            assert request.node.get_closest_marker("timeout").args == (1_000,)

        @pytest.mark.java
        @pytest.mark.timeout(5)
        def test_b(request):
            assert request.node.get_closest_marker("timeout").args == (5,)

        def test_c(request):
            assert request.node.get_closest_marker("timeout") is None
        """
    )
    project.runpytest().assert_outcomes(passed=3)


def test_an_unknown_row_stops_the_run(project: pytest.Pytester):
    project.makepyfile(
        test_it="import pytest\n@pytest.mark.covers('S9999')\ndef test_a(): pass",
    )
    result = project.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unknown rows*S9999*"])


@pytest.mark.parametrize("name", ["numpy", "duckdb"])
def test_a_library_that_can_be_imported_once_survives_a_run_in_this_process(
    pytester: pytest.Pytester, name: str
):
    """`pytester` takes away the modules that its run has imported. A later test of this worker
    would import them again: numpy refuses that, duckdb ends the process.
    """
    pytester.makepyfile(test_it=f"def test_a(): import {name}")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert importlib.import_module(name) is sys.modules[name]
