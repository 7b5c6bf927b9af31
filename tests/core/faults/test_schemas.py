"""The schema of rules accepts the same data as `parse_plan`."""

from __future__ import annotations

import jsonschema_rs
import pytest

from mockbroker.core.actions import ACTIONS, parse_action
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.rules import parse_plan
from mockbroker.core.faults.schemas import InputSchemas
from mockbroker.core.validation import ValidationError


def validator(of: str) -> jsonschema_rs.Validator:
    schemas = InputSchemas("#/$defs/{name}")
    schema = getattr(schemas, of)()
    return jsonschema_rs.validator_for({**schema, "$defs": schemas.components})


@pytest.fixture(scope="module")
def plans() -> jsonschema_rs.Validator:
    return validator("plan")


@pytest.mark.parametrize(
    "plan",
    [
        {"do": {"drop_request": {}}},
        {"do": {"drop_request": None, "delay": "5s"}},
        {"do": {"drop_request": True, "delay": 5000.0}},
        {"match": {"api": ["Produce", 1], "topic": "orders-*"}, "do": {"error": 3}},
        {"match": None, "when": True, "do": {"error": "NOT_LEADER_OR_FOLLOWER"}},
        {"match": {"connection": {"nth": 2}}, "do": {"stop_broker": 2}},
        {"when": {"from": "1.5h", "barrier": "other", "step": {"at": "a"}}, "do": {"observe": {}}},
        {"name": "bad-day", "seed": 7, "rules": [{"do": {"delay": {"uniform": [1, "2s"]}}}]},
        {"timeline": [{"at": "5s", "do": {"stop_broker": {"node": 2, "how": "unclean"}}}]},
    ],
    ids=str,
)
def test_accepted_data_fits_the_schema(plans: jsonschema_rs.Validator, plan: object) -> None:
    parse_plan(plan, "some")
    assert plans.is_valid(plan)


@pytest.mark.parametrize(
    "plan",
    [
        {"do": {}},
        {"do": {"drop_requests": {}}},
        {"do": {"delay": "soon"}},
        {"do": {"delay": -1}},
        {"do": {"drop_reply": "never"}},
        {"do": {"stop_broker": None}},
        {"match": {"topik": "x"}, "do": {"delay": 1}},
        {"match": {"partition": "0"}, "do": {"delay": 1}},
        {"when": {"probability": 1.5}, "do": {"delay": 1}},
        {"when": {"times": -1}, "do": {"delay": 1}},
        {"timeline": [{"at": "5s", "do": {"delay": 1}}]},
        {"rules": [{"match": {"api": "Produce"}}]},
        {"seed": "7", "rules": [{"do": {"delay": 1}}]},
    ],
    ids=str,
)
def test_data_outside_of_the_schema_is_refused(
    plans: jsonschema_rs.Validator, plan: object
) -> None:
    assert not plans.is_valid(plan)
    with pytest.raises(ValidationError):
        parse_plan(plan, "some")


def test_every_effect_and_action_has_a_schema() -> None:
    schemas = InputSchemas("#/{name}")
    assert schemas.action()["properties"].keys() == ACTIONS.keys()
    schemas.plan()
    assert schemas.components["Effects"]["properties"].keys() == {*EFFECTS, *ACTIONS}
    assert schemas.components["Actions"]["properties"].keys() == ACTIONS.keys()


def test_a_single_action_has_a_schema() -> None:
    actions = validator("action")
    parse_action("stop_broker", 3)
    assert actions.is_valid({"stop_broker": 3})
    assert not actions.is_valid({"stop_broker": 3, "start_broker": 3})
    assert not actions.is_valid({})
