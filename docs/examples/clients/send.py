"""Send records, and learn of each where it is stored."""

import os

from confluent_kafka import Producer

producer = Producer(
    {
        "bootstrap.servers": os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092"),
        "enable.idempotence": True,
    }
)


def report(error, record):
    print(record.value().decode(), "failed" if error else f"is at offset {record.offset()}")


for order in ("one coffee", "two teas"):
    producer.produce("orders", order, partition=0, on_delivery=report)
producer.flush()

# prints: one coffee is at offset 0
# prints: two teas is at offset 1
