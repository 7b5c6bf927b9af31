"""Begin at the first record of a time, in no group."""

import os

from confluent_kafka import Consumer, Producer, TopicPartition

servers = {"bootstrap.servers": os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092")}
EIGHT, NOON, TWO = 1_750_000_000_000, 1_750_014_400_000, 1_750_021_600_000
producer = Producer(servers)
for at_ms, order in ((EIGHT, "breakfast"), (TWO, "lunch")):
    producer.produce("orders", order, partition=0, timestamp=at_ms)
producer.flush()

consumer = Consumer({**servers, "group.id": "nobody"})
[start] = consumer.offsets_for_times([TopicPartition("orders", 0, NOON)], 30)
consumer.assign([start])
print("offset", start.offset, consumer.poll(30).value().decode())
consumer.close()

# prints: offset 1 lunch
