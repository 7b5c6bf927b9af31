"""The front page's picture: clients, brokers, rules, journal and audit."""

from __future__ import annotations

from enum import Enum

import diagram


class Part(Enum):
    CLIENTS = "Kafka clients"
    RULES = "rules"
    BROKERS = "brokers"
    CONTROLLER = "controller"
    JOURNAL = "journal"
    TESTS = "tests"
    AUDIT = "tables and audit"


PLACES = {
    Part.CLIENTS: (110, 60),
    Part.RULES: (400, 60),
    Part.BROKERS: (690, 60),
    Part.CONTROLLER: (690, 190),
    Part.JOURNAL: (400, 190),
    Part.TESTS: (110, 190),
    Part.AUDIT: (400, 310),
}

EDGES = {
    (Part.CLIENTS, Part.RULES): ["requests"],
    (Part.RULES, Part.BROKERS): ["handlers"],
    (Part.CONTROLLER, Part.BROKERS): ["metadata"],
    (Part.BROKERS, Part.JOURNAL): ["events"],
    (Part.JOURNAL, Part.TESTS): ["queries"],
    (Part.JOURNAL, Part.AUDIT): ["Parquet"],
}


def picture() -> str:
    return diagram.draw("mockbroker at a glance", PLACES, EDGES, (800, 350))
