"""Take the records partition by partition, and commit each partition when it is done."""

import asyncio
import os

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

SERVERS = os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092")


async def main():
    async with AIOKafkaProducer(bootstrap_servers=SERVERS) as producer:
        for number in range(6):
            await producer.send_and_wait("orders", b"one coffee", partition=number % 2)
    done = {}
    async with AIOKafkaConsumer(
        "orders",
        bootstrap_servers=SERVERS,
        group_id="kitchen",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    ) as consumer:
        while sum(done.values()) < 6:
            for partition, records in (await consumer.getmany(timeout_ms=1000)).items():
                done[partition] = records[-1].offset + 1
                await consumer.commit({partition: done[partition]})
        for partition in sorted(done):
            print(partition.partition, await consumer.committed(partition))


asyncio.run(main())

# prints: 0 3
# prints: 1 3
