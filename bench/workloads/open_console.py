"""What an open console costs a producer that waits for each acknowledgement.

A cluster in a child process has the admin server. Chromium has the console's timeline open, or an
empty page. A block is long enough for several looks of the page at the journal, and its figure is
the mean: a look delays only the requests that meet it. Prints the seconds of a round trip without
and with it, and the ratio with its 95 % interval. Needs `chromium` and playwright.

    python -m bench.workloads.open_console [BLOCKS]
"""

from __future__ import annotations

import json
import shutil
import sys
import time

from bench.placement import separate_cores
from bench.raw import RawConnection
from bench.workloads.pairs import (
    BLOCKS,
    TOPIC,
    Cost,
    address,
    child,
    compare,
    produce_frame,
)
from mockbroker import Cluster

ROUND_TRIPS = 5_000  # of each block: a second or more


def serve() -> None:
    """The child: serves until its standard input ends."""
    with Cluster(brokers=1, topics={TOPIC: 1}, journal_overflow="drop") as kafka:
        print(kafka.bootstrap_servers, flush=True)
        print(kafka.admin_url, flush=True)
        sys.stdin.read()


def mean_s(connection: RawConnection) -> float:
    frame = produce_frame()
    begun = time.perf_counter()
    for _ in range(ROUND_TRIPS):
        connection.round_trip(frame)
    return (time.perf_counter() - begun) / ROUND_TRIPS


def measure(blocks: int) -> Cost:
    """Blocks with an empty page and with the timeline, which follows the producer."""
    from playwright.sync_api import sync_playwright

    with (
        child("bench.workloads.open_console") as served,
        RawConnection(address(served.said.readline())) as connection,
        sync_playwright() as playwright,
        playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        ) as browser,
        separate_cores([served.pid]),
    ):
        page = browser.new_page()
        timeline = f"{served.said.readline().strip()}/#/timeline"

        def without() -> float:
            page.goto("about:blank")
            return mean_s(connection)

        def with_it() -> float:
            page.goto(timeline)
            page.locator("canvas").wait_for()
            return mean_s(connection)

        mean_s(connection)  # there is something to show
        return compare(blocks, without, with_it)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        cost = measure(int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS)
        print(json.dumps(cost._asdict()))
