"""Two members share the partitions; one leaves, and the other has all of them."""

import asyncio
import os

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

SERVERS = os.environ.get("MOCKBROKER_BOOTSTRAP", "127.0.0.1:9092")


class Member(ConsumerRebalanceListener):
    def __init__(self):
        self.owned = 0
        self.changed = asyncio.Event()

    async def join(self):
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=SERVERS, group_id="kitchen", heartbeat_interval_ms=200
        )
        await self.consumer.start()
        self.consumer.subscribe(["orders"], listener=self)

    def on_partitions_revoked(self, revoked):
        self.owned = 0

    def on_partitions_assigned(self, assigned):
        self.owned = len(assigned)
        self.changed.set()

    async def has(self, partitions):
        while self.owned != partitions:
            self.changed.clear()
            await self.changed.wait()


async def main():
    first, second = Member(), Member()
    await first.join()
    await first.has(2)
    await second.join()
    await asyncio.gather(first.has(1), second.has(1))
    print("each has one")
    await first.consumer.stop()
    await second.has(2)
    print("one has both")
    await second.consumer.stop()


asyncio.run(main())

# prints: each has one
# prints: one has both
