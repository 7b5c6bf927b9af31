"""The lag of a group: from its committed offsets to the ends of the logs."""

import os

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

servers = os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092").split(",")
producer = KafkaProducer(bootstrap_servers=servers)
for _ in range(10):
    producer.send("orders", b"one coffee", partition=0).get(30)
producer.close()

orders = TopicPartition("orders", 0)
consumer = KafkaConsumer(
    bootstrap_servers=servers, group_id="kitchen", enable_auto_commit=False, max_poll_records=4
)
consumer.assign([orders])
consumer.seek(orders, 0)
read = consumer.poll(30_000)[orders]
consumer.commit()
[end] = consumer.end_offsets([orders]).values()
print(len(read), "read, lag", end - consumer.committed(orders))
consumer.close()

# prints: 4 read, lag 6
