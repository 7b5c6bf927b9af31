"""Two topics change together, or not at all."""

import os

from confluent_kafka import Consumer, Producer, TopicPartition

servers = {"bootstrap.servers": os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092")}
producer = Producer({**servers, "transactional.id": "till-1"})
producer.init_transactions(30)
for order, counts in (("one coffee", False), ("two teas", True)):
    producer.begin_transaction()
    producer.produce("orders", order, partition=0)
    producer.produce("bills", f"bill for {order}")
    if counts:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)

consumer = Consumer({**servers, "group.id": "nobody", "isolation.level": "read_committed"})
for topic in ("orders", "bills"):
    consumer.assign([TopicPartition(topic, 0, 0)])
    print(consumer.poll(30).value().decode())
consumer.close()

# prints: two teas
# prints: bill for two teas
