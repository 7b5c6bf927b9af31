"""What the journal costs a producer that waits for each acknowledgement.

Two clusters in one child process, one of which keeps a journal. Prints the seconds of a round trip
without and with it, and the ratio with its 95 % interval.

    python -m bench.workloads.kept_journal [BLOCKS]
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


def serve() -> None:
    """The child: serves until its standard input ends."""
    with (
        Cluster(brokers=1, topics={TOPIC: 1}, journal_bytes=0) as without,
        Cluster(brokers=1, topics={TOPIC: 1}) as with_it,
    ):
        print(without.bootstrap_servers, flush=True)
        print(with_it.bootstrap_servers, flush=True)
        sys.stdin.read()


def measure(blocks: int) -> Cost:
    """Blocks without and with the journal."""
    with (
        child("bench.workloads.kept_journal") as served,
        RawConnection(address(served.said.readline())) as without,
        RawConnection(address(served.said.readline())) as with_it,
        separate_cores([served.pid]),
    ):
        return compare(
            blocks,
            lambda: seconds_of_a_round_trip(without),
            lambda: seconds_of_a_round_trip(with_it),
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        cost = measure(int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS)
        print(json.dumps(cost._asdict()))
