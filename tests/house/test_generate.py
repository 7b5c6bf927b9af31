"""The generators of the reference pages: that they are right, not only up to date."""

from __future__ import annotations

import ast
import re

import pytest

from mockbroker.admin.v1.endpoints import ENDPOINTS
from mockbroker.core.actions import ACTIONS
from mockbroker.core.events import Event
from mockbroker.core.journal.events import KINDS
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey
from tests.simulation.exhaustive.plans import PLANS


def test_rows_are_found_on_functions_classes_modules_and_parameters(generator):
    module = ast.parse(
        """
pytestmark = [pytest.mark.java, pytest.mark.covers("S1")]

@pytest.mark.covers("S2", "S3")
def test_a(): ...

class TestB:
    @pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.covers("S5"))])
    async def test_c(self, n): ...

@pytest.mark.covers("S4")
class TestD:
    def test_e(self): ...

def helper(): ...
"""
    )
    found = dict(generator("checklist").marked(module, "t.py"))
    assert found == {
        "t.py::test_a": ["S1", "S2", "S3"],
        "t.py::TestB::test_c": ["S1", "S5"],
        "t.py::TestD::test_e": ["S1", "S4"],
    }


def test_the_checklist_names_tests_and_no_results(generator):
    page = generator("checklist").page()
    assert "| row | behaviour | tests |" in page
    assert (
        "`core/replication/test_partition.py::test_offsets_are_assigned_in_order_of_append_from_0`"
        in page
    )


def test_the_http_page_has_each_operation_of_the_document(generator):
    page = generator("admin_api").page()
    for endpoint in ENDPOINTS:
        path = re.sub(r"\{(\w+):\w+\}", r"{\1}", endpoint.path)
        assert f"| `{endpoint.method} {path}` |" in page


def test_the_journal_page_has_each_kind_and_each_fact(generator):
    page = generator("journal_events").page()
    for kind in KINDS:
        assert f"| `{kind}` |" in page
    for fact in Event.__subclasses__():
        assert f"`{fact.__name__}`" in page


def test_the_python_page_has_each_action(generator):
    page = generator("python_api").page()
    code = generator("api_code")
    for action in ACTIONS.values():
        named = [
            code.method_name(noun, action.name)
            for noun in code.NOUNS
            if code.binding(noun, action) is not None
        ]
        assert named
        if action.name not in code.NOT_METHODS:
            assert all(f"| `{name}(" in page for name in named), action.name


def test_a_machine_goes_below_the_title_of_its_page_but_its_comments_stay(generator):
    text = "# A\n\n```text\n# comment\n```\n\n## B\n"
    assert generator("state_machines").demoted(text) == (
        "## A\n\n```text\n# comment\n```\n\n### B\n"
    )


def test_each_handler_has_its_line_in_the_coverage_table(generator):
    load_all()
    page = generator("api_coverage").page()
    served = page.partition("## Not served")[0]
    for api in APIS.values():
        low, high = api.min_version, api.max_version
        versions = f"{low}-{high}" if low < high else str(low)
        assert f"| {int(api.key)} |" in served
        assert f"| {versions} |" in served


def test_each_api_of_a_broker_is_served(generator, monkeypatch: pytest.MonkeyPatch):
    coverage = generator("api_coverage")
    monkeypatch.delitem(coverage.APIS, ApiKey.SHARE_FETCH)
    with pytest.raises(SystemExit, match="serves SHARE_FETCH"):
        coverage.page()


def test_each_explored_machine_has_its_counts_and_all_that_must_hold(generator):
    """Also what is checked in the modules that a world is made of."""
    page = generator("exhaustive").page()
    for name, plan in PLANS.items():
        assert (f"| `{name}` | {plan.full_depth} |" in page) is plan.sound
        assert f"`{name}`" in page
    assert "- a generation has one leader\n" in page
    assert "- a transaction is decided once\n" in page


def test_the_diagram_has_an_arrow_for_each_transition(generator):
    states = generator("group_states")
    edges = {(state, after) for state, row in states.TRANSITIONS.items() for after in row.values()}
    assert states.picture().count("<line ") == len(edges)


def test_a_bar_in_a_cell_does_not_break_its_table(generator):
    assert generator("markdown").table(("a",), [("x|y",)]) == "| a |\n|---|\n| x\\|y |"
