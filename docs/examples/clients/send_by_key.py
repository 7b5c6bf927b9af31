"""Records of one key are in one partition, in the order in which they were sent."""

import os

from kafka import KafkaProducer

servers = os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092")
producer = KafkaProducer(bootstrap_servers=servers.split(","))
for key in (b"table-1", b"table-2", b"table-1"):
    place = producer.send("orders", key=key, value=b"one coffee").get(30)
    print(key.decode(), "partition", place.partition, "offset", place.offset)
producer.close()

# prints: table-1 partition 0 offset 0
# prints: table-2 partition 1 offset 0
# prints: table-1 partition 0 offset 1
