"""Read as a member of a group. What was read is committed every few seconds, and at the end."""

import os

from confluent_kafka import Consumer, Producer

servers = {"bootstrap.servers": os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092")}
producer = Producer(servers)
producer.produce("orders", "one coffee")
producer.flush()

consumer = Consumer({**servers, "group.id": "kitchen", "auto.offset.reset": "earliest"})
consumer.subscribe(["orders"])
print(consumer.poll(30).value().decode())
consumer.close()

# prints: one coffee
