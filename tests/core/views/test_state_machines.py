"""State machines as data."""

from __future__ import annotations

from mockbroker.core.groups import states as classic
from mockbroker.core.share.states import RecordState
from mockbroker.core.txn.states import TransactionState
from mockbroker.core.views.state_machines import StateMachineView, state_machine_views

MACHINES = {machine.name: machine for machine in state_machine_views()}


def pairs(machine: StateMachineView) -> dict[tuple[str, str], list[str]]:
    return {(edge.source, edge.target): edge.on for edge in machine.edges}


def test_a_machine_has_the_states_and_transitions_of_its_table():
    machine = MACHINES["classic group"]
    assert machine.states == [state.value for state in classic.ClassicGroupState]
    table = {
        (state.value, after.value)
        for state, row in classic.TRANSITIONS.items()
        for after in row.values()
    }
    assert pairs(machine).keys() == table
    assert MACHINES["transactional id"].states == [state.value for state in TransactionState]
    known = {each.name.capitalize() for each in RecordState}
    assert set(MACHINES["share record"].states) == known - {"Archiving"}  # nothing leads to it


def test_a_state_that_follows_from_facts_changes_with_one_fact():
    found = pairs(MACHINES["consumer group"])
    assert found["Assigning", "Reconciling"] == ["assigned"]
    assert found["Reconciling", "Assigning"] == ["no longer assigned"]
    assert found["Stable", "Empty"] == ["no longer has members"]
    assert found["Empty", "Dead"] == ["deleted"]


def test_every_state_can_be_reached_or_left():
    for machine in MACHINES.values():
        touched = {name for pair in pairs(machine) for name in pair}
        assert touched == set(machine.states), machine.name
