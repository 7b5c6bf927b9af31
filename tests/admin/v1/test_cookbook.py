"""The recipes of the cookbook as data."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.admin.v1.cookbook import RecipeView, recipes
from mockbroker.core.actions import parse_action
from mockbroker.core.faults.rules import parse_plan
from tests.house.lint import ROOT
from tests.support.http import HttpClient

VALUES: dict[str, object] = {
    "{topic}": "orders",
    "{group}": "billing",
    "{client}": "shop",
    "{transactional_id}": "till",
    "{broker}": 1,
    "{partition}": 0,
}


def filled(value: Any) -> Any:
    if isinstance(value, str):
        return VALUES.get(value, value)
    if isinstance(value, dict):
        return {key: filled(each) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each) for each in value]
    return value


def test_the_recipes_are_numbered_as_on_their_pages(admin: HttpClient) -> None:
    found = admin.get("/v1/cookbook")
    assert [each["number"] for each in found] == list(range(1, len(found) + 1))
    for each in found:
        page = (ROOT / "docs" / each["page"]).read_text(encoding="utf-8")
        heading = f"### {each['number']}. {each['name']}"
        assert heading in page.replace("`", "")
        assert each["sentence"].endswith((".", ":"))


@pytest.mark.parametrize("recipe", recipes(), ids=lambda each: each.id)
def test_plan_and_actions_are_accepted_once_the_places_are_filled(recipe: RecipeView) -> None:
    said = str((recipe.plan, recipe.actions))
    places = {place for place in VALUES if place in said}
    assert places == {f"{{{name}}}" for name in recipe.needs}
    if recipe.plan is not None:
        parse_plan(filled(recipe.plan), "recipe")
    for action in recipe.actions:
        [(name, arguments)] = filled(action).items()
        parse_action(name, arguments)


def test_most_recipes_need_no_code() -> None:
    done = [each for each in recipes() if each.plan is not None or each.actions]
    assert len(done) >= 24


def test_a_recipe_is_added_with_one_request(admin: HttpClient) -> None:
    first = next(each for each in recipes() if each.plan is not None)
    admin.post("/v1/faults", filled(first.plan), 201)
    admin.request("DELETE", f"/v1/faults/recipe-{first.number}")
