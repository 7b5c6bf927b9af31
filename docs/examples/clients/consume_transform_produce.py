"""Records, and the offsets up to which they were read, in one transaction."""

import os

from confluent_kafka import Consumer, Producer, TopicPartition

servers = {"bootstrap.servers": os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092")}
till = Producer(servers)
for order in ("one coffee", "two teas"):
    till.produce("orders", order, partition=0)
till.flush()

consumer = Consumer(
    {
        **servers,
        "group.id": "billing",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
)
consumer.subscribe(["orders"])
producer = Producer({**servers, "transactional.id": "billing-1"})
producer.init_transactions(30)

orders = consumer.consume(2, 30)
producer.begin_transaction()
for order in orders:
    producer.produce("bills", f"bill for {order.value().decode()}")
positions = consumer.position(consumer.assignment())
producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
producer.commit_transaction(30)

[committed] = consumer.committed([TopicPartition("orders", 0)], 30)
print(len(orders), "bills, committed", committed.offset)
consumer.close()

# prints: 2 bills, committed 2
