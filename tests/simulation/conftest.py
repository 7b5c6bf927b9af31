"""A cluster that laws look at."""

from __future__ import annotations

import pytest

from mockbroker.simulation.world import World
from tests.simulation.meddling import new_world


@pytest.fixture
def world() -> World:
    return new_world()
