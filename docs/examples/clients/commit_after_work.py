"""Commit after the work: no record is lost, one may be read again after a failure."""

import os

from confluent_kafka import Consumer, Producer, TopicPartition

servers = {"bootstrap.servers": os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092")}
producer = Producer(servers)
for order in ("one coffee", "two teas"):
    producer.produce("orders", order, partition=0)
producer.flush()

consumer = Consumer(
    {
        **servers,
        "group.id": "kitchen",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
)
consumer.subscribe(["orders"])
for order in consumer.consume(2, 30):
    print("made", order.value().decode())
    consumer.commit(order, asynchronous=False)
[committed] = consumer.committed([TopicPartition("orders", 0)], 30)
print("committed", committed.offset)
consumer.close()

# prints: made one coffee
# prints: made two teas
# prints: committed 2
