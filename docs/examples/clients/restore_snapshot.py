"""The newest state is the last record of a topic of snapshots; a marker is behind it."""

import os

from confluent_kafka import Consumer, Producer, TopicPartition

servers = {"bootstrap.servers": os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092")}
producer = Producer({**servers, "transactional.id": "billing-1"})
producer.init_transactions(30)
for number in (1, 2, 3):
    producer.begin_transaction()
    producer.produce("bills", f"state {number}")
    producer.commit_transaction(30)

consumer = Consumer({**servers, "group.id": "nobody", "isolation.level": "read_committed"})
where = TopicPartition("bills", 0)
_, end = consumer.get_watermark_offsets(where, 30)
where.offset = end - 2
consumer.assign([where])
print("the log ends at", end, "and the last snapshot is", consumer.poll(30).value().decode())
consumer.close()

# prints: the log ends at 6 and the last snapshot is state 3
