"""librdkafka's mock cluster as a program: `python -m bench.peers.librdkafka_mock BROKERS`."""

from __future__ import annotations

import sys
import threading

from confluent_kafka import Producer


def main() -> None:
    mock = Producer({"test.mock.num.brokers": sys.argv[1], "log_level": 2})
    brokers = mock.list_topics(timeout=10).brokers.values()
    print("ready " + ",".join(f"{broker.host}:{broker.port}" for broker in brokers), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
