"""What a hundred rules that match nothing cost a producer that waits for each acknowledgement.

A cluster in a child process is told to put the rules in force and to take them away again. Prints
the seconds of a round trip without and with them, and the ratio with its 95 % interval.

    python -m bench.workloads.idle_rules [BLOCKS]
"""

from __future__ import annotations

import json
import sys

from bench.placement import separate_cores
from bench.raw import RawConnection
from bench.workloads.pairs import (
    BLOCKS,
    TOPIC,
    Cost,
    address,
    child,
    compare,
    seconds_of_a_round_trip,
)
from mockbroker import Cluster

RULES = 100

# Rules of every kind that a Produce has to be looked at for.
MATCHES: tuple[dict[str, object], ...] = (
    {"topic": "other-{}"},
    {"client_id": "app-{}-*"},
    {"transactional_id": "tx-{}"},
    {"broker": [7, 8]},
    {"topic": "/^other-{}/"},
    {"group": "group-{}"},
)


def plan() -> dict[str, object]:
    """A hundred rules, none of which ever fires here."""
    rules = []
    for number in range(RULES):
        chosen = MATCHES[number % len(MATCHES)]
        match = {k: v.format(number) if isinstance(v, str) else v for k, v in chosen.items()}
        rules.append({"match": {"api": "Produce", **match}, "do": {"drop_reply": {}}})
    return {"name": "idle", "rules": rules}


def serve() -> None:
    """The child: a cluster whose rules come and go with the lines of its standard input."""
    with Cluster(brokers=1, topics={TOPIC: 1}) as kafka:
        print(kafka.bootstrap_servers, flush=True)
        for line in sys.stdin:
            kafka.faults.clear()
            if line.strip() == "on":
                kafka.faults.add(plan())
            print("ok", flush=True)


def measure(blocks: int) -> Cost:
    """Blocks without and with the rules."""
    with (
        child("bench.workloads.idle_rules") as served,
        RawConnection(address(served.said.readline())) as connection,
        separate_cores([served.pid]),
    ):

        def turn(word: str) -> float:
            print(word, file=served.told, flush=True)
            served.said.readline()
            return seconds_of_a_round_trip(connection)

        return compare(blocks, lambda: turn("off"), lambda: turn("on"))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        cost = measure(int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS)
        print(json.dumps(cost._asdict()))
