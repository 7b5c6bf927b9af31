"""The page of faults: rules, held requests, recipes, the editor, the clock."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from mockbroker import Cluster
from tests.console import situations
from tests.console.conftest import OpenConsole
from tests.support.browser import Holding, violations
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser


def clipboard(page: Page) -> str:
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def copy_as(page: Page, kind: str) -> str:
    page.get_by_role("button", name="Copy as").first.click()
    page.get_by_role("menuitem", name=kind).click()
    expect(page.get_by_text(f"Copied as {kind}.")).to_be_visible()
    return clipboard(page)


# -- rules -----------------------------------------------------------------------------------------


def test_hits_are_counted_while_one_looks(orders: Cluster, console: OpenConsole):
    orders.faults.add(name="odd", match={"api": "Produce"}, do={"observe": {}})
    page = console(orders, "faults")
    row = page.get_by_role("row").filter(has_text="odd")
    expect(row.get_by_role("cell").nth(3)).to_have_text("0")
    situations.produce(orders, "orders", 3)
    expect(row.get_by_role("cell").nth(3)).to_have_text("3")
    row.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No rule is in force")).to_be_visible()
    assert orders.faults.plans() == []


def test_a_rule_says_why_it_did_not_fire(orders: Cluster, console: OpenConsole):
    orders.faults.add(
        name="never", match={"api": "Produce", "client_id": "billing-*"}, do={"drop_request": {}}
    )
    situations.produce(orders, "orders", 2)
    page = console(orders, "faults/rules")
    page.get_by_role("cell", name="never", exact=True).click()
    panel = page.get_by_role("region", name="never")
    expect(panel).to_contain_text("2 requests failed first at client_id")
    python = copy_as(page, "Python")
    assert python.startswith("kafka.faults.add(name=")
    assert '"client_id": "billing-*"' in python


# -- held requests ---------------------------------------------------------------------------------


def test_a_held_produce_is_edited_and_released(console: OpenConsole):
    with (
        Cluster(brokers=1, topics={"orders": 2}) as kafka,
        situations.held_produce(kafka) as held,
    ):
        page = console(kafka, "faults/held")
        field = page.get_by_role("textbox", name="topic_data[].partition_data[].index")
        expect(field).to_have_value("0")
        field.fill("1")
        page.get_by_role("button", name="Release with 1 edit").click()
        expect(page.get_by_text("Nothing is held")).to_be_visible()
        wait_until(lambda: held.reports == [(None, 0)])
        appends = kafka.journal.events(kind="append", topic="orders")
        assert [event.partition for event in appends] == [1]


def test_a_wrong_edit_is_told_in_its_place_and_the_request_stays_held(
    orders: Cluster, console: OpenConsole
):
    with situations.held_produce(orders) as held:
        page = console(orders, "faults/held", allowed=["status of 400"])
        page.get_by_role("textbox", name="acks").fill("many")
        page.get_by_role("button", name="Release with 1 edit").click()
        expect(page.get_by_role("alert")).to_contain_text("cks")
        page.get_by_role("textbox", name="acks").fill("-1")
        page.get_by_role("button", name="Release", exact=True).click()
        wait_until(lambda: held.reports == [(None, 0)])


def test_a_held_request_is_answered_with_an_error(orders: Cluster, console: OpenConsole):
    with situations.held_produce(orders) as held:
        page = console(orders, "faults/held")
        page.get_by_label("Answer with").fill("message_too_large")
        page.get_by_role("button", name="Answer", exact=True).click()
        wait_until(lambda: [name for name, _ in held.reports] == ["MSG_SIZE_TOO_LARGE"])


def test_a_dropped_request_leaves_its_client_waiting(orders: Cluster, console: OpenConsole):
    with situations.held_produce(orders) as held:
        page = console(orders, "faults/held")
        page.get_by_role("button", name="Reset", exact=True).click()
        expect(page.get_by_text("Nothing is held")).to_be_visible()
        wait_until(lambda: held.reports == [(None, 0)])  # its client sends it again


# -- recipes ---------------------------------------------------------------------------------------


def test_a_recipe_is_in_force_with_one_click(orders: Cluster, console: OpenConsole):
    page = console(orders, "faults/recipes")
    page.get_by_role("searchbox", name="Search recipes").fill("stores nothing twice")
    recipe = page.get_by_role("article")
    expect(recipe).to_have_count(1)
    recipe.get_by_role("button", name="Do it").click()
    expect(page.get_by_text("The rule is in force.")).to_be_visible()
    ((rule,),) = [plan["rules"] for plan in orders.faults.plans()]
    assert rule["match"]["topic"] == "orders"
    assert "drop_reply" in rule["do"]


# -- the editor ------------------------------------------------------------------------------------


def write(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Rule or plan").fill(text)


def test_what_is_wrong_is_said_while_one_types(orders: Cluster, console: OpenConsole):
    page = console(orders, "faults/editor")
    told = page.locator("#editor-told")
    button = page.get_by_role("button", name="Put in force")
    expect(told).to_have_text("This can be put in force.")
    write(page, '{"match": {"topik": "orders"}, "do": {"delay": "5s"}}')
    expect(told).to_contain_text('match.topik: unknown field "topik"; did you mean "topic"?')
    expect(button).to_be_disabled()
    write(page, '{"match": {"api": "Produce"}, "do": {"delay": "soon"}}')
    expect(told).to_contain_text("do.delay")
    write(page, '{"match": {"api": "Produce"}, "do": {"drop_reply": {"then": "rest"}}}')
    expect(told).to_contain_text('did you mean "reset"?')
    write(page, '{"match": ')
    expect(told).to_contain_text("This is not JSON yet")
    write(page, '{"match": {"api": "Produce"}}')
    expect(told).to_contain_text('"do" is missing')
    expect(button).to_be_disabled()


def test_fields_and_values_are_completed_from_the_schema_and_the_cluster(
    orders: Cluster, console: OpenConsole
):
    page = console(orders, "faults/editor")
    expect(page.locator("#editor-told")).to_have_text("This can be put in force.")
    write(page, "")
    area = page.get_by_role("textbox", name="Rule or plan")
    area.press_sequentially('{"match": {"top')
    options = page.get_by_role("option")
    expect(options.filter(has_text='"topic"')).to_be_visible()
    area.press("Enter")
    area.press_sequentially("ord")
    expect(options).to_have_text(['"orders"'])
    area.press("Tab")
    area.press_sequentially('}, "do": {"drop_re')
    options.filter(has_text='"drop_reply"').click()
    area.press_sequentially('"then": "')
    expect(options.filter(has_text='"reset"')).to_be_visible()
    area.press_sequentially("res")
    area.press("Enter")
    area.press_sequentially("}}}")
    page.get_by_role("button", name="Put in force").click()
    expect(page.get_by_role("table", name="Rules")).to_contain_text("drop_reply")
    ((rule,),) = [plan["rules"] for plan in orders.faults.plans()]
    assert rule["match"] == {"topic": "orders"}
    assert rule["do"] == {"drop_reply": {"then": "reset"}}


def test_names_that_come_after_the_word_complete_it(orders: Cluster, console: OpenConsole):
    topics = Holding()
    page = console(orders, "faults/editor", routes={"**/v1/topics": topics})
    expect(page.locator("#editor-told")).to_have_text("This can be put in force.")
    write(page, "")
    page.get_by_role("textbox", name="Rule or plan").press_sequentially('{"match": {"topic": "ord')
    options = page.get_by_role("option")
    expect(options).to_have_count(0)
    topics.let_go()
    expect(options).to_have_text(['"orders"'])


def test_the_chosen_completion_stays_when_more_come(orders: Cluster, console: OpenConsole):
    situations.produce(orders, "orders", 1)  # its client has sent ApiVersions, too
    clients = Holding()
    page = console(orders, "faults/editor", routes={"**/v1/clients": clients})
    expect(page.locator("#editor-told")).to_have_text("This can be put in force.")
    write(page, "")
    area = page.get_by_role("textbox", name="Rule or plan")
    area.press_sequentially('{"match": {"api": "i')
    options = page.get_by_role("option")
    common = ['"InitProducerId"', '"FindCoordinator"', '"JoinGroup"', '"OffsetCommit"']
    expect(options).to_have_text(common)
    for _ in common[1:]:
        area.press("ArrowDown")
    clients.let_go()
    expect(options).to_have_text([*common[:3], '"ApiVersions"', common[3]])
    expect(options.and_(page.locator("[aria-selected=true]"))).to_have_text(common[3])
    area.press("Enter")
    assert area.input_value() == '{"match": {"api": "OffsetCommit"'


def test_what_the_cluster_refuses_is_told_at_the_editor(orders: Cluster, console: OpenConsole):
    page = console(orders, "faults/editor", allowed=["status of 400"])
    write(page, '{"match": {"topic": "/(/"}, "do": {"observe": {}}}')
    page.get_by_role("button", name="Put in force").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert orders.faults.plans() == []


def test_a_rule_can_be_pasted_as_yaml_and_as_curl(orders: Cluster, console: OpenConsole):
    page = console(orders, "faults/editor")
    expect(page.locator("#editor-told")).to_have_text("This can be put in force.")
    yaml = copy_as(page, "YAML")
    assert "api: Produce" in yaml
    curl = copy_as(page, "curl")
    assert curl.startswith("curl -sS -X POST")
    assert f"{orders.admin_url}/v1/faults" in curl


# -- the clock -------------------------------------------------------------------------------------


def test_the_clock_is_frozen_and_advanced_to_the_next_timer_which_is_named(
    orders: Cluster, console: OpenConsole
):
    with situations.reader(orders, "billing", "orders", session_timeout_ms=60_000):
        wait_until(lambda: [group.state for group in orders.groups()] == ["Stable"])
        page = console(orders, "faults/clock")
        page.get_by_role("button", name="Freeze").click()
        expect(page.get_by_text("frozen: no timer runs")).to_be_visible()
        before = orders.clock.now_ms
        line = page.locator(".note-line")
        expect(line).to_contain_text("Next:")
        page.get_by_role("button", name="Advance to the next timer").click()
        expect(page.get_by_text("due now.").first).to_be_visible()
        assert orders.clock.now_ms > before
        expect(page.get_by_role("table", name="Timers")).to_contain_text("billing")
        page.get_by_role("button", name="Let it run").click()
        expect(page.get_by_text("frozen: no timer runs")).to_be_hidden()


def test_the_clock_is_advanced_by_a_minute(orders: Cluster, console: OpenConsole):
    page = console(orders, "faults/clock")
    before = orders.clock.now_ms
    page.get_by_role("button", name="1 min", exact=True).click()
    wait_until(lambda: orders.clock.now_ms >= before + 60_000)


# -- all tabs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_in_the_way_of_anybody(orders: Cluster, console: OpenConsole, scheme: str):
    orders.faults.add(name="odd", match={"api": "Produce"}, do={"observe": {}})
    with situations.held_produce(orders):
        page = console(orders, "faults", scheme=scheme)
        for tab in ("Rules", "Held", "Recipes", "Editor", "Clock", "Done"):
            page.get_by_role("tab", name=tab).click()
            expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
            expect(page.locator(".skeleton")).to_have_count(0)
            assert violations(page) == [], tab
        orders.faults.held()[0].release()


def test_actions_of_a_tab_become_a_scenario(orders: Cluster, console: OpenConsole):
    with situations.hanging_transaction(orders):
        page = console(orders, "transactions")
        page.get_by_role("button", name="Abort").click()
        expect(page.get_by_text("No transaction is open")).to_be_visible()
        page.get_by_role("link", name="Faults").click()
        page.get_by_role("tab", name="Done").click()
        assert "abort_transaction" in copy_as(page, "YAML")
