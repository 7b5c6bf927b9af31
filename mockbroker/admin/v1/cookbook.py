"""Recipes for failures: those of the cookbook, as rules and actions."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall

# Made from the pages of the cookbook by `docs/generate`.
RECIPES = Path(__file__).parent / "cookbook.json"

endpoints = ApiEndpoints()


class RecipeView(msgspec.Struct, frozen=True):
    """A failure from the cookbook. `plan` goes to `POST /v1/faults`, each of the `actions` to `POST
    /v1/actions`; neither is there for a failure that its page brings about by code.

    `needs` names places to fill in: in plan and actions the text `{topic}` stands for a topic,
    likewise `{group}`, `{client}`, `{transactional_id}`, `{broker}` and `{partition}`; the last two
    are numbers.
    """

    number: int
    id: str
    name: str
    sentence: str
    chapter: str
    page: str
    plan: dict[str, Any] | None
    actions: list[dict[str, Any]]
    needs: list[str]


@cache
def recipes() -> list[RecipeView]:
    """All recipes, by number."""
    return msgspec.json.decode(RECIPES.read_bytes(), type=list[RecipeView])


@endpoints.get("/v1/cookbook", "Recipes for failures")
async def show(_: AdminBackend, _call: EndpointCall) -> list[RecipeView]:
    return recipes()
