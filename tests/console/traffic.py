"""Requests at a rate: `python -m tests.console.traffic HOST:PORT CONNECTIONS RATE SECONDS`.

Each connection waits for its answer before the next request. Prints the number of requests.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack

from bench.raw import RawConnection, api_versions


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    connections, rate, seconds = map(int, sys.argv[2:])
    sent = [0] * connections
    nobody_sets_it = threading.Event()
    with ExitStack() as stack:
        opened = [stack.enter_context(RawConnection((host, int(port)))) for _ in range(connections)]
        begun = time.perf_counter()
        count = 0
        while (elapsed := time.perf_counter() - begun) < seconds:
            if count >= elapsed * rate:
                nobody_sets_it.wait(count / rate - elapsed)
                continue
            which = count % connections
            opened[which].round_trip(api_versions())
            sent[which] += 1
            count += 1
    print(sum(sent))


if __name__ == "__main__":
    main()
